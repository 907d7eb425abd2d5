import type { DeathPolicy } from "../core/jobs/dependency.js";
import type { AnyTask, JobDefaults } from "../core/jobs/task.js";
import type { Transaction } from "../core/jobs/transaction.js";
import type { LimitKeyValue } from "../core/limits/limit-options.js";
import type { TraceContext } from "../core/observe/trace.js";
import type { Duration } from "../core/values/duration.js";

/** Anything that names a job: its id, or a handle or view of it. */
export type JobRef = string | { readonly id: string };

/** How one job is enqueued. What is left out comes from its task, then its queue, then the defaults. */
export interface EnqueueOptions extends JobDefaults {
  /** from now, by the store's clock */
  readonly delay?: Duration;
  /** an instant: a Date, ms since 1970, or an ISO 8601 text; in the past means now */
  readonly runAt?: Date | number | string;
  readonly tenant?: string;
  readonly tags?: readonly string[];
  /** one unfinished job per tenant, task and key: a second enqueue answers with the first job. A text is short for `{ key }`. */
  readonly unique?: string | UniqueOptions;
  /** the last of several enqueues of this key counts: it runs after a time of quiet, and the others are cancelled */
  readonly debounce?: DebounceOptions;
  /** keys of the task's limits, by their names, in place of what its code computes; null: not limited */
  readonly limitKeys?: Readonly<Record<string, LimitKeyValue>>;
  /**
   * repeating an enqueue with its idempotency key answers with its first job, finished or not, for a day; with another task or
   * input it is refused with `idempotency_key_reused`
   */
  readonly idempotencyKey?: string;
  /** blocked until all of these have succeeded */
  readonly dependsOn?: JobRef | readonly JobRef[];
  /** if one of them dies or is cancelled: die with it (the default), run anyway, or go on waiting for a redrive */
  readonly onDependencyDeath?: DeathPolicy;
  /** the trace it belongs to, where `tracing` does not say: `{ traceparent, tracestate }` as W3C Trace Context has them */
  readonly trace?: TraceContext;
  /** a transaction of your own: the job exists when you commit it */
  readonly tx?: Transaction;
}

/** How a job is enqueued by `call`, and how long the call waits for it. */
export interface CallOptions extends Omit<EnqueueOptions, "tx"> {
  /** `wait_timeout` after this long, while the job goes on; for ever if left out */
  readonly wait?: Duration;
  /** ends the wait; the job goes on */
  readonly signal?: AbortSignal;
}

export interface UniqueOptions {
  readonly key: string;
  /** until it first starts, until it is finished (the default), or for a time from its enqueue */
  readonly for?: "unstarted" | "unfinished" | Duration;
  /** what a second enqueue gets: the existing job (the default), the error `unique_key_taken`, or its place if it has not started */
  readonly onConflict?: "reject" | "existing" | "replace";
}

export interface DebounceOptions {
  readonly key: string;
  /** of quiet, after which it runs */
  readonly wait: Duration;
  /** from the first of them on, after which it runs however many more come; absent: as long as they do */
  readonly maxWait?: Duration;
}

/** What makes a job the only one of its kind cannot be shared by many; `each` gives every one its own. */
type PerJobOptions = "unique" | "debounce" | "idempotencyKey";

/** How many jobs are enqueued: what they share, and what each has of its own. */
export interface EnqueueManyOptions<In> extends Omit<EnqueueOptions, PerJobOptions> {
  /**
   * one for all of them: repeated with the same task and inputs, for a day, what was stored is answered with, and only what
   * was not is stored
   */
  readonly idempotencyKey?: string;
  readonly each?: (input: In, index: number) => Omit<EnqueueOptions, "tx"> | undefined;
}

export interface EnqueueStreamOptions<In> extends EnqueueManyOptions<In> {
  /** how long it waits while an ingest limit lets nothing in, before it fails with `ingest_limited`; 1 minute unless set */
  readonly wait?: Duration;
  /** hears of every stored chunk, in no promised order */
  readonly onChunk?: (soFar: StreamSummary) => void;
}

export interface StreamSummary {
  readonly count: number;
  readonly created: number;
  readonly existing: number;
  /** their key was taken and they asked for `reject` */
  readonly rejected: number;
  /** a job they depend on does not exist */
  readonly dependencyUnknown: number;
  /** refused: their idempotency keys were used for other jobs */
  readonly idempotencyKeyReused: number;
}

/** One job of `enqueueAll`: its task, its input, and its options beside them. */
export interface EnqueueItem extends Omit<EnqueueOptions, "tx"> {
  readonly task: AnyTask | string;
  readonly input?: unknown;
}

export interface EnqueueAllOptions {
  /** one for all of them: repeated with the same tasks and inputs, for a day, it is answered alike and stores nothing */
  readonly idempotencyKey?: string;
  /** all are stored or none, and what is wrong with one is thrown; otherwise those that can be stored are */
  readonly atomic?: boolean;
  /** the trace they belong to, where they do not say, nor `tracing` does */
  readonly trace?: TraceContext;
}

/** What `open` takes per queue. */
export type QueueDefaults = Omit<JobDefaults, "queue">;
