import { isPawlError, type PawlError } from "pawl";
import { ACCESS, type NewAudit } from "pawl/service";
import type { AnyRoute } from "../contract/route.js";
import type { RequestFields } from "../request/validate.js";
import type { Principal } from "./principal.js";

/** Where control actions and denials are told: the audit log of a store. If telling fails, the action does not happen. */
export interface AuditLog {
  record(entry: NewAudit): Promise<unknown>;
}

/** Who asked what of whom, for the audit. */
export interface AuditContext {
  readonly route: AnyRoute;
  readonly principal: Principal | undefined;
  readonly address: string;
  readonly request: string;
}

/** Told before it is done: what cannot be told does not happen. Enqueues are in the history of their jobs. */
export async function auditAction(audit: AuditLog, context: AuditContext, fields: RequestFields): Promise<void> {
  const { policy } = context.route;
  if ("open" in policy || ACCESS[policy.action].audited !== true) return;
  const details = namesOf(fields);
  // What the path names is what is acted on; a body may name more, such as the task of a schedule.
  const [first] = [...Object.entries(namesOf({ params: fields.params, query: {}, body: undefined })), ...Object.entries(details)];
  await audit.record({ ...auditEntryOf(context), outcome: "allowed", ...(first === undefined ? {} : { subject: first.join(":") }), details });
}

export function denialEntry(context: AuditContext, { code }: PawlError): NewAudit {
  return { ...auditEntryOf(context), outcome: "denied", details: { reason: code } };
}

const DENIAL_CODES: ReadonlySet<string> = new Set([
  "unauthenticated",
  "forbidden",
  "tenant_mismatch",
  "certificate_mismatch",
  "cross_origin_forbidden",
  "task_reserved",
]);
/** The denial that an error is, or that a caller is not told of: what they may not see does not exist for them. */
export function denialIn(error: PawlError): PawlError | undefined {
  return [error, error.cause].filter((one) => isPawlError(one)).find(({ code }) => DENIAL_CODES.has(code));
}

/** Who asks without a credential that is good. */
export const ANONYMOUS = "anonymous";

function auditEntryOf({ route, principal, address, request }: AuditContext): Omit<NewAudit, "outcome"> {
  const from = address === "" ? {} : { address };
  return { actor: principal?.name ?? ANONYMOUS, tenant: principal?.tenant, action: route.id, request, ...from };
}

const AUDITED_NAMES = ["job", "task", "queue", "tenant", "schedule", "verb", "key", "reason"] as const;

/** Names and ids, never inputs: an audit outlives what it tells of. */
function namesOf({ params, query, body }: RequestFields): Readonly<Record<string, string>> {
  const filter = (body as { readonly filter?: object } | undefined)?.filter;
  const values: Readonly<Record<string, unknown>> = { ...filter, ...(body as object | undefined), ...query, ...params };
  return Object.fromEntries(AUDITED_NAMES.flatMap((name) => (typeof values[name] === "string" ? [[name, values[name]]] : [])));
}
