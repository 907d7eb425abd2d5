import { JOB_STATES } from "pawl";
import type { JsonSchema, PolicyChanges, QueueView, StateCounts, TaskDefinition, TaskView, TenantView } from "pawl/service";
import Type, { type TProperties } from "typebox";
import { TASK_DEFAULTS } from "../jobs/job-body.js";
import type { Policy } from "../policy.js";
import { route } from "../route.js";
import { as, closedObject, Duration, openObject, optional, pageOf, QueueName, REASON, TaskName, TenantName } from "../schemas.js";

/** Queues, tasks and tenants: what is paused, limited or counted together. All tenants share queues and tasks. */

export const Counts = openObject<StateCounts>(
  Object.fromEntries(JOB_STATES.map((state) => [state, Type.Integer()])),
  "How many jobs are in each state.",
);

const orNull = <T>(schema: object) => as<T | null>({ anyOf: [schema, { type: "null" }] });
const Rate = as<NonNullable<TaskChanges["rate"]>>({
  ...closedObject({ limit: Type.Integer({ minimum: 1 }), per: Duration, burst: optional(Type.Integer({ minimum: 1 })) }),
  type: ["string", "object"],
  maxLength: 64,
  description: 'so many per time, such as "100/5m"; or an object, which can have a burst',
});
const byPriority = { type: "object", maxProperties: 10, additionalProperties: { type: "number" } };

const LIMITS = { concurrency: optional(orNull({ type: "integer", minimum: 1 })), rate: optional(orNull(Rate)) };
const INGEST = { ingest: optional(orNull(closedObject({ rate: optional(Rate), depth: optional(Type.Integer({ minimum: 1 })) }))) };

type QueueChanges = PolicyChanges["queue"];
type TaskChanges = PolicyChanges["task"];
type TenantChanges = PolicyChanges["tenant"];
/** Interfaces, since declarations name them: an alias would be spelled out, down to names that the library does not export. */
interface ChangesByKind {
  queue: QueueUpdate;
  task: TaskUpdate;
  tenant: TenantUpdate;
}
interface QueueUpdate extends QueueChanges {}
interface TaskUpdate extends TaskChanges {}
interface TenantUpdate extends TenantChanges {}

const routesFor = <Kind extends "queue" | "task" | "tenant", P extends TProperties>(
  kind: Kind,
  one: P,
  schemas: { changes: TProperties; view: TProperties },
) => {
  type PolicyView = { queue: QueueView; task: TaskView; tenant: TenantView }[Kind];
  const plural = `${kind}s` as const;
  const path = `/v1/${plural}/{${kind}}`;
  const params = closedObject(one);
  const READ: Policy = { action: `${plural}.read`, scope: "everyone" };
  const WRITE: Policy = { action: `${plural}.write`, scope: "everyone" };
  const PolicyView = openObject<PolicyView>({ [kind]: Type.String(), paused: Type.Boolean(), policy: Type.Object({}), ...schemas.view });
  const REASONED = { body: closedObject(REASON), bodyOptional: true } as const;
  const done = { status: 204, answer: { means: "It is done, for every process." } } as const;
  return {
    list: route({
      id: `${plural}.list`,
      method: "GET",
      path: `/v1/${plural}`,
      summary: kind === "tenant" ? "Tenants that are paused or have a policy" : `All ${plural}`,
      policy: READ,
      status: 200,
      answer: { means: "All of them.", body: pageOf<PolicyView>(PolicyView) },
    }),
    get: route({
      id: `${plural}.get`,
      method: "GET",
      path,
      summary: `One ${kind}`,
      description: "One that nobody has heard of has no policy and no jobs.",
      policy: READ,
      params,
      status: 200,
      answer: { means: `The ${kind}.`, body: PolicyView },
    }),
    update: route({
      id: `${plural}.update`,
      method: "PATCH",
      path,
      summary: "Change how it shares, and its limits",
      description: "What is left out stays as it is, null takes it away. Limits hold for every claim from the answer on.",
      policy: WRITE,
      params,
      body: as<ChangesByKind[Kind]>(closedObject(schemas.changes)),
      status: 200,
      answer: { means: "Its policy, as it is now.", body: as<object>({ type: "object" }) },
    }),
    pause: route({
      id: `${plural}.pause`,
      method: "POST",
      path: `${path}/pause`,
      summary: "Stop claims from all of it; what runs goes on",
      policy: WRITE,
      params,
      ...REASONED,
      ...done,
    }),
    resume: route({
      id: `${plural}.resume`,
      method: "POST",
      path: `${path}/resume`,
      summary: "Let its jobs be claimed again",
      policy: WRITE,
      params,
      ...REASONED,
      ...done,
    }),
  };
};

export const queues = routesFor(
  "queue",
  { queue: QueueName },
  {
    changes: {
      ...LIMITS,
      ...INGEST,
      priorityWeights: optional(orNull(byPriority)),
      priorityMinimum: optional(orNull(byPriority)),
      strictPriority: optional(orNull({ type: "boolean" })),
      aging: optional(orNull(Duration)),
    },
    view: { counts: Counts },
  },
);
const Schema = as<JsonSchema>({ type: "object", description: "a JSON Schema, 2020-12" });

export const tasks = {
  ...routesFor(
    "task",
    { task: TaskName },
    {
      changes: LIMITS,
      view: { registered: Type.Boolean(), counts: Counts, defaults: optional(Type.Object({})), inputSchema: optional(Schema) },
    },
  ),
  put: route({
    id: "tasks.put",
    method: "PUT",
    path: "/v1/tasks/{task}",
    summary: "Make a task known that workers elsewhere have",
    description:
      "Its defaults, and the JSON Schema that its input must match wherever it is enqueued. As code does when it is started: the last one who says so is " +
      "right. Within seconds it holds everywhere.",
    policy: { action: "tasks.write", scope: "everyone" },
    params: closedObject({ task: TaskName }),
    body: as<TaskDefinition>(closedObject({ ...TASK_DEFAULTS, inputSchema: optional(Schema) })),
    status: 204,
    answer: { means: "It is known." },
    example: { queue: "mail", retry: 5, inputSchema: { type: "object", required: ["to"], properties: { to: { type: "string", format: "email" } } } },
  }),
};
export const tenants = routesFor(
  "tenant",
  { tenant: TenantName },
  { changes: { ...LIMITS, ...INGEST, weight: optional(orNull({ type: "number", exclusiveMinimum: 0 })) }, view: {} },
);
