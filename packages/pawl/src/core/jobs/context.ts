import type { TraceContext } from "../observe/trace.js";
import type { JobTick } from "../schedules/schedule.js";
import type { Duration } from "../values/duration.js";
import type { JobId } from "./id.js";
import type { LogLevel } from "./job.js";
import type { Transaction } from "./transaction.js";

/** What a handler gets beside its input. */
export interface Context {
  readonly job: JobId;
  readonly task: string;
  readonly queue: string;
  readonly tenant: string;
  /** from 1; a crash or a release does not count */
  readonly attempt: number;
  readonly worker: string;
  /** the tick that the job is for, if a schedule made it */
  readonly tick: JobTick | undefined;
  /** the trace that the job was enqueued in, if it carries one */
  readonly trace: TraceContext | undefined;
  /** aborted on timeout, cancellation, a lost lease, and at the end of a shutdown; `signal.reason` says which */
  readonly signal: AbortSignal;
  /** the same for every attempt at this job: for calls to the outside */
  readonly idempotencyKey: string;
  /** any JSON value; the last one is shown with the job */
  progress(value: unknown): void;
  readonly log: Readonly<Record<LogLevel, (message: string, data?: unknown) => void>>;
  /**
   * Commits the handler's writes and the settlement together: an effect exactly once. The job is settled as succeeded
   * with what `work` returns, as the last statement of the transaction; if that fails, everything is rolled back.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Runs `effect` once per job and name, and records what it returned; a retry gets the record. */
  once<T>(name: string, effect: () => T | Promise<T>, options?: { readonly ttl?: Duration }): Promise<T>;
}

/** Around every attempt, in the order given: the first one is the outermost. */
export type Middleware = (ctx: Context, next: () => Promise<unknown>) => Promise<unknown>;
