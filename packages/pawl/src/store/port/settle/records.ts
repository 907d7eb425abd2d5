import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { JobState, LogLine } from "../../../core/jobs/job.js";
import type { WorkerRef } from "../../../core/jobs/lease.js";
import type { CountsByState } from "../../../core/observe/series.js";

/** Counts by queue, task and state. Kept by deltas: reading them scans nothing that grows with the work. */
export interface CountRow {
  readonly queue: string;
  readonly task: string;
  readonly counts: Readonly<Record<JobState, number>>;
}

export interface TenantCountRow {
  readonly queue: string;
  readonly task: string;
  readonly counts: CountsByState;
}

export interface RecordStore {
  counts(): Promise<readonly CountRow[]>;
  /**
   * The same of one tenant, without what has succeeded or was cancelled. Nobody keeps count by tenant: it is counted when it is
   * asked for, so it costs by how many jobs stand there, whosever they are, and not by how many are finished.
   */
  tenantCounts(tenant: string): Promise<readonly TenantCountRow[]>;
  /** Appends log lines and progress under a lease; stale ones are let go. */
  log(worker: WorkerRef, entries: readonly LogEntry[]): Promise<void>;
  /** The recorded result of a side effect, if it is still valid. */
  recall(job: JobId, name: string): Promise<string | undefined>;
  /** Records it under a lease. The first one wins and is answered; `stale` if the lease is lost. */
  record(
    worker: WorkerRef,
    entry: { lease: LeaseId; job: JobId; name: string; value: string; ttl: number; tenant?: string },
  ): Promise<{ readonly value: string } | "stale">;
}

export interface LogEntry {
  readonly lease: LeaseId;
  readonly job: JobId;
  readonly at: number;
  readonly level: LogLine["level"] | "progress";
  readonly message: string;
  readonly data?: string;
  /** whose job it is: where what is recorded is encrypted, it is with that tenant's key */
  readonly tenant?: string;
}
