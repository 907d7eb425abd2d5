import type { LimitView } from "pawl/service";
import Type from "typebox";
import { route } from "../route.js";
import { as, closedObject, openObject, optional, PAGE, pageOf, TenantName, Time, text } from "../schemas.js";

const LimitName = text(128, "the name of a limit");
const LimitKey = text(256, "a key of a limit");

const REASONS = ["concurrency", "serial", "rate", "key_paused"] satisfies LimitView["next"]["for"][];
const Rate = Type.Object({ limit: Type.Integer(), per: Type.Number({ description: "ms" }), burst: Type.Integer() });
const View = openObject<LimitView>(
  {
    tenant: Type.String(),
    name: Type.String({ description: "of the limit" }),
    key: Type.String(),
    concurrency: optional(Type.Integer({ description: "slots" })),
    serial: optional(Type.Boolean({ description: "one at a time, in order" })),
    rate: optional(Rate),
    held: Type.Integer({ description: "jobs that hold a slot, or the serial slot" }),
    waiting: Type.Integer({ description: "jobs that wait, counted up to 1,000" }),
    more: optional(Type.Boolean({ description: "more than those wait" })),
    tokens: optional(Type.Integer({ description: "whole tokens of its rate that are there now" })),
    fullAt: optional(Time),
    pausedUntil: optional(Time),
    next: Type.Object({ job: Type.String(), for: as<LimitView["next"]["for"]>({ enum: REASONS }) }),
  },
  "A key of a limit at which jobs wait.",
);

export const listLimits = route({
  id: "limits.list",
  method: "GET",
  path: "/v1/limits",
  summary: "Keys of limits at which jobs wait, by tenant, limit and key",
  description: "`name` is that of a limit, which is a tenant's, and `key` one of its keys: a key alone, or a limit without its tenant, is refused.",
  policy: { action: "limits.read", scope: "tenant" },
  query: closedObject({
    tenant: optional(TenantName),
    name: optional(LimitName),
    key: optional(LimitKey),
    ...PAGE,
  }),
  status: 200,
  answer: { means: "A page of keys.", body: pageOf<LimitView>(View) },
});
