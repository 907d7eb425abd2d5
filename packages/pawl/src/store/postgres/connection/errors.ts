import { isPawlError, type PawlError, pawlError } from "../../../core/values/error.js";
import { sqlState } from "../drivers/sql-state.js";

/**
 * What a driver throws. `fate` says what became of the statement: `unsent` (no connection), `refused` (the server
 * answered with an error, so nothing was changed), `unknown` (the connection broke before the answer came).
 */
export class DriverError extends Error {
  override readonly name = "DriverError";
  constructor(
    readonly fate: "unsent" | "refused" | "unknown",
    readonly code: string | undefined,
    override readonly cause: unknown,
  ) {
    super(messageOf(cause), { cause });
  }
}

/** What a driver threw without saying what became of the statement: an SQLSTATE means the server refused it. */
export function asDriverError(error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof DriverError || typeof code !== "string" || !/^[0-9A-Z]{5}$/.test(code)) return error;
  return new DriverError("refused", code, error);
}

/** What a driver says that was closed here. */
export function storeClosed(cause?: unknown): PawlError {
  return pawlError("closed", { what: "the store" }, cause);
}

/** Asked to try again; and prepared statements that a pooler gave to another connection, after which none are used. */
const TRANSIENT = new Set(["40001", "40P01", "55P03", "26000", "42P05"]);
export function isTransient(error: unknown): boolean {
  return error instanceof DriverError && error.fate === "refused" && error.code !== undefined && TRANSIENT.has(error.code);
}

/** The connection is no good any more: it died, it is too slow to trust, or it leads to a server that cannot write. */
export function poisonsConnection(code: string | undefined): boolean {
  return code === undefined || code === "25006" || code.startsWith("08") || code.startsWith("57P") || code.startsWith("58");
}

/** Whether it is the server that failed (it is away, full, read-only, broken), and not what it was asked. */
function isServersFault(code: string): boolean {
  return code === "25006" || ["08", "53", "57P", "58"].some((start) => code.startsWith(start));
}

/**
 * What a statement of a handler's own failed with, as the handler sees it: the driver's error, which says what the server
 * did not like, or ours, if the statement is not at fault. `isAlive` asks whether the connection still answers: a driver
 * may throw for want of an argument that it understands, too. One that is too slow has its time, and is at fault itself.
 */
export async function errorOfHandlers(error: unknown, location: string, isAlive: () => Promise<boolean>): Promise<unknown> {
  if (isPawlError(error)) return error;
  const code = sqlState(error);
  if (code !== undefined) return isServersFault(code) ? storeError(new DriverError("refused", code, error), "transaction", location) : error;
  if (messageOf(error) === "Query read timeout" || (await isAlive())) return error;
  return storeError(new DriverError("unknown", undefined, error), "transaction", location);
}

/** What the caller of Pawl sees. SQL and driver errors stay in `cause`. */
export function storeError(error: unknown, operation: string, location: string): PawlError {
  if (isPawlError(error)) return error;
  const reason = messageOf(error);
  if (!(error instanceof DriverError)) return pawlError("store_failed", { operation, reason }, error);
  const { code, fate } = error;
  if (code?.startsWith("28")) return pawlError("store_denied", { store: location, reason }, error);
  if (code === undefined || fate === "unsent" || code.startsWith("08") || code.startsWith("57P") || code === "53300") {
    return pawlError("store_unreachable", { store: location, reason }, error);
  }
  if (code === "25006") return pawlError("store_read_only", { store: location, reason }, error);
  if (code === "53100") return pawlError("store_full", { store: location, reason }, error);
  const outage = isServersFault(code) ? { store: location, outage: true } : {};
  return pawlError("store_failed", { operation, reason, lasting: isLasting(code), ...outage }, error);
}

/** Whether the same statement would fail again: its values are at fault (data, constraints, limits), not the moment. */
function isLasting(code: string): boolean {
  return code.startsWith("22") || code.startsWith("23") || code.startsWith("54");
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  if (error instanceof Error) return error.message === "" ? error.name : error.message;
  return String(error);
}
