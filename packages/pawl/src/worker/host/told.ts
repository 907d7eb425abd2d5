import { type Duration, milliseconds } from "../../core/duration.js";
import { isPawlError, pawlError } from "../../core/error.js";
import { type Failure, type FailureKind, failureOf } from "../../core/failure.js";
import type { JobId, LeaseId } from "../../core/id.js";
import type { LogLevel } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { JobLimit } from "../../core/limit.js";
import type { Outcome } from "../../core/outcome.js";
import { checkRetry, type Retry } from "../../core/retry.js";
import { encodeOutput, pausedKey, unencodable } from "../ending.js";
import { encodeProgress, type Line, lineOf } from "../notes.js";

/** How an attempt ended, as a worker elsewhere tells it. What follows from that is decided here. */
export type ToldOutcome =
  | { readonly outcome: "succeeded"; readonly output?: unknown }
  | {
      readonly outcome: "failed";
      readonly failure: ToldFailure;
      /** false: no retry will help */
      readonly retryable?: boolean;
      /** how long to wait, whatever the task's retry policy says */
      readonly retryAfter?: Duration;
      /** with `retryAfter`: it is tried again even if that policy would stop here */
      readonly again?: boolean;
      /** with `retryAfter`: the limit whose key rests as long; false: none. Left out: the first it is under */
      readonly limit?: string | false;
    }
  | { readonly outcome: "snoozed"; readonly delay: Duration }
  | { readonly outcome: "released" }
  | { readonly outcome: "cancelled" };

/** What was thrown there. */
export interface ToldFailure {
  readonly kind?: ToldKind;
  readonly name?: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly causes?: readonly { readonly name?: string; readonly message: string; readonly stack?: string }[];
}

/** What a worker can know; the others are for the store to say. */
export const TOLD_KINDS = [
  "error",
  "timeout",
  "deadline",
  "expired",
  "interrupted",
  "undecodable",
  "output_unencodable",
] as const satisfies readonly FailureKind[];
export type ToldKind = (typeof TOLD_KINDS)[number];

/** How its task is run there, as it was said with the claim: a process that did not hear that decides by it. */
export interface ToldRun {
  readonly retry?: Retry;
  readonly atMostOnce?: boolean;
}

/** The end of one attempt. */
export interface ToldEnding {
  readonly lease: LeaseId;
  readonly job: JobId;
  readonly told: ToldOutcome;
  readonly run?: ToldRun;
  /** ms that its handler ran */
  readonly took?: number;
  /** said meanwhile, and not sent yet */
  readonly notes?: readonly Omit<ToldNote, "lease" | "job">[];
}

/** A log line or progress of a running attempt. */
export interface ToldNote {
  readonly lease: LeaseId;
  readonly job: JobId;
  readonly level: LogLevel | "progress";
  readonly message?: string;
  readonly data?: unknown;
  /** ms since it was said */
  readonly ago?: number;
}

/** Jobs of a lane that a worker has in hand. */
export interface Holding {
  readonly lane: Lane;
  readonly count: number;
}

/** Throws what is wrong with it, if anything: before it is settled, since others are settled with it. */
export function checkEnding({ job, told, run, notes = [] }: ToldEnding): void {
  notes.forEach((note, place) => void noted({ job, ...note }, place));
  if (run?.retry !== undefined) checkRetry(run.retry);
  if (told.outcome === "snoozed") milliseconds(told.delay);
  if (told.outcome === "failed" && told.retryAfter !== undefined) milliseconds(told.retryAfter);
}

/** In stored form, and within the bounds of what is said here. Throws if it is a progress that is too large. `place`: among those told with it. */
export function noted({ job, level, message = "", data }: Omit<ToldNote, "lease">, place: number): Line {
  if (level !== "progress") return lineOf(message, data);
  if (data === undefined) return lineOf(message, undefined);
  try {
    return { message: "", data: encodeProgress(job, data) };
  } catch (error) {
    throw isPawlError(error) ? pawlError(error.code, { ...error.details, pointer: `/notes/${place}/data` }) : error;
  }
}

export function outcomeOf(told: ToldOutcome, limits: readonly JobLimit[] | undefined): Outcome {
  switch (told.outcome) {
    case "succeeded": {
      if (told.output === undefined) return { kind: "succeeded" };
      const encoded = encodeOutput(told.output);
      return encoded.ok ? { kind: "succeeded", output: encoded.text } : unencodable(encoded.reason);
    }
    case "failed": {
      const { failure, retryable = true, retryAfter, again = false } = told;
      const outcome = { kind: "failed", failure: recorded(failure), retryable } as const;
      if (!retryable || retryAfter === undefined) return outcome;
      const pauses = pausedKey(limits, told);
      return { ...outcome, retryAfter: milliseconds(retryAfter), ...(again ? { again } : {}), ...(pauses === undefined ? {} : { pauses }) };
    }
    case "snoozed":
      return { kind: "snoozed", delay: milliseconds(told.delay) };
    case "released":
    case "cancelled":
      return { kind: told.outcome };
  }
}

/** In the form and within the lengths of what is thrown here. */
function recorded({ kind = "error", name = "Error", message, stack, code, causes = [] }: ToldFailure): Failure {
  const chain = causes.reduceRight<unknown>((cause, one) => thrown(one, cause), undefined);
  return failureOf({ ...thrown({ name, message, ...(stack === undefined ? {} : { stack }) }, chain), code }, kind);
}

function thrown({ name = "Error", message, stack }: { readonly name?: string; readonly message: string; readonly stack?: string }, cause: unknown) {
  return { name, message, ...(stack === undefined ? {} : { stack }), ...(cause === undefined ? {} : { cause }) };
}
