import type { WorkerRef } from "../../../core/jobs/lease.js";
import type { Serves } from "../../../core/limits/capacity.js";

/** A worker that gave a sign of life not long ago. */
export interface LiveWorker extends WorkerRef {
  readonly serves: Serves;
  /** when it first said so, and until when it is believed without another word */
  readonly since: number;
  readonly until: number;
}

/** Who is there to run jobs. Nothing is decided by it: it answers why jobs wait. */
export interface WorkerStore {
  /** Says what a worker serves, for so many ms from now. Said again before that, it goes on. */
  publish(worker: WorkerRef, serves: Serves, duration: number): Promise<void>;
  /** It serves nothing any more. One that vanishes without saying so is gone when its time is over. */
  retire(worker: WorkerRef): Promise<void>;
  /** by name and instance */
  live(): Promise<readonly LiveWorker[]>;
}
