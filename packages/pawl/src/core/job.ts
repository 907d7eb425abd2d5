import type { DeathPolicy } from "./dependency.js";
import type { Failure } from "./failure.js";
import type { IdTail, JobId, LeaseId } from "./id.js";
import type { Lane } from "./lane.js";
import type { GateReason, JobLimit } from "./limit.js";
import type { OutcomeKind } from "./outcome.js";
import type { StoredRetry } from "./retry.js";
import type { TickStamp } from "./schedule.js";
import type { TraceContext } from "./trace.js";
import type { UniqueRule } from "./unique.js";

export const STATES = ["blocked", "scheduled", "ready", "parked", "running", "succeeded", "dead", "cancelled"] as const;
export type State = (typeof STATES)[number];

/** Not started, or between attempts: the store holds it and no worker does. */
export const PENDING: readonly State[] = ["blocked", "scheduled", "ready", "parked"];
export const FINISHED: readonly State[] = ["succeeded", "dead", "cancelled"];
export function isFinished(state: State): boolean {
  return state === "succeeded" || state === "dead" || state === "cancelled";
}

/** 0 to 9, 9 most urgent. The band of a lane is its jobs' priority. */
export type Priority = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;

/** What is stored with a job beside its lane and input, and only where it differs from the defaults. */
export interface JobOptions {
  readonly retry?: StoredRetry;
  /** ms for one attempt */
  readonly timeout?: number;
  /** ms from the due time within which all attempts must end */
  readonly deadline?: number;
  /** ms from the due time within which the first attempt must start */
  readonly expire?: number;
  /** ms over which jobs due at one instant are started; its own part is in its due time */
  readonly spread?: number;
  readonly tags?: readonly string[];
  readonly key?: string;
  readonly atMostOnce?: true;
  readonly crashLimit?: number;
  /** what it is under, by keys computed when it was enqueued */
  readonly limits?: readonly JobLimit[];
  /** the finished job this one repeats */
  readonly replayOf?: JobId;
  /** the tick of a schedule that it is for */
  readonly tick?: TickStamp;
  /** the trace that it was enqueued in */
  readonly trace?: TraceContext;
}

/** A job on its way in. Times are relative to the store's clock, or absolute in it; never the caller's clock. */
export interface NewJob {
  readonly tail: IdTail;
  readonly lane: Lane;
  /** encoded JSON */
  readonly input: string;
  readonly options: JobOptions | undefined;
  /** ms from the store's now */
  readonly delay?: number;
  /** ms since 1970; in the past means now */
  readonly runAt?: number;
  readonly request?: JobRequest;
  readonly unique?: UniqueRule;
  readonly dependsOn?: { readonly parents: readonly JobId[]; readonly onDeath: DeathPolicy };
}

/** The request id of one job, with a digest of what it asks for: the same id with something else is refused. */
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
  /** the same request id was seen before, or the key is held and the existing job was asked for */
  | { readonly kind: "existing"; readonly id: JobId }
  | { readonly kind: "rejected"; readonly holder: JobId }
  | { readonly kind: "orphaned"; readonly parent: JobId }
  /** the request id was used for another task or input, of which this is the job */
  | { readonly kind: "requestReused"; readonly first: JobId };

/** A job as people see it. Times are the store's, in ms since 1970. */
export interface JobRecord {
  readonly id: JobId;
  readonly lane: Lane;
  readonly state: State;
  readonly input: string;
  readonly options: JobOptions;
  readonly createdAt: number;
  readonly dueAt: number;
  /** when it will be promoted; only while scheduled or parked */
  readonly runAt?: number;
  /** attempts that counted against the retry policy since it was enqueued or redriven */
  readonly spent: number;
  readonly crashes: number;
  readonly parkedFor?: ParkReason;
  /** the key whose gate it waits at */
  readonly parkedAt?: { readonly limit: string; readonly key: string };
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

/** A pause, or what it waits for at a gate. */
export type ParkReason = "paused" | GateReason;

/** Asked of a job that a worker holds; carried out where the job next passes. */
export type Intent = "cancel" | "pause";

/** The same, with the reason that was given. */
export interface Asked {
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
  readonly next: State;
}

export type LogLevel = "debug" | "info" | "warn" | "error";
export interface LogLine {
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
  /** encoded JSON */
  readonly data?: string;
}
