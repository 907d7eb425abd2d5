import { failureOf } from "../../core/jobs/failure.js";
import type { Outcome } from "../../core/jobs/outcome.js";
import { type ErrorCode, isPawlError } from "../../core/values/error.js";
import { isRefused } from "../settle/is-refused.js";
import type { Attempt } from "./attempt.js";

/** What a store says of itself, and not of what it was asked. All of them name the store in their details. */
const OUTAGE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["store_unreachable", "store_denied", "store_read_only", "store_full"]);

/** What is at fault in the handler, though it is the store that says so. */
const HANDLER_FAULT_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["lease_lost", "closed", "transaction_nested", "transaction_unsupported"]);

/** Errors that one error may hold, looked at before it is given up. */
const MAX_ERRORS_SEARCHED = 100;

/** ms until the job is run again: a tenth of the time since it became due, so that one whose own work takes the store down does so seldom */
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/**
 * The outages of the store that one attempt met. They are no fault of its handler: an attempt that fails of one is given
 * back. What its handler's own statements and effects fail of stays its own.
 */
export class Outages {
  readonly #outages = new Set<unknown>();

  constructor(
    /** what the store is called in its errors */
    private readonly storeAddress: string,
  ) {}

  /** Whether the handler met one, whatever it made of it. */
  get any(): boolean {
    return this.#outages.size > 0;
  }

  /** Something that the store was asked for the handler, and of which nothing is the handler's but the values. */
  async of<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      if (!isRefused(error) && !(isPawlError(error) && HANDLER_FAULT_CODES.has(error.code))) this.#outages.add(error);
      throw error;
    }
  }

  /** Something in which the handler has a part: what it threw there may be anything. */
  async within<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      if (this.behind(error)) this.#outages.add(error);
      throw error;
    }
  }

  /** Whether one is what the error comes from: itself, its cause, or one of several. */
  behind(thrown: unknown): boolean {
    const seen = new Set<unknown>([thrown]);
    for (const error of seen) {
      if (this.#outages.has(error) || this.#isOurs(error)) return true;
      if (seen.size < MAX_ERRORS_SEARCHED) for (const inner of innerOf(error)) seen.add(inner);
    }
    return false;
  }

  /** Another store that the handler works with may be away, too: that is for its retries. */
  #isOurs(error: unknown): boolean {
    if (!isPawlError(error) || error.details.store !== this.storeAddress) return false;
    return OUTAGE_CODES.has(error.code) || error.details.outage === true;
  }
}

/** What becomes of a job whose attempt failed of an outage: it is run again, and has spent nothing. `now`: the store's clock. */
export function outageOutcome({ job }: Attempt, thrown: unknown, now: number, retryAfter: number | undefined): Outcome {
  const delay = retryAfter ?? Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, Math.round((now - job.dueAt) / 10)));
  return { kind: "snoozed", delay, failure: failureOf(thrown) };
}

function innerOf(error: unknown): readonly unknown[] {
  try {
    const { cause, errors } = error as { cause?: unknown; errors?: unknown };
    return [...(cause === undefined ? [] : [cause]), ...(Array.isArray(errors) ? errors.slice(0, MAX_ERRORS_SEARCHED) : [])];
  } catch {
    return [];
  }
}
