import type { WorkerRef } from "../../../core/jobs/lease.js";
import type { Claimed } from "../settle/leases.js";

export interface IdleWorkerOptions {
  readonly worker: WorkerRef;
  /** undefined: any */
  readonly queues: readonly string[] | undefined;
  /** none that runs at most once: what is handed to a worker that has just died would be dead */
  readonly tasks: readonly string[];
  /** ms a lease lasts */
  readonly duration: number;
  /** Whoever was handed a job is unregistered by that. May be called after `unregister`, with what was on its way. */
  readonly onHandoff: (handed: Handoff) => void;
  readonly onError: (error: unknown) => void;
}

/** A job that came by its enqueue, under a lease as any claimed one. */
export interface Handoff {
  readonly claimed: Claimed;
  /** by the caller's monotonic clock: the lease began, or was renewed, no earlier than this */
  readonly since: number;
}

/** A worker's own. It does as it is told as soon as the store lets it. */
export interface IdleWorker {
  register(): void;
  unregister(): void;
  /** Unregisters for good. Answers when that is tried: by then what had come has been handed. */
  close(): Promise<void>;
}

/**
 * Where an idle worker waits for the next job, instead of being told of it and claiming it: sooner by a commit. A
 * store may have none. What is paused or limited is never handed over, nor what is enqueued behind others of its lane.
 */
export interface DirectHandoff {
  of(options: IdleWorkerOptions): IdleWorker;
}
