import { decode } from "../core/json.js";
import type { Patch } from "../core/outcome.js";
import type { Settlement } from "../store/port-leases.js";
import type { ToldFailure, ToldOutcome } from "../worker/host/told.js";
import type { PulledEnding } from "../worker/host/wire.js";

/** ms; past every deadline, so that a snooze or a retry which was too long here is too long there */
const TOO_LONG = 50 * 365 * 86_400_000;

/**
 * What the worker here decided, in the words of the protocol: its code may hold a retry policy that only it can answer.
 * The service decides again, and comes to the same, but for deadlines and what people asked of the job meanwhile.
 */
export function endingOf({ lease, job, patch, startedAt, finishedAt }: Settlement): PulledEnding {
  return { lease, job, took: Math.max(0, finishedAt - startedAt), ...toldOf(patch) };
}

function toldOf({ outcome, next, delay, output, failure, diedOf, pauses }: Patch): ToldOutcome {
  switch (outcome) {
    case "succeeded":
      return output === undefined ? { outcome } : { outcome, output: decode(output) };
    case "failed":
      // It died of its deadline, and failed with something else: told when it would run again, the service comes to the same.
      if (diedOf !== undefined)
        return { outcome, failure: toldFailure(failure), retryAfter: pauses?.for ?? TOO_LONG, again: true, limit: pauses?.limit ?? false };
      if (next === "dead") return { outcome, failure: toldFailure(failure), retryable: false };
      return { outcome, failure: toldFailure(failure), retryAfter: delay ?? 0, again: true, limit: pauses?.limit ?? false };
    case "snoozed":
      return { outcome, delay: next === "dead" ? TOO_LONG : (delay ?? 0) };
    case "released":
    case "cancelled":
      return { outcome };
    case "crashed":
      // A worker that could say so has not crashed.
      return { outcome: "released" };
  }
}

function toldFailure(failure: Patch["failure"]): ToldFailure {
  return (failure as ToldFailure | undefined) ?? { message: "no reason was given" };
}
