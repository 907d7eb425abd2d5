import { type Failure, failure } from "./failure.js";
import type { JobOptions } from "./job.js";

/** When a waiting job will have waited too long, and what it dies of then. */
export interface DueTimer {
  /** ms since 1970 */
  readonly at: number;
  readonly kind: "expired" | "deadline";
}

/**
 * The expiry counts until the first attempt starts; the deadline counts until the job ends. The earlier one rules.
 */
export function dueTimer(dueAt: number, options: JobOptions | undefined, started: boolean): DueTimer | undefined {
  const startWithin = options?.startWithin === undefined || started ? Number.POSITIVE_INFINITY : options.startWithin;
  const finishWithin = options?.finishWithin ?? Number.POSITIVE_INFINITY;
  if (startWithin === Number.POSITIVE_INFINITY && finishWithin === Number.POSITIVE_INFINITY) return undefined;
  return startWithin <= finishWithin ? { at: dueAt + startWithin, kind: "expired" } : { at: dueAt + finishWithin, kind: "deadline" };
}

/** The options of a redriven job: neither expiry nor deadline, since the person who brought it back knows it is late. */
export function withoutTimers(options: JobOptions): JobOptions {
  const { startWithin: _expire, finishWithin: _deadline, ...rest } = options;
  return rest;
}

export function lateFailure(kind: DueTimer["kind"]): Failure {
  return failure(kind, kind === "expired" ? "it did not start in time" : "its deadline passed while it waited");
}
