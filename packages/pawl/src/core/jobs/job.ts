import type { JobLimit, LimitReason } from "../limits/limit-rule.js";
import type { TraceContext } from "../observe/trace.js";
import type { JobTick } from "../schedules/schedule.js";
import type { DeathPolicy } from "./dependency.js";
import type { Failure } from "./failure.js";
import type { IdSuffix, JobId, LeaseId } from "./id.js";
import type { Lane } from "./lane.js";
import type { OutcomeKind } from "./outcome.js";
import type { StoredRetry } from "./retry.js";
import type { UniqueRule } from "./unique-key.js";

export const JOB_STATES = ["blocked", "scheduled", "ready", "parked", "running", "succeeded", "dead", "cancelled"] as const;
export type JobState = (typeof JOB_STATES)[number];

/** Not started, or between attempts: the store holds it and no worker does. */
export const PENDING: readonly JobState[] = ["blocked", "scheduled", "ready", "parked"];
export const FINISHED: readonly JobState[] = ["succeeded", "dead", "cancelled"];
export function isFinished(state: JobState): boolean {
  return state === "succeeded" || state === "dead" || state === "cancelled";
}

/** 0 to 9, 9 most urgent. All jobs of a lane have the same one. */
export type Priority = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;

/** ms: a window that begins at the due time, or one from `min` to `max` after it. */
export type Spread = number | readonly [min: number, max: number];

/** What is stored with a job beside its lane and input, and only where it differs from the defaults. */
export interface JobOptions {
  readonly retry?: StoredRetry;
  /** ms for one attempt */
  readonly timeout?: number;
  /** ms from the due time within which all attempts must end */
  readonly finishWithin?: number;
  /** ms from the due time within which the first attempt must start */
  readonly startWithin?: number;
  /** ms over which jobs due at one instant are started; its own part is in its due time */
  readonly spread?: Spread;
  readonly tags?: readonly string[];
  readonly uniqueKey?: string;
  readonly atMostOnce?: true;
  readonly maxCrashes?: number;
  /** what it is under, by keys computed when it was enqueued */
  readonly limits?: readonly JobLimit[];
  /** the finished job this one repeats */
  readonly rerunOf?: JobId;
  /** the tick of a schedule that it is for */
  readonly tick?: JobTick;
  /** the trace that it was enqueued in */
  readonly trace?: TraceContext;
}

/** A job on its way in. Times are relative to the store's clock, or absolute in it; never the caller's clock. */
export interface NewJob {
  readonly idSuffix: IdSuffix;
  readonly lane: Lane;
  /** encoded JSON */
  readonly input: string;
  readonly options: JobOptions | undefined;
  /** ms from the store's now */
  readonly delay?: number;
  /** ms since 1970; in the past means now */
  readonly runAt?: number;
  readonly idempotencyKey?: JobRequest;
  readonly unique?: UniqueRule;
  readonly dependsOn?: { readonly parents: readonly JobId[]; readonly onDependencyDeath: DeathPolicy };
}

/** The idempotency key of one job, with a digest of what it asks for: the same id with something else is refused. */
export interface JobRequest {
  readonly id: string;
  /** of the task and the plain input */
  readonly digest: string;
  /** the digest that the same request has where it was stored before inputs were encrypted; only compared, never stored */
  readonly plainDigest?: string;
}

/** Whether a stored request asked for the same. One that was stored without a digest did. */
export function isSameRequest({ digest, plainDigest }: JobRequest, stored: string | null | undefined): boolean {
  return stored === null || stored === undefined || stored === digest || stored === plainDigest;
}

/** What became of one job of an enqueue. Conflicts are values: a batch never fails for one of them. */
export type Enqueued =
  | { readonly kind: "created"; readonly id: JobId; readonly replaced?: JobId }
  /** the same idempotency key was seen before, or the key is held and the existing job was asked for */
  | { readonly kind: "existing"; readonly id: JobId }
  | { readonly kind: "rejected"; readonly holder: JobId }
  | { readonly kind: "dependencyUnknown"; readonly parent: JobId }
  /** the idempotency key was used for another task or input, of which this is the job */
  | { readonly kind: "idempotencyKeyReused"; readonly first: JobId };

/** A job as people see it. Times are the store's, in ms since 1970. */
export interface JobRecord {
  readonly id: JobId;
  readonly lane: Lane;
  readonly state: JobState;
  readonly input: string;
  readonly options: JobOptions;
  readonly createdAt: number;
  readonly dueAt: number;
  /** when it will be promoted; only while scheduled or parked */
  readonly runAt?: number;
  /** attempts that counted against the retry policy since it was enqueued or redriven */
  readonly attempts: number;
  readonly crashes: number;
  readonly parkedFor?: ParkReason;
  /** the limit key it waits at */
  readonly limitKey?: { readonly limit: string; readonly key: string };
  readonly waitsFor?: readonly JobId[];
  readonly intent?: Intent;
  readonly finishedAt?: number;
  /** encoded JSON, once succeeded */
  readonly output?: string;
  /** what killed it, or what the last attempt failed with */
  readonly failure?: Failure;
  /** encoded JSON, the last one reported */
  readonly progress?: string;
}

/** A pause, or what it waits for at a limit key. */
export type ParkReason = "paused" | LimitReason;

/** Asked of a job that a worker holds; carried out where the job next passes. */
export type Intent = "cancel" | "pause";

/** The same, with the reason that was given. */
export interface RequestedIntent {
  readonly intent: Intent;
  readonly reason: string;
}

/** One line of a job's history. Marks made by people (cancelled, redriven) have no worker. */
export interface AttemptRecord {
  readonly job: JobId;
  readonly lease: LeaseId;
  readonly outcome: OutcomeKind | "redriven";
  readonly worker?: string;
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly output?: string;
  readonly failure?: Failure;
  /** the input that a redrive replaced; only with `redriven` */
  readonly replacedInput?: string;
  /** where the job went */
  readonly next: JobState;
}

export type LogLevel = "debug" | "info" | "warn" | "error";
export interface LogLine {
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
  /** encoded JSON */
  readonly data?: string;
}
