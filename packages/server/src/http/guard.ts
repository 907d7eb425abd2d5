import { ACCESS, isPawlError, type NewAudit, type PawlError } from "pawl";
import type { Principal } from "./access.js";
import type { AnyRoute } from "./contract/route.js";
import type { Asked } from "./validate.js";

/** Where control actions and denials are told: the audit log of a store. If telling fails, the action does not happen. */
export interface AuditLog {
  record(entry: NewAudit): Promise<unknown>;
}

/** Who asked what of whom, for the audit. */
export interface Told {
  readonly route: AnyRoute;
  readonly principal: Principal | undefined;
  readonly address: string;
  readonly request: string;
}

/** Told before it is done: what cannot be told does not happen. Enqueues are in the history of their jobs. */
export async function tellAction(audit: AuditLog, told: Told, asked: Asked): Promise<void> {
  const { policy } = told.route;
  if ("open" in policy || ACCESS[policy.action].audited !== true) return;
  const details = namesOf(asked);
  // What the path names is what is acted on; a body may name more, such as the task of a schedule.
  const [first] = [...Object.entries(namesOf({ params: asked.params, query: {}, body: undefined })), ...Object.entries(details)];
  await audit.record({ ...entryOf(told), outcome: "allowed", ...(first === undefined ? {} : { subject: first.join(":") }), details });
}

export function denialOf(told: Told, { code }: PawlError): NewAudit {
  return { ...entryOf(told), outcome: "denied", details: { reason: code } };
}

const DENIALS: ReadonlySet<string> = new Set([
  "unauthenticated",
  "forbidden",
  "tenant_mismatch",
  "identity_mismatch",
  "caller_foreign",
  "task_reserved",
]);
/** The denial that an error is, or that a caller is not told of: what they may not see does not exist for them. */
export function denialIn(error: PawlError): PawlError | undefined {
  return [error, error.cause].filter((one) => isPawlError(one)).find(({ code }) => DENIALS.has(code));
}

/** Who asks without a credential that is good. */
export const ANONYMOUS = "anonymous";

function entryOf({ route, principal, address, request }: Told): Omit<NewAudit, "outcome"> {
  const from = address === "" ? {} : { address };
  return { actor: principal?.name ?? ANONYMOUS, tenant: principal?.tenant, action: route.id, request, ...from };
}

const SHOWN = ["job", "task", "queue", "tenant", "schedule", "verb", "key"] as const;

/** Names and ids, never inputs: an audit outlives what it tells of. */
function namesOf({ params, query, body }: Asked): Readonly<Record<string, string>> {
  const filter = (body as { readonly filter?: object } | undefined)?.filter;
  const said: Readonly<Record<string, unknown>> = { ...filter, ...(body as object | undefined), ...query, ...params };
  return Object.fromEntries(SHOWN.flatMap((name) => (typeof said[name] === "string" ? [[name, said[name]]] : [])));
}
