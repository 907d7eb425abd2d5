import { type ErrorCode, type ErrorDetails, errorTable, PawlError, pawlError } from "../core/error.js";
import type { HttpAnswer } from "../runtime/http.js";

/** An error as the service tells it: RFC 9457, with the code of Pawl's own table. */
export interface Problem {
  readonly code?: unknown;
  readonly detail?: unknown;
  readonly details?: unknown;
  readonly request_id?: unknown;
}

/** The same error that the call would have thrown where the store is. */
export function revive(problem: Problem): PawlError {
  const { code, detail, details, request_id: request } = problem;
  if (typeof code !== "string" || !Object.hasOwn(errorTable, code)) return pawlError("internal", { request: textOf(request) });
  const known = code as ErrorCode;
  const said = (typeof details === "object" && details !== null ? details : {}) as ErrorDetails;
  const made = pawlError(known, said);
  return typeof detail === "string"
    ? new PawlError(known, request === undefined ? said : { ...said, request: textOf(request) }, made.help, detail)
    : made;
}

export function problemOf({ text, status }: HttpAnswer): PawlError {
  try {
    return revive(JSON.parse(text) as Problem);
  } catch {
    // A proxy in between, most likely.
    return pawlError("store_unreachable", { store: "the service", reason: `it answered ${status} without saying why` });
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
