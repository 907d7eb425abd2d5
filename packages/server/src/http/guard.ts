import { ACCESS, type PawlError } from "pawl";
import type { Principal } from "./access.js";
import type { Audit, AuditEntry } from "./audit.js";
import type { AnyRoute } from "./contract/route.js";
import type { Asked } from "./validate.js";

/** Who asked what of whom, for the audit. */
export interface Told {
  readonly route: AnyRoute;
  readonly principal: Principal | undefined;
  readonly address: string;
  readonly request: string;
}

/** Told before it is done: what cannot be told does not happen. Enqueues are in the history of their jobs. */
export async function tellAction(audit: Audit, told: Told, asked: Asked): Promise<void> {
  const { policy } = told.route;
  if ("open" in policy || ACCESS[policy.action].audited !== true) return;
  await audit.record({ ...entryOf(told), subject: subjectOf(asked), decision: "allowed" });
}

export function denialOf(told: Told, { code }: PawlError): AuditEntry {
  return { ...entryOf(told), subject: {}, decision: "denied", reason: code };
}

const DENIALS: ReadonlySet<string> = new Set([
  "unauthenticated",
  "forbidden",
  "tenant_mismatch",
  "identity_mismatch",
  "caller_foreign",
  "task_reserved",
]);
export function isDenial({ code }: PawlError): boolean {
  return DENIALS.has(code);
}

function entryOf({ route, principal, address, request }: Told): Omit<AuditEntry, "subject" | "decision"> {
  return { who: principal?.name, tenant: principal?.tenant, action: route.id, address, request };
}

const SHOWN = ["job", "task", "queue", "tenant", "schedule", "verb", "key"] as const;

/** Names and ids, never inputs: an audit outlives what it tells of. */
function subjectOf({ params, query, body }: Asked): Readonly<Record<string, string>> {
  const filter = (body as { readonly filter?: object } | undefined)?.filter;
  const said: Readonly<Record<string, unknown>> = { ...filter, ...(body as object | undefined), ...query, ...params };
  return Object.fromEntries(SHOWN.flatMap((name) => (typeof said[name] === "string" ? [[name, said[name]]] : [])));
}
