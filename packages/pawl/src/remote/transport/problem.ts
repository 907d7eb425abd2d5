import { type ErrorCode, type ErrorDetails, errorTable, PawlError, pawlError } from "../../core/values/error.js";
import type { HttpAnswer } from "../../runtime/io/http.js";

/** An error as the service tells it: RFC 9457, with the code of Pawl's own table. */
export interface Problem {
  readonly code?: unknown;
  readonly detail?: unknown;
  readonly details?: unknown;
  readonly requestId?: unknown;
}

/** The same error that the call would have thrown where the store is. */
export function revive(problem: Problem): PawlError {
  const { code, detail, details, requestId: request } = problem;
  if (!isKnown(code)) return pawlError("internal", { request: textOf(request) });
  const known = (typeof details === "object" && details !== null ? details : {}) as ErrorDetails;
  const made = pawlError(code, known);
  if (typeof detail !== "string") return made;
  // An idempotency key that the error is about is not replaced by the one of the HTTP request.
  const named = request === undefined || Object.hasOwn(known, "request") ? known : { ...known, request: textOf(request) };
  return new PawlError(code, named, made.help, detail);
}

/** What a proxy answers for a service that it cannot reach. */
const UNREACHED_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

export function problemOf({ text, status }: HttpAnswer): PawlError {
  try {
    const problem = JSON.parse(text) as Problem;
    if (isKnown(problem.code) || !UNREACHED_STATUSES.has(status)) return revive(problem);
  } catch {
    // A proxy in between, most likely.
  }
  const reason = `it answered ${status} without saying why`;
  // Unless it says that the request is at fault, it may have passed it on before it gave up.
  return pawlError("store_unreachable", { store: "the service", reason, ...(status < 500 ? {} : { uncertain: true }) });
}

function isKnown(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(errorTable, code);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
