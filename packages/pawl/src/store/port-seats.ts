import type { WorkerRef } from "../core/lease.js";
import type { Claimed } from "./port-leases.js";

export interface SeatOptions {
  readonly worker: WorkerRef;
  /** undefined: any */
  readonly queues: readonly string[] | undefined;
  /** none that runs at most once: what is handed to a worker that has just died would be dead */
  readonly tasks: readonly string[];
  /** ms a lease lasts */
  readonly duration: number;
  /** Whoever was handed a job has stood up by that. May be called after it stood up, with what was on its way. */
  readonly onHanded: (handed: Handed) => void;
  readonly onError: (error: unknown) => void;
}

/** A job that came by its enqueue, under a lease as any claimed one. */
export interface Handed {
  readonly claimed: Claimed;
  /** by the caller's monotonic clock: the lease began, or was renewed, no earlier than this */
  readonly since: number;
}

/** A worker's own. It does as it is told as soon as the store lets it. */
export interface Seat {
  sit(): void;
  standUp(): void;
  /** Stands up for good. Answers when that is tried: by then what had come has been handed. */
  leave(): Promise<void>;
}

/**
 * Where a worker with empty hands waits for the next job, instead of being told of it and claiming it: sooner by a commit. A
 * store may have none. What is paused or limited is never handed over, nor what is enqueued behind others of its lane.
 */
export interface Seats {
  of(options: SeatOptions): Seat;
}
