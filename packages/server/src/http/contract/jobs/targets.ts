import { BOUNDS, type TargetView, type TargetWithSecret } from "pawl/service";
import Type from "typebox";
import type { Policy } from "../policy.js";
import { route } from "../route.js";
import { closedObject, Duration, openObject, optional, PAGE, pageOf, TaskName, TenantName, Time, text } from "../schemas.js";

const READ: Policy = { action: "targets.read", scope: "tenant" };
const WRITE: Policy = { action: "targets.write", scope: "tenant" };

const PATH = "/v1/targets/{task}";
const params = closedObject({ task: TaskName });
const ofTenant = closedObject({ tenant: optional(TenantName) });

const TargetSchema = openObject<TargetView>(
  {
    tenant: Type.String(),
    task: Type.String(),
    url: Type.String(),
    concurrency: Type.Integer(),
    timeout: Type.Integer(),
    createdAt: Time,
    changedAt: Time,
    goneAt: optional(Time),
  },
  "A target. Durations are ms.",
);
const ShownTargetSchema = openObject<TargetWithSecret>({
  target: TargetSchema,
  secret: optional(Type.String({ description: "what deliveries are signed with, shown this once" })),
});

export const putTarget = route({
  id: "targets.put",
  method: "PUT",
  path: PATH,
  summary: "Deliver the jobs of a task to a URL, instead of to workers",
  description: "Of one that is new, the secret is shown this once. One that is there is changed, and keeps its secret. Everywhere within 5 s.",
  policy: WRITE,
  params,
  body: closedObject({
    url: text(BOUNDS.targetUrl, "https://, at a public address unless the service allows others"),
    tenant: optional(TenantName),
    concurrency: optional(Type.Integer({ minimum: 1, maximum: 1_000, description: "deliveries at a time, of each process; 10 unless set" })),
    timeout: optional(Duration),
  }),
  status: 200,
  otherStatuses: { 201: "It is new: `secret` is shown this once." },
  answer: { means: "It was there, and is changed.", body: ShownTargetSchema },
  example: { url: "https://billing.example.com/hooks/pawl", concurrency: 20, timeout: "10s" },
});
export const listTargets = route({
  id: "targets.list",
  method: "GET",
  path: "/v1/targets",
  summary: "Targets, by tenant and task, without their secrets",
  policy: READ,
  query: closedObject({ tenant: optional(TenantName), ...PAGE }),
  status: 200,
  answer: { means: "A page of targets.", body: pageOf<TargetView>(TargetSchema) },
});
export const getTarget = route({
  id: "targets.get",
  method: "GET",
  path: PATH,
  summary: "One target, without its secret",
  policy: READ,
  params,
  query: ofTenant,
  status: 200,
  answer: { means: "The target.", body: TargetSchema },
});
export const rotateTarget = route({
  id: "targets.rotate",
  method: "POST",
  path: `${PATH}/rotate`,
  summary: "Give a target a new secret, beside which the one before signs for a while",
  policy: WRITE,
  params,
  query: ofTenant,
  body: closedObject({ keepOldFor: optional(Duration) }),
  bodyOptional: true,
  status: 200,
  answer: { means: "The target, with its new secret.", body: ShownTargetSchema },
});
export const deleteTarget = route({
  id: "targets.delete",
  method: "DELETE",
  path: PATH,
  summary: "Deliver no more to it; its jobs wait",
  policy: WRITE,
  params,
  query: ofTenant,
  status: 204,
  answer: { means: "It is gone." },
});
