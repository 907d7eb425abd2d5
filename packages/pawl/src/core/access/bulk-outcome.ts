import { type ErrorCode, isPawlError } from "../values/error.js";

/**
 * What an error of one job means for an operation on many:
 * - `skipped`: somebody changed the job first, or the verb does not apply to it;
 * - `failed`: something is wrong with this job, and the others go on;
 * - `fatal`: it is not about the job. The next one would fail the same, so the operation ends here; what is done stays done.
 */
export type BulkOutcome = "skipped" | "failed" | "fatal";

const SKIPPED: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["job_state_conflict", "job_unknown"]);
/** The store or the service as a whole. */
const WHOLE = /^(store|service)_/;
/** Whoever asks. */
const CALLER: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["closed", "unauthenticated", "too_many_requests"]);

export function bulkOutcomeOf(error: unknown): BulkOutcome {
  if (!isPawlError(error)) return "failed";
  if (SKIPPED.has(error.code)) return "skipped";
  return WHOLE.test(error.code) || CALLER.has(error.code) ? "fatal" : "failed";
}
