import type { UndecryptableReason } from "../../../core/access/encrypted-value.js";
import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { Intent, JobOptions, Priority } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { WorkerRef } from "../../../core/jobs/lease.js";
import type { Patch } from "../../../core/jobs/outcome.js";
import type { ReachedLimit } from "../../../core/limits/lane-limit.js";
import type { Quota } from "../../../core/sharing/claim-plan.js";
import type { StoreTransaction } from "../transactions.js";

export interface ClaimRequest {
  readonly worker: WorkerRef;
  readonly quotas: readonly Quota[];
  /** ms */
  readonly duration: number;
}

/** One lease and the jobs in it, in the order they are to be started. */
export interface Claimed {
  readonly lease: LeaseId;
  /** the store's clock at the claim, for telling times by monotonic differences */
  readonly now: number;
  readonly jobs: readonly ClaimedJob[];
  /**
   * Lanes of the request that may hold more, though they gave less than they were asked for. The others that did had no more to be
   * claimed.
   */
  readonly more?: readonly Lane[];
}

/** What came of a claim under limits, and the limits that kept back some of what was asked for. */
export interface LimitedClaim {
  readonly claimed: Claimed | undefined;
  readonly reached: readonly ReachedLimit[];
}

export interface SuspectRequest {
  readonly worker: WorkerRef;
  /** undefined: any */
  readonly queues: readonly string[] | undefined;
  readonly tasks: readonly string[];
  readonly priorities?: readonly Priority[];
  readonly tenants?: readonly string[];
  /** ms */
  readonly duration: number;
}

/** Where a claimed job stands, by which a store settles it without a look at its id. */
export interface LeaseIndex {
  /** in its lease, from 1 */
  readonly index: number;
  /** the job's number, which never changes */
  readonly home: number;
}

export interface ClaimedJob {
  readonly id: JobId;
  readonly lane: Lane;
  /** encoded JSON; undefined if the job's row is missing or unreadable: it dies alone */
  readonly input: string | undefined;
  /** its input is encrypted, and why it could not be opened */
  readonly unreadable?: UndecryptableReason;
  readonly options: JobOptions | undefined;
  readonly dueAt: number;
  readonly attempts: number;
  readonly crashes: number;
  /** asked of it before it was claimed */
  readonly intent?: Intent;
  /** it was claimed under limits on its lane, and holds slots of them */
  readonly limited?: true;
  /** absent: the store finds it by its id */
  readonly at?: LeaseIndex | undefined;
}

export interface Settlement {
  readonly lease: LeaseId;
  readonly job: JobId;
  /** as the claim gave it; without it the job is looked up in its lease */
  readonly at?: LeaseIndex | undefined;
  /** as the claim gave it */
  readonly lane: Lane;
  readonly patch: Patch;
  /** the job holds slots: it is under limits, or its lane is */
  readonly limited?: true;
  /** the store's clock, told by the claim's `now` plus monotonic time since */
  readonly startedAt: number;
  readonly finishedAt: number;
}

export type Settled = "settled" | "stale";

export interface Renewal {
  /** leases renewed; the others are lost */
  readonly held: readonly LeaseId[];
}

/**
 * Keeps a worker's leases alive, ideally from a thread of its own, so that a blocked event loop does not lose them.
 * Times are the monotonic clock of the caller's thread (`performance.now()`).
 */
export interface Renewer {
  /** Nothing should be claimed before: it could be due before it is renewed. Absent: from the start. */
  readonly ready?: Promise<void>;
  /**
   * Renews the lease from one period after now on, but not at or after `latestDeadline`: by then all its jobs should
   * have ended, so one that hangs loses its lease. Again for a held lease: only the deadline changes. Called for
   * every lease before its first handler starts, most of which are dropped within milliseconds: it must be cheap.
   */
  hold(lease: LeaseId, latestDeadline: number): void;
  drop(lease: LeaseId): void;
  /** `at`: when the renewal was sent, so that the lease is known to last `duration` from then */
  onRenewed(call: (lease: LeaseId, at: number) => void): void;
  onLost(call: (lease: LeaseId, why: string) => void): void;
  /** It cannot start, or cannot renew; it goes on trying. May be said as often as it fails. */
  onTrouble?(call: (error: unknown) => void): void;
  stop(): Promise<void>;
}

export interface LeaseStore {
  /**
   * ready → running: jobs out of the lanes, each lane in order and within its quota, under one new lease. They
   * come lane by lane, in the order these were offered.
   * Lanes of a paused queue, task or tenant give nothing, nor do lanes under a limit. Suspects are never among them.
   * `undefined`: there is nothing to be had now, which the next look for work will tell if that was not all.
   */
  claim(request: ClaimRequest): Promise<Claimed | undefined>;
  /** The same for lanes under limits of their queue, task or tenant: each job takes a slot and a token of all of them. */
  claimLimited(request: ClaimRequest): Promise<LimitedClaim>;
  /** ready → running: the next suspect of what is asked for, alone in its lease, if the limits it is under let it. */
  claimSuspect(request: SuspectRequest): Promise<Claimed | undefined>;
  /** Extends leases by number, never "all of mine": a claim whose answer was lost must expire. */
  renew(worker: WorkerRef, leases: readonly LeaseId[], duration: number): Promise<Renewal>;
  /**
   * running → what the patch says, or what was asked of the job meanwhile (`withIntent`): the only exit.
   * A job is settled once per lease: again under the same lease answers `settled` and changes nothing; under a lease
   * that is gone, not the worker's, or without that job, `stale`. With a tx, again under the same lease is `stale`, too: what
   * that transaction holds was done before, by one whose commit was not answered. A job that ends releases its dependents in
   * the same step. A lease is gone when its last job is settled.
   */
  settle(worker: WorkerRef, settlements: readonly Settlement[], tx?: StoreTransaction): Promise<readonly Settled[]>;
  /** What was asked of the jobs in these leases. */
  intents(worker: WorkerRef, leases: readonly LeaseId[]): Promise<readonly { readonly job: JobId; readonly intent: Intent }[]>;
}
