import type { Patch } from "../../core/jobs/outcome.js";
import { decode } from "../../core/values/json.js";
import type { Settlement } from "../../store/port/settle/leases.js";
import type { PulledOutcome } from "../../worker/remote/protocol.js";
import type { ReportedFailure, ReportedOutcome } from "../../worker/remote/reported-outcome.js";

/** ms; past every deadline, so that a snooze or a retry which was too long here is too long there */
const PAST_DEADLINES_MS = 50 * 365 * 86_400_000;

/**
 * What the worker here decided, in the words of the protocol: its code may hold a retry policy that only it can answer.
 * The service decides again, and comes to the same, but for deadlines and what people asked of the job meanwhile.
 */
export function pulledOutcome({ lease, job, patch, startedAt, finishedAt }: Settlement): PulledOutcome {
  return { lease, job, duration: Math.max(0, finishedAt - startedAt), ...reportedOutcome(patch) };
}

function reportedOutcome({ outcome, next, delay, output, failure, diedOf, pauses }: Patch): ReportedOutcome {
  switch (outcome) {
    case "succeeded":
      return output === undefined ? { outcome } : { outcome, output: decode(output) };
    case "failed":
      // It died of its deadline, and failed with something else: told when it would run again, the service comes to the same.
      if (diedOf !== undefined)
        return {
          outcome,
          failure: reportedFailure(failure),
          retryAfter: pauses?.for ?? PAST_DEADLINES_MS,
          overridesPolicy: true,
          limit: pauses?.limit ?? false,
        };
      if (next === "dead") return { outcome, failure: reportedFailure(failure), retryable: false };
      return { outcome, failure: reportedFailure(failure), retryAfter: delay ?? 0, overridesPolicy: true, limit: pauses?.limit ?? false };
    case "snoozed":
      return { outcome, delay: next === "dead" ? PAST_DEADLINES_MS : (delay ?? 0) };
    case "released":
    case "cancelled":
      return { outcome };
    case "crashed":
      // A worker that could say so has not crashed.
      return { outcome: "released" };
  }
}

function reportedFailure(failure: Patch["failure"]): ReportedFailure {
  return (failure as ReportedFailure | undefined) ?? { message: "no reason was given" };
}
