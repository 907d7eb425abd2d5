import { AUDIT_OUTCOMES, type AuditReport, type AuditView } from "pawl/service";
import Type from "typebox";
import { route } from "../route.js";
import { as, closedObject, Instant, list, openObject, optional, PAGE, pageOf, TenantName, Time, text } from "../schemas.js";

const Outcome = as<(typeof AUDIT_OUTCOMES)[number]>({ enum: [...AUDIT_OUTCOMES] });
const AuditEntry = openObject<AuditView>({
  seq: Type.Integer({ description: "its place in the log, from 1, without gaps" }),
  at: Time,
  id: Type.String(),
  tenant: optional(Type.String({ description: "left out: it is of the store as a whole" })),
  actor: Type.String(),
  action: Type.String(),
  outcome: Outcome,
  subject: optional(Type.String()),
  request: optional(Type.String()),
  address: optional(Type.String()),
  details: optional(Type.Object({}, { additionalProperties: true })),
  prev: Type.String({ description: "the hash of the entry before" }),
  hash: Type.String(),
});

export const listAudit = route({
  id: "audit.list",
  method: "GET",
  path: "/v1/audit",
  summary: "Who did what, and who was not let; newest first",
  description: "The log of one tenant, or without a tenant that of the store as a whole.",
  policy: { action: "audit.read", scope: "tenant" },
  query: closedObject({
    tenant: optional(TenantName),
    actor: optional(text(600, "who, such as key:…")),
    action: optional(text(600, "what, such as jobs.cancel")),
    outcome: optional(Outcome),
    subject: optional(text(600, "of what, such as job:…")),
    since: optional(Instant),
    until: optional(Instant),
    ...PAGE,
  }),
  status: 200,
  answer: { means: "A page of entries.", body: pageOf<AuditView>(AuditEntry) },
});

export const verifyAudit = route({
  id: "audit.verify",
  method: "POST",
  path: "/v1/audit/verify",
  summary: "Find what was edited, removed or cut off",
  description:
    "Reads every entry of every chain, and holds them against what was known of them before. Without anchors, an end that was cut off together with its head is not found, nor that all of it was written anew: the answer says so.",
  policy: { action: "audit.read", scope: "everyone" },
  body: closedObject({
    anchors: optional(
      Type.Array(closedObject({ tenant: optional(TenantName), seq: Type.Integer({ minimum: 1 }), hash: text(64, "of that entry") }), {
        maxItems: 10_000,
      }),
    ),
  }),
  bodyOptional: true,
  status: 200,
  answer: {
    means: "Whether all is as it was written, and the first fault of each chain that has one.",
    body: openObject<AuditReport>({
      ok: Type.Boolean(),
      chains: Type.Integer(),
      entries: Type.Integer(),
      faults: list(Type.Object({ tenant: optional(Type.String()), seq: Type.Integer(), why: Type.String() })),
      caveat: optional(Type.String({ description: "what would not have been found, for want of anchors; left out: every chain has one" })),
    }),
  },
});
