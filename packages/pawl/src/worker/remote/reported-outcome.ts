import { type Failure, type FailureKind, failureOf } from "../../core/jobs/failure.js";
import type { JobId, LeaseId } from "../../core/jobs/id.js";
import type { LogLevel } from "../../core/jobs/job.js";
import type { Lane } from "../../core/jobs/lane.js";
import type { Outcome } from "../../core/jobs/outcome.js";
import { checkRetry, type RetryPolicy } from "../../core/jobs/retry.js";
import type { JobLimit } from "../../core/limits/limit-rule.js";
import { type Duration, milliseconds } from "../../core/values/duration.js";
import { isPawlError, pawlError } from "../../core/values/error.js";
import { encodeProgress, lineOf, type StoredLogLine } from "../run/attempt-log.js";
import { encodeOutput, pausedKey, unencodable } from "../run/outcome-of.js";

/** How an attempt ended, as a worker elsewhere tells it. What follows from that is decided here. */
export type ReportedOutcome =
  | { readonly outcome: "succeeded"; readonly output?: unknown }
  | {
      readonly outcome: "failed";
      readonly failure: ReportedFailure;
      /** false: no retry will help */
      readonly retryable?: boolean;
      /** how long to wait, whatever the task's retry policy says */
      readonly retryAfter?: Duration;
      /** with `retryAfter`: it is tried again even if that policy would stop here */
      readonly overridesPolicy?: boolean;
      /** with `retryAfter`: the limit whose key rests as long; false: none. Left out: the first it is under */
      readonly limit?: string | false;
    }
  | { readonly outcome: "snoozed"; readonly delay: Duration }
  | { readonly outcome: "released" }
  | { readonly outcome: "cancelled" };

/** What was thrown there. */
export interface ReportedFailure {
  readonly kind?: ReportedFailureKind;
  readonly name?: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly causes?: readonly { readonly name?: string; readonly message: string; readonly stack?: string }[];
}

/** What a worker can know; the others are for the store to say. */
export const REPORTED_FAILURE_KINDS = [
  "error",
  "timeout",
  "deadline",
  "expired",
  "interrupted",
  "undecodable",
  "output_unencodable",
] as const satisfies readonly FailureKind[];
export type ReportedFailureKind = (typeof REPORTED_FAILURE_KINDS)[number];

/** How its task is run there, as it was said with the claim: a process that did not hear that decides by it. */
export interface TaskRunOptions {
  readonly retry?: RetryPolicy;
  readonly atMostOnce?: boolean;
}

/** The end of one attempt. */
export interface AttemptOutcome {
  readonly lease: LeaseId;
  readonly job: JobId;
  readonly reportedOutcome: ReportedOutcome;
  readonly taskOptions?: TaskRunOptions;
  /** ms that its handler ran */
  readonly duration?: number;
  /** said meanwhile, and not sent yet */
  readonly notes?: readonly Omit<AttemptReport, "lease" | "job">[];
}

/** A log line or progress of a running attempt. */
export interface AttemptReport {
  readonly lease: LeaseId;
  readonly job: JobId;
  readonly level: LogLevel | "progress";
  readonly message?: string;
  readonly data?: unknown;
  /** ms since it was said */
  readonly ago?: number;
}

/** Jobs of a lane that a worker has in hand. */
export interface HeldJobs {
  readonly lane: Lane;
  readonly count: number;
}

/** Throws what is wrong with it, if anything: before it is settled, since others are settled with it. */
export function checkAttemptOutcome({ job, reportedOutcome, taskOptions, notes = [] }: AttemptOutcome): void {
  notes.forEach((note, index) => void storedLine({ job, ...note }, index));
  if (taskOptions?.retry !== undefined) checkRetry(taskOptions.retry);
  if (reportedOutcome.outcome === "snoozed") milliseconds(reportedOutcome.delay);
  if (reportedOutcome.outcome === "failed" && reportedOutcome.retryAfter !== undefined) milliseconds(reportedOutcome.retryAfter);
}

/** In stored form, and within the bounds of what is said here. Throws if it is a progress that is too large. `place`: among those told with it. */
export function storedLine({ job, level, message = "", data }: Omit<AttemptReport, "lease">, index: number): StoredLogLine {
  if (level !== "progress") return lineOf(message, data);
  if (data === undefined) return lineOf(message, undefined);
  try {
    return { message: "", data: encodeProgress(job, data) };
  } catch (error) {
    throw isPawlError(error) ? pawlError(error.code, { ...error.details, pointer: `/notes/${index}/data` }) : error;
  }
}

export function outcomeOf(reportedOutcome: ReportedOutcome, limits: readonly JobLimit[] | undefined): Outcome {
  switch (reportedOutcome.outcome) {
    case "succeeded": {
      if (reportedOutcome.output === undefined) return { kind: "succeeded" };
      const encoded = encodeOutput(reportedOutcome.output);
      return encoded.ok ? { kind: "succeeded", output: encoded.text } : unencodable(encoded.reason);
    }
    case "failed": {
      const { failure, retryable = true, retryAfter, overridesPolicy = false } = reportedOutcome;
      const outcome = { kind: "failed", failure: failureFrom(failure), retryable } as const;
      if (!retryable || retryAfter === undefined) return outcome;
      const pauses = pausedKey(limits, reportedOutcome);
      return {
        ...outcome,
        retryAfter: milliseconds(retryAfter),
        ...(overridesPolicy ? { again: true } : {}),
        ...(pauses === undefined ? {} : { pauses }),
      };
    }
    case "snoozed":
      return { kind: "snoozed", delay: milliseconds(reportedOutcome.delay) };
    case "released":
    case "cancelled":
      return { kind: reportedOutcome.outcome };
  }
}

/** In the form and within the lengths of what is thrown here. */
function failureFrom({ kind = "error", name = "Error", message, stack, code, causes = [] }: ReportedFailure): Failure {
  const chain = causes.reduceRight<unknown>((cause, one) => thrown(one, cause), undefined);
  return failureOf({ ...thrown({ name, message, ...(stack === undefined ? {} : { stack }) }, chain), code }, kind);
}

function thrown({ name = "Error", message, stack }: { readonly name?: string; readonly message: string; readonly stack?: string }, cause: unknown) {
  return { name, message, ...(stack === undefined ? {} : { stack }), ...(cause === undefined ? {} : { cause }) };
}
