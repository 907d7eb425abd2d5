import { isEncrypted, type UndecryptableReason, undecryptableFailure } from "../../core/access/encrypted-value.js";
import { failure, failureOf } from "../../core/jobs/failure.js";
import type { Outcome } from "../../core/jobs/outcome.js";
import { dueTimer, lateFailure } from "../../core/jobs/timer.js";
import type { JobLimit } from "../../core/limits/limit-rule.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { milliseconds } from "../../core/values/duration.js";
import { isPawlError } from "../../core/values/error.js";
import { encode } from "../../core/values/json.js";
import type { Attempt } from "./attempt.js";
import { Undecodable } from "./call-handler.js";
import { type Outages, outageOutcome } from "./outage.js";

/** Why a claimed job is not run at all, if so. `now`: the store's clock. */
export function refusal({ job, cancelled, atMostOnce }: Attempt, now: number): Outcome | undefined {
  if (job.intent === "cancel" || cancelled) return { kind: "cancelled" };
  // Enqueued by somebody who did not know the task's code, so that reaping it did not end it.
  if (atMostOnce && job.crashes > 0)
    return { kind: "failed", failure: failure("interrupted", "its worker vanished, and it may run at most once"), retryable: false };
  if (isEncrypted(job.input)) return undecryptableOutcome(job.unreadable ?? "locked");
  if (job.options === undefined) return undefined;
  const timer = dueTimer(job.dueAt, job.options, job.attempts > 0 || job.crashes > 0);
  if (timer === undefined || now < timer.at) return undefined;
  return { kind: "failed", failure: lateFailure(timer.kind), retryable: false };
}

/** ms after which a job whose key is not here is offered again: another worker may have it, or this one by then */
const LOCKED_RETRY_MS = 30_000;

/** What is encrypted never comes before a handler. Where the key is elsewhere that is no fault of the job, and costs it nothing. */
function undecryptableOutcome(why: UndecryptableReason): Outcome {
  const cause = undecryptableFailure(why);
  return why === "locked" ? { kind: "snoozed", delay: LOCKED_RETRY_MS, failure: cause } : { kind: "failed", failure: cause, retryable: false };
}

const SUCCEEDED: Outcome = { kind: "succeeded" };

export function outcomeOfValue(value: unknown): Outcome {
  if (value === undefined) return SUCCEEDED;
  const encoded = encodeOutput(value);
  return encoded.ok ? { kind: "succeeded", output: encoded.text } : unencodable(encoded.reason);
}

export function encodeOutput(value: unknown): ReturnType<typeof encode> {
  return encodeWithin(value, BOUNDS.output);
}

export function encodeWithin(value: unknown, limit: number): ReturnType<typeof encode> {
  const encoded = encode(value);
  // A character takes at most three bytes of UTF-8, so short texts need no counting.
  if (!encoded.ok || encoded.text.length * 3 <= limit) return encoded;
  const size = Buffer.byteLength(encoded.text);
  return size <= limit ? encoded : { ok: false, reason: `it is ${size} bytes, over the limit of ${limit}` };
}

/** The one place where whatever was thrown becomes an outcome. Total: what is thrown may do anything when looked at. */
export function outcomeOfThrown(attempt: Attempt, thrown: unknown, outages: Outages, now: number): Outcome {
  if (attempt.cancelled) return { kind: "cancelled" };
  if (thrown instanceof Undecodable) return { kind: "failed", failure: failureOf(thrown, "undecodable"), retryable: false };
  if (isPawlError(thrown, "output_unencodable")) return { kind: "failed", failure: failureOf(thrown, "output_unencodable"), retryable: false };
  // By name, not by class: there may be two copies of this package in one process.
  const name = nameOf(thrown);
  // One that met an outage and says nothing of its own about retries failed of it, though it may not have said so.
  if (!attempt.atMostOnce && name !== "Snooze" && (outages.behind(thrown) || (outages.any && name === undefined)))
    return outageOutcome(attempt, thrown, attempt.lease.storeTime(now), name === "RetryAfter" ? delayOf(thrown) : undefined);
  switch (name) {
    case "NonRetryable":
      return { kind: "failed", failure: failureOf(thrown), retryable: false };
    case "RetryAfter": {
      const retryAfter = delayOf(thrown);
      const pauses = pausedKey(attempt.job.options?.limits, thrown);
      const retry = retryAfter === undefined ? {} : { retryAfter, ...(pauses === undefined ? {} : { pauses }) };
      return { kind: "failed", failure: failureOf(thrown), retryable: true, ...retry };
    }
    case "Snooze": {
      const delay = delayOf(thrown);
      if (delay !== undefined) return { kind: "snoozed", delay };
      break;
    }
    default:
  }
  return { kind: "failed", failure: failureOf(thrown), retryable: true };
}

export function timeoutOutcome({ endsFor, endBy, startedAt }: Attempt): Outcome {
  const message = `it did not end within ${Math.round(endBy - startedAt)} ms`;
  return endsFor === "timeout"
    ? { kind: "failed", failure: failure("timeout", message), retryable: true }
    : { kind: "failed", failure: failure("deadline", `${message}, when its deadline passed`), retryable: false };
}

/** What becomes of a job whose worker stops. One that may run at most once has begun, so it cannot be given back. */
export function releaseOutcome(attempt: Attempt): Outcome {
  if (attempt.phase === "unstarted" || !attempt.atMostOnce) return { kind: "released" };
  return { kind: "failed", failure: failure("interrupted", "its worker was stopped, and it may run at most once"), retryable: false };
}

export function unencodable(reason: string): Outcome {
  return { kind: "failed", failure: failure("output_unencodable", `its output cannot be stored: ${reason}`), retryable: false };
}

function nameOf(thrown: unknown): unknown {
  try {
    let candidate: unknown = thrown;
    // A subclass may carry a name of its own; its ancestors' prototypes say what it is.
    for (let depth = 0; depth < 8 && typeof candidate === "object" && candidate !== null; depth++) {
      const name = depth === 0 ? (candidate as Error).name : (candidate as object).constructor?.name;
      if (name === "NonRetryable" || name === "RetryAfter" || name === "Snooze") return name;
      candidate = Object.getPrototypeOf(candidate);
    }
  } catch {
    // Then it is no more than an error.
  }
  return undefined;
}

/** The key that whoever answered "later" meant. */
export function pausedKey(limits: readonly JobLimit[] = [], thrown: unknown): Pick<JobLimit, "limit" | "key"> | undefined {
  const limitName = read(() => (thrown as { limit?: unknown }).limit);
  if (limitName === false) return undefined;
  const meant = typeof limitName === "string" ? limits.find(({ limit }) => limit === limitName) : limits[0];
  return meant === undefined ? undefined : { limit: meant.limit, key: meant.key };
}

function read<T>(get: () => T): T | undefined {
  try {
    return get();
  } catch {
    return undefined;
  }
}

function delayOf(thrown: unknown): number | undefined {
  try {
    return milliseconds((thrown as { delay: number | string }).delay);
  } catch {
    return undefined;
  }
}
