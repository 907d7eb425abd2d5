import { BOUNDS } from "../core/bounds.js";
import { milliseconds } from "../core/duration.js";
import { isPawlError } from "../core/error.js";
import { failure, failureOf } from "../core/failure.js";
import { encode } from "../core/json.js";
import type { JobLimit } from "../core/limit.js";
import type { Outcome } from "../core/outcome.js";
import { isSealed, type Unreadable, unreadableFailure } from "../core/sealed.js";
import { dueTimer, lateFailure } from "../core/timer.js";
import type { Attempt } from "./attempt.js";
import { Undecodable } from "./input.js";
import { notSpent, type Outages } from "./outage.js";

/** Why a claimed job is not run at all, if so. `now`: the store's clock. */
export function refusal({ job, cancelled, atMostOnce }: Attempt, now: number): Outcome | undefined {
  if (job.intent === "cancel" || cancelled) return { kind: "cancelled" };
  // Enqueued by somebody who did not know the task's code, so that reaping it did not end it.
  if (atMostOnce && job.crashes > 0)
    return { kind: "failed", failure: failure("interrupted", "its worker vanished, and it may run at most once"), retryable: false };
  if (isSealed(job.input)) return unopened(job.unreadable ?? "locked");
  if (job.options === undefined) return undefined;
  const timer = dueTimer(job.dueAt, job.options, job.spent > 0 || job.crashes > 0);
  if (timer === undefined || now < timer.at) return undefined;
  return { kind: "failed", failure: lateFailure(timer.kind), retryable: false };
}

/** ms after which a job whose key is not here is offered again: another worker may have it, or this one by then */
const LOCKED_FOR = 30_000;

/** What is sealed never comes before a handler. Where the key is elsewhere that is no fault of the job, and costs it nothing. */
function unopened(why: Unreadable): Outcome {
  const cause = unreadableFailure(why);
  return why === "locked" ? { kind: "snoozed", delay: LOCKED_FOR, failure: cause } : { kind: "failed", failure: cause, retryable: false };
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
    return notSpent(attempt, thrown, attempt.lease.storeTime(now), name === "RetryAfter" ? delayOf(thrown) : undefined);
  switch (name) {
    case "NonRetryable":
      return { kind: "failed", failure: failureOf(thrown), retryable: false };
    case "RetryAfter": {
      const retryAfter = delayOf(thrown);
      const pauses = pausedKey(attempt.job.options?.limits, thrown);
      const rest = retryAfter === undefined ? {} : { retryAfter, ...(pauses === undefined ? {} : { pauses }) };
      return { kind: "failed", failure: failureOf(thrown), retryable: true, ...rest };
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

export function outOfTime({ endsFor, endBy, startedAt }: Attempt): Outcome {
  const took = `it did not end within ${Math.round(endBy - startedAt)} ms`;
  return endsFor === "timeout"
    ? { kind: "failed", failure: failure("timeout", took), retryable: true }
    : { kind: "failed", failure: failure("deadline", `${took}, when its deadline passed`), retryable: false };
}

/** What becomes of a job whose worker stops. One that may run at most once has begun, so it cannot be given back. */
export function givenBack(attempt: Attempt): Outcome {
  if (attempt.phase === "held" || !attempt.atMostOnce) return { kind: "released" };
  return { kind: "failed", failure: failure("interrupted", "its worker was stopped, and it may run at most once"), retryable: false };
}

export function unencodable(reason: string): Outcome {
  return { kind: "failed", failure: failure("output_unencodable", `its output cannot be stored: ${reason}`), retryable: false };
}

function nameOf(thrown: unknown): unknown {
  try {
    let known: unknown = thrown;
    // A subclass may carry a name of its own; its ancestors' prototypes say what it is.
    for (let depth = 0; depth < 8 && typeof known === "object" && known !== null; depth++) {
      const name = depth === 0 ? (known as Error).name : (known as object).constructor?.name;
      if (name === "NonRetryable" || name === "RetryAfter" || name === "Snooze") return name;
      known = Object.getPrototypeOf(known);
    }
  } catch {
    // Then it is no more than an error.
  }
  return undefined;
}

/** The key that whoever answered "later" meant. */
export function pausedKey(limits: readonly JobLimit[] = [], thrown: unknown): Pick<JobLimit, "limit" | "key"> | undefined {
  const asked = read(() => (thrown as { limit?: unknown }).limit);
  if (asked === false) return undefined;
  const meant = typeof asked === "string" ? limits.find(({ limit }) => limit === asked) : limits[0];
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
