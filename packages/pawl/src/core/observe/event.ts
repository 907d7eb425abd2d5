import type { Failure, FailureKind } from "../jobs/failure.js";
import type { JobId, LeaseId } from "../jobs/id.js";
import type { Intent, JobState } from "../jobs/job.js";
import type { Lane } from "../jobs/lane.js";
import type { OutcomeKind } from "../jobs/outcome.js";
import type { BreakerState } from "../limits/breaker.js";
import type { PolicyKind } from "../sharing/policy.js";

export type JobVerb = "cancel" | "pause" | "resume" | "promote" | "redrive" | "delete";

/**
 * Everything that happens, as facts on one bus. Logs, metrics, traces and live views subscribe; nothing else logs.
 * Hot-path events are per batch, never per job, and are not built when nobody listens.
 */
export interface Events {
  /** how many in all, and how many in each lane */
  "jobs.enqueued": { readonly count: number; readonly lanes: readonly { readonly lane: Lane; readonly count: number }[] };
  /** by which limit of what, how many jobs together, and ms until it is worth trying again */
  "ingest.refused": {
    readonly kind: "tenant" | "queue";
    readonly name: string;
    readonly limit: "rate" | "depth";
    readonly jobs: number;
    readonly retryAfter: number;
  };
  "jobs.claimed": { readonly worker: string; readonly lease: LeaseId; readonly count: number };
  "attempt.started": { readonly job: JobId; readonly lane: Lane; readonly attempt: number; readonly worker: string };
  "attempt.settled": {
    readonly job: JobId;
    readonly lane: Lane;
    readonly attempt: number;
    readonly worker: string;
    readonly outcome: OutcomeKind;
    readonly next: JobState;
    /** ms */
    readonly duration: number;
    /** ms from when the job was due to the end of this attempt */
    readonly sinceDue: number;
    readonly failure?: Failure;
    /** why it is dead, where that is not what this attempt failed with: its deadline */
    readonly diedOf?: FailureKind;
    /** ms until it runs again */
    readonly delay?: number;
  };
  /** a task's retry function threw or answered what is no delay, so that the default policy decided */
  "retry.failed": { readonly job: JobId; readonly lane: Lane; readonly attempt: number; readonly worker: string; readonly reason: string };
  /** what a person or a program did to a job: cancelled, paused, resumed, promoted, redrove or deleted it, and the reason it gave */
  "job.changed": {
    readonly job: JobId;
    readonly lane: Lane;
    readonly verb: JobVerb;
    readonly from: JobState;
    readonly to: JobState | "deleted";
    readonly reason?: string;
  };
  /** all of a queue, task or tenant */
  "claims.paused": { readonly kind: PolicyKind; readonly name: string; readonly reason?: string };
  "claims.resumed": { readonly kind: PolicyKind; readonly name: string; readonly reason?: string };
  "attempt.stale": { readonly job: JobId; readonly worker: string; readonly outcome: OutcomeKind };
  "worker.blocked": { readonly worker: string; readonly lag: number };
  "lease.lost": { readonly worker: string; readonly lease: LeaseId; readonly jobs: number; readonly reason: string };
  "intent.received": { readonly job: JobId; readonly intent: Intent };
  /** a look at what is due, some once a second; ms that schedules and delayed jobs are late which nobody has seen to yet */
  "maintenance.polled": { readonly duration: number; readonly schedulesLate: number; readonly delayedLate: number };
  "duty.ran": { readonly duty: string; readonly count: number; readonly duration: number };
  "duty.failed": { readonly duty: string; readonly error: unknown };
  "jobs.promoted": { readonly count: number };
  /** how many were looked at, their jobs, and ms that the latest was late */
  "schedules.ticked": { readonly schedules: number; readonly jobs: number; readonly lateness: number };
  "leases.reaped": { readonly leases: number; readonly jobs: number };
  "worker.started": { readonly worker: string };
  "worker.stopping": { readonly worker: string; readonly running: number };
  /** jobs given back, and handlers that had not ended */
  "worker.stopped": { readonly worker: string; readonly released: number; readonly unended: number };
  /** as a worker hears of it: each worker once */
  "breaker.changed": { readonly worker: string; readonly tenant: string; readonly task: string; readonly state: BreakerState };
  "worker.stalled": { readonly worker: string; readonly idleFor: number };
  /** log lines and progress of jobs that the store did not take, for good */
  "lines.lost": { readonly worker: string; readonly lines: number; readonly error: unknown };
  /** so many of its handlers have not ended long after their time that it takes nothing more; of how many slots, these are kept by such handlers */
  "worker.stuck": { readonly worker: string; readonly overrun: number; readonly concurrency: number };
  "worker.unstuck": { readonly worker: string };
  "store.operation": { readonly operation: string; readonly duration: number; readonly error?: unknown };
  "store.lost": { readonly error: unknown };
  "store.restored": { readonly outage: number };
}

export type EventName = keyof Events;

/** Every name, for callers without types: who listens for what never happens should be told. */
export const EVENT_NAMES = Object.keys({
  "jobs.enqueued": true,
  "ingest.refused": true,
  "jobs.claimed": true,
  "attempt.started": true,
  "attempt.settled": true,
  "retry.failed": true,
  "job.changed": true,
  "claims.paused": true,
  "claims.resumed": true,
  "attempt.stale": true,
  "worker.blocked": true,
  "lease.lost": true,
  "intent.received": true,
  "maintenance.polled": true,
  "duty.ran": true,
  "duty.failed": true,
  "jobs.promoted": true,
  "schedules.ticked": true,
  "leases.reaped": true,
  "worker.started": true,
  "worker.stopping": true,
  "worker.stopped": true,
  "breaker.changed": true,
  "worker.stalled": true,
  "lines.lost": true,
  "worker.stuck": true,
  "worker.unstuck": true,
  "store.operation": true,
  "store.lost": true,
  "store.restored": true,
} satisfies Record<EventName, true>) as readonly EventName[];
