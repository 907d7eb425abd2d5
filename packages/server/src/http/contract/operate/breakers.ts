import type { BreakerState, BreakerView } from "pawl/service";
import Type from "typebox";
import type { Policy } from "../policy.js";
import { route } from "../route.js";
import { as, closedObject, openObject, optional, PAGE, pageOf, TaskName, TenantName, Time } from "../schemas.js";

const READ: Policy = { action: "breakers.read", scope: "tenant" };
const WRITE: Policy = { action: "breakers.write", scope: "tenant" };

const State = as<BreakerState>({ enum: ["closed", "checking", "open", "half_open"] satisfies BreakerState[] });
const Breaker = openObject<BreakerView>({
  tenant: Type.String(),
  task: Type.String(),
  state: State,
  forced: Type.Boolean(),
  since: Time,
  probeAt: optional(Time),
  limit: optional(Type.Integer()),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
});

export const listBreakers = route({
  id: "breakers.list",
  method: "GET",
  path: "/v1/breakers",
  summary: "Breakers that have seen failures, by tenant and task",
  policy: READ,
  query: closedObject({
    tenant: optional(TenantName),
    task: optional(TaskName),
    state: optional(State),
    ...PAGE,
  }),
  status: 200,
  answer: { means: "A page of breakers.", body: pageOf<BreakerView>(Breaker) },
});

export const getBreaker = route({
  id: "breakers.get",
  method: "GET",
  path: "/v1/breakers/{task}",
  summary: "The breaker of a task",
  policy: READ,
  params: closedObject({ task: TaskName }),
  query: closedObject({ tenant: optional(TenantName) }),
  status: 200,
  answer: { means: "The breaker. One that has seen no failures lately is closed.", body: Breaker },
});

const act = (verb: "open" | "close" | "reset", summary: string) =>
  route({
    id: `breakers.${verb}`,
    method: "POST",
    path: `/v1/breakers/{task}/${verb}`,
    summary,
    policy: WRITE,
    params: closedObject({ task: TaskName }),
    query: closedObject({ tenant: optional(TenantName) }),
    status: 200,
    answer: { means: "The breaker as it is now.", body: Breaker },
  });
export const openBreaker = act("open", "Start no jobs of this task until it is closed or reset");
export const closeBreaker = act("close", "Start its jobs whatever they come to, until it is opened or reset");
export const resetBreaker = act("reset", "Let it begin anew, closed and by itself");
