import type { AttemptRecord, JobRecord } from "../../../core/jobs/job.js";
import type { WatchPeriod } from "../observe/events.js";

/** What waits for a duty, seen by one cheap statement. ms from now; zero or less is due. */
export interface Poll {
  readonly now: number;
  readonly scheduledIn?: number;
  readonly leaseIn?: number;
  readonly timerIn?: number;
  /** until a schedule is to be looked at */
  readonly tickIn?: number;
  /** until a limit key is */
  readonly admitIn?: number;
  readonly intents: boolean;
  readonly unverified: boolean;
  readonly deltas: boolean;
  /** somebody wants to hear what happens in every process */
  readonly watched?: WatchPeriod;
  /** ms since the store itself was started, where it knows: leases older than that could not be renewed meanwhile */
  readonly upFor?: number;
}

export interface DutyStore {
  poll(): Promise<Poll>;
  /** scheduled → ready, for what is due, oldest due first. Answers the ms until the next one. */
  promote(limit: number): Promise<{ readonly count: number; readonly nextIn?: number }>;
  /** pending → dead, for jobs that did not start in time or whose deadline has passed while they waited */
  expire(limit: number): Promise<number>;
  /** blocked → ready, scheduled, parked or dead, for parents that ended while the job was being enqueued */
  unblock(limit: number): Promise<number>;
  /** carries out intents on jobs no worker holds any more */
  carryOut(limit: number): Promise<number>;
  /** folds counter deltas */
  fold(limit: number): Promise<number>;
  /** makes partitions ahead, lets go of what retention says, forgets requests, keys and recorded effects past their time */
  prune(rules: PruneRules): Promise<PruneReport>;
  /** (nothing) → finished: what a prune exported, brought back with its history. Jobs that are there stay as they are. */
  restore(batch: readonly ExportedJob[]): Promise<number>;
}

export interface PruneRules {
  /** ms */
  readonly finished: number;
  readonly dead: number;
  readonly limit: number;
  /** sees the finished jobs about to go, in batches, before they do; if it throws they stay */
  readonly exportFinished?: (batch: readonly ExportedJob[]) => Promise<void>;
}

export interface ExportedJob {
  readonly job: JobRecord;
  readonly history: readonly AttemptRecord[];
}

export interface PruneReport {
  readonly dropped: number;
  readonly forgotten: number;
  readonly madePartitions: readonly string[];
  readonly droppedPartitions: readonly string[];
}
