import type { Fingerprint } from "../../../core/jobs/fingerprint.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { AttemptRecord, Enqueued, JobRecord, JobState, LogLine, NewJob } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { ExportedJob } from "../duties/duties.js";
import type { Scope } from "../index.js";
import type { StoreTransaction } from "../transactions.js";
import type { PartRequest } from "./pages.js";

export interface JobStore {
  /**
   * (nothing) → ready, scheduled or blocked. Answers in the order given. All are stored or none, except that a
   * conflict of one (idempotency key seen, key taken, unknown parent) is that one's answer. With `tx` the jobs exist
   * when the caller commits.
   *
   * - A job is due at max(now, runAt or now + delay). Its id carries that time and the caller's id suffix.
   * - An idempotency key answers with its first job for `keep.request`, finished or not; with another digest it is refused.
   * - Two jobs of one batch with the same key or idempotency key: the first one wins, as if they came one by one.
   * - Parents already succeeded count as satisfied. A parent that is dead or cancelled counts by `onDependencyDeath` at once.
   */
  enqueue(jobs: readonly NewJob[], tx?: StoreTransaction): Promise<readonly Enqueued[]>;
  get(scope: Scope, id: JobId): Promise<JobRecord | undefined>;
  /** of what lanes they are, without what they hold; those that the scope has not are left out */
  lanes(scope: Scope, ids: readonly JobId[]): Promise<ReadonlyMap<JobId, Lane>>;
  list(scope: Scope, filter: StoredJobFilter, page: PageRequest): Promise<JobPageResult>;
  /** oldest first: attempts, claims lost to crashes, and marks by people */
  history(scope: Scope, id: JobId, part?: PartRequest): Promise<readonly AttemptRecord[]>;
  logs(scope: Scope, id: JobId, part?: PartRequest): Promise<readonly LogLine[]>;
  /** The page that `list` would answer with without a filter, each job with all of its history and lines, as of one moment. */
  whole(scope: Scope, page: PageRequest): Promise<WholePage>;
  // A `reason` is for the events of the library. A store keeps it where it says so.
  /** pending → cancelled at once; the history keeps the reason. running → an intent, carried out by its worker, or by reap */
  cancel(scope: Scope, id: JobId, reason: string): Promise<JobChangeResult>;
  /** scheduled, ready → parked; running and blocked → an intent, which keeps the reason */
  pause(scope: Scope, id: JobId, reason?: string): Promise<JobChangeResult>;
  /** parked for a pause → ready or scheduled; takes back an intent */
  resume(scope: Scope, id: JobId, reason?: string): Promise<JobChangeResult>;
  /** scheduled → ready, now */
  promote(scope: Scope, id: JobId, reason?: string): Promise<JobChangeResult>;
  /** dead → ready or scheduled, with fresh counts; its `wait`ing dependents go on waiting for it. The history keeps the reason */
  redrive(scope: Scope, id: JobId, how: RedriveOptions): Promise<JobChangeResult>;
  /** finished → gone, with its history */
  delete(scope: Scope, id: JobId, reason?: string): Promise<JobChangeResult>;
  /** (nothing) → finished: what `exportFinished` saw, brought back with its history. Jobs that are there stay as they are. */
  restore(batch: readonly ExportedJob[]): Promise<number>;
}

/** All that is kept of a job. */
export interface WholeJob {
  readonly job: JobRecord;
  readonly history: readonly AttemptRecord[];
  readonly logs: readonly LogLine[];
}

/** As a `Page`; its bytes are those of histories and lines, too. */
export interface WholePage {
  readonly jobs: readonly WholeJob[];
  readonly next?: JobId;
}

export interface RedriveOptions {
  /** encoded JSON in place of the old input, which the history keeps */
  readonly input?: string;
  /** ms from now; 0 or absent: ready at once */
  readonly delay?: number;
  readonly reason?: string;
}

/** `from` and `to` are equal where the verb was noted but the state stays (an intent). */
export type JobChangeResult =
  | { readonly kind: "changed"; readonly from: JobState; readonly to: JobState | "deleted" }
  | { readonly kind: "unknown" }
  | { readonly kind: "refused"; readonly state: JobState };

export interface StoredJobFilter {
  readonly state?: JobState;
  readonly queue?: string;
  readonly task?: string;
  readonly tag?: string;
  readonly uniqueKey?: string;
  /** kind or class of the failure that killed it */
  readonly failure?: string;
  /** of what killed it */
  readonly fingerprint?: Fingerprint;
  /** due from then on, and before then, as their ids have it; ms since 1970 */
  readonly since?: number;
  readonly until?: number;
}

/** Newest due time first. `after` is the id the last page ended with. */
export interface PageRequest {
  readonly limit: number;
  readonly after?: JobId;
  /** it ends with the job that fills these; none is too large to be the only one */
  readonly bytes?: number;
}

/** It may be shorter than asked for, or empty, where it was full or a long way was looked through: there is more while there is a `next`. */
export interface JobPageResult {
  readonly jobs: readonly JobRecord[];
  readonly next?: JobId;
}
