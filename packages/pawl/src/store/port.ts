import type { Fingerprint } from "../core/fingerprint.js";
import type { JobId, LeaseId } from "../core/id.js";
import type { AttemptRecord, Enqueued, Intent, JobOptions, JobRecord, LogLine, NewJob, Priority, State } from "../core/job.js";
import type { Lane } from "../core/lane.js";
import type { ReachedLimit } from "../core/lane-limit.js";
import type { WorkerRef } from "../core/lease.js";
import type { Quota } from "../core/offer.js";
import type { Patch } from "../core/outcome.js";
import type { PolicyKind, PolicyRef } from "../core/policy.js";
import type { Unreadable } from "../core/sealed.js";
import type { TaskRecord } from "../core/task.js";
import type { AuditStore } from "./port-audit.js";
import type { BatchStore } from "./port-batches.js";
import type { BreakerStore } from "./port-breakers.js";
import type { CheckupStore } from "./port-checkup.js";
import type { DataKeyStore } from "./port-data-keys.js";
import type { DeadStore } from "./port-dead.js";
import type { EventStore, Watched } from "./port-events.js";
import type { ExplainStore } from "./port-explain.js";
import type { IngestStore } from "./port-ingest.js";
import type { ApiKeyStore } from "./port-keys.js";
import type { LimitStore } from "./port-limits.js";
import type { PartRequest } from "./port-pages.js";
import type { PolicyStore } from "./port-policies.js";
import type { PurgeStore } from "./port-purges.js";
import type { ReplyStore } from "./port-replies.js";
import type { ScheduleStore } from "./port-schedules.js";
import type { SeriesStore } from "./port-series.js";
import type { WorkerStore } from "./port-workers.js";

/**
 * The store port, by noun. Rules that hold for every verb:
 * - it is one atomic step, in batches, and time is decided inside by the store's clock;
 * - expected results are values: a lost lease, a taken key, a missing job are never exceptions;
 * - it survives an answer that was lost: repeating it changes nothing more and answers the same;
 * - nothing of the store's own (connections, bounds, tables) shows through.
 *
 * The memory store is the specification; `conformance/` is the same thing as tests.
 */
export interface Store {
  readonly jobs: JobStore;
  readonly batches: BatchStore;
  readonly leases: LeaseStore;
  readonly lanes: LaneStore;
  readonly tasks: TaskStore;
  readonly limits: LimitStore;
  readonly policies: PolicyStore;
  readonly ingest: IngestStore;
  readonly explain: ExplainStore;
  readonly workers: WorkerStore;
  readonly breakers: BreakerStore;
  readonly dead: DeadStore;
  readonly checkup: CheckupStore;
  readonly schedules: ScheduleStore;
  readonly duties: DutyStore;
  readonly records: RecordStore;
  readonly series: SeriesStore;
  readonly events: EventStore;
  readonly apiKeys: ApiKeyStore;
  readonly audit: AuditStore;
  readonly replies: ReplyStore;
  readonly dataKeys: DataKeyStore;
  readonly purges: PurgeStore;
  readonly engine: StoreInfo;
  /** What happens here or elsewhere that someone may be waiting for. A hint may be lost, late or doubled. */
  onHint(listener: (hint: Hint) => void): () => void;
  /** Gives a hint, here and to whoever listens elsewhere. */
  hint(hint: Hint): void;
  /** Whether hints from other processes are known to arrive; while they are not, everyone polls more often. */
  hearsOthers(): boolean;
  /** A renewer better than a timer in the worker's own event loop, where the store has one. ms */
  renewer?(worker: WorkerRef, options: { readonly duration: number; readonly every: number }): Renewer;
  close(): Promise<void>;
}

export interface StoreInfo {
  readonly engine: "memory" | "postgres" | "embedded" | "pglite";
  /** where the data is, without secrets */
  readonly place: string;
  readonly version: string;
  /** of an embedded server: where an application in development can keep its own tables and enqueue in its own transactions */
  readonly url?: string;
  /** what an acknowledged enqueue survives */
  readonly durability: "none" | "process" | "power loss";
  readonly schema: number;
}

/** Whose jobs a call may see and change. */
export type Scope = { readonly tenant: string } | "everyone";

/** A transaction of the caller's own, as the store's driver needs it; anything with a query function. */
export interface ForeignTransaction {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

export interface JobStore {
  /**
   * (nothing) → ready, scheduled or blocked. Answers in the order given. All are stored or none, except that a
   * conflict of one (request id seen, key taken, unknown parent) is that one's answer. With `tx` the jobs exist
   * when the caller commits.
   *
   * - A job is due at max(now, runAt or now + delay). Its id carries that time and the caller's tail.
   * - A request id answers with its first job for `keep.request`, finished or not.
   * - Two jobs of one batch with the same key or request id: the first one wins, as if they came one by one.
   * - Parents already succeeded count as satisfied. A parent that is dead or cancelled counts by `onDeath` at once.
   */
  enqueue(jobs: readonly NewJob[], tx?: ForeignTransaction): Promise<readonly Enqueued[]>;
  get(scope: Scope, id: JobId): Promise<JobRecord | undefined>;
  list(scope: Scope, filter: JobFilter, page: PageRequest): Promise<Page>;
  /** oldest first: attempts, claims lost to crashes, and marks by people */
  history(scope: Scope, id: JobId, part?: PartRequest): Promise<readonly AttemptRecord[]>;
  logs(scope: Scope, id: JobId, part?: PartRequest): Promise<readonly LogLine[]>;
  /** pending → cancelled at once; running → an intent, carried out by its worker, or by reap */
  cancel(scope: Scope, id: JobId, reason: string): Promise<Change>;
  /** scheduled, ready → parked; running and blocked → an intent */
  pause(scope: Scope, id: JobId): Promise<Change>;
  /** parked for a pause → ready or scheduled; takes back an intent */
  resume(scope: Scope, id: JobId): Promise<Change>;
  /** scheduled → ready, now */
  retry(scope: Scope, id: JobId): Promise<Change>;
  /** dead → ready or scheduled, with fresh counts; its `wait`ing dependents go on waiting for it */
  redrive(scope: Scope, id: JobId, how: RedriveOptions): Promise<Change>;
  /** finished → gone, with its history */
  drop(scope: Scope, id: JobId): Promise<Change>;
}

export interface RedriveOptions {
  /** encoded JSON in place of the old input, which the history keeps */
  readonly input?: string;
  /** ms from now; 0 or absent: ready at once */
  readonly delay?: number;
}

/** `from` and `to` are equal where the verb was noted but the state stays (an intent). */
export type Change =
  | { readonly kind: "changed"; readonly from: State; readonly to: State | "gone" }
  | { readonly kind: "unknown" }
  | { readonly kind: "refused"; readonly state: State };

export interface JobFilter {
  readonly state?: State;
  readonly queue?: string;
  readonly task?: string;
  readonly tag?: string;
  readonly key?: string;
  /** kind or class of the failure that killed it */
  readonly failure?: string;
  /** of what killed it */
  readonly fingerprint?: Fingerprint;
  /** due from then on, and before then, as their ids have it; ms since 1970 */
  readonly dueFrom?: number;
  readonly dueBefore?: number;
}
/** Newest due time first. `after` is the id the last page ended with. */
export interface PageRequest {
  readonly limit: number;
  readonly after?: JobId;
  /** it ends with the job that fills these; none is too large to be the only one */
  readonly bytes?: number;
}
/** It may be shorter than asked for, or empty, where it was full or a long way was looked through: there is more while there is a `next`. */
export interface Page {
  readonly jobs: readonly JobRecord[];
  readonly next?: JobId;
}

export interface ClaimRequest {
  readonly worker: WorkerRef;
  readonly quotas: readonly Quota[];
  readonly limit: number;
  /** ms */
  readonly duration: number;
}

/** One lease and the jobs in it, in the order they are to be started. */
export interface Claimed {
  readonly lease: LeaseId;
  /** the store's clock at the claim, for telling times by monotonic differences */
  readonly now: number;
  readonly jobs: readonly ClaimedJob[];
  /** The lanes may hold more, though they gave less than asked for: ask again. Otherwise they are empty. */
  readonly more?: true;
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
  readonly bands?: readonly Priority[];
  readonly tenants?: readonly string[];
  /** ms */
  readonly duration: number;
}

export interface ClaimedJob {
  readonly id: JobId;
  readonly lane: Lane;
  /** encoded JSON; undefined if the job's row is missing or unreadable: it dies alone */
  readonly input: string | undefined;
  /** its input is sealed, and why it could not be opened */
  readonly unreadable?: Unreadable;
  readonly options: JobOptions | undefined;
  readonly dueAt: number;
  readonly spent: number;
  readonly crashes: number;
  /** asked of it before it was claimed */
  readonly intent?: Intent;
  /** it was claimed under limits on its lane, and holds slots of them */
  readonly limited?: true;
}

export interface Settlement {
  readonly lease: LeaseId;
  readonly job: JobId;
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
  /** Until then it renews nothing, so nothing should be claimed; absent: from the start. */
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
   * ready → running: up to `limit` jobs out of the lanes, each lane in order and within its quota, under one new lease.
   * Lanes of a paused queue, task or tenant give nothing, nor do lanes under a limit. Suspects are never among them.
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
   * that is gone, not the worker's, or without that job, `stale`. A job that ends releases its dependents in the
   * same step. A lease is gone when its last job is settled.
   */
  settle(worker: WorkerRef, settlements: readonly Settlement[], tx?: ForeignTransaction): Promise<readonly Settled[]>;
  /**
   * Expired leases: their unsettled jobs are `crashed`, decided by the same `decide`. Limits the number of leases per
   * call. Answers how many there were, so that the caller goes on while there are more.
   */
  reap(limit: number): Promise<{ readonly leases: number; readonly jobs: number }>;
  /** What was asked of the jobs in these leases. */
  intents(worker: WorkerRef, leases: readonly LeaseId[]): Promise<readonly { readonly job: JobId; readonly intent: Intent }[]>;
  /** Runs user code in a transaction of this store; `settle` with the given tx commits with it. */
  transaction<T>(work: (tx: ForeignTransaction) => Promise<T>): Promise<T>;
}

export interface LiveLanes {
  readonly lanes: readonly Lane[];
  readonly suspects: boolean;
  /** another one than before: policies were changed, see `PolicyStore.list` */
  readonly mark: string;
}

export interface LaneStore {
  /** The lanes with ready jobs, of these queues and tasks (undefined: any). Paused ones are left out. */
  live(queues: readonly string[] | undefined, tasks: readonly string[]): Promise<LiveLanes>;
  /** Stops claims from a whole queue, task or tenant, for every claim that begins after the answer. */
  pause(kind: PolicyKind, name: string): Promise<void>;
  resume(kind: PolicyKind, name: string): Promise<void>;
  paused(): Promise<readonly PolicyRef[]>;
}

/** What is known of tasks to those who have their names and not their code. */
export interface TaskStore {
  /** Makes them known as they are here: the last one who says so is right. Writes, and counts, only what differs. */
  publish(tasks: readonly TaskRecord[]): Promise<number>;
  /** Those that somebody published, in any order. With `tx`, read on the caller's own connection. */
  get(names: readonly string[], tx?: ForeignTransaction): Promise<readonly TaskRecord[]>;
}

/** What waits for a duty, seen by one cheap statement. ms from now; zero or less is due. */
export interface Pulse {
  readonly now: number;
  readonly scheduledIn?: number;
  readonly leaseIn?: number;
  readonly timerIn?: number;
  /** until a schedule is to be looked at */
  readonly tickIn?: number;
  /** until a gate is */
  readonly admitIn?: number;
  readonly intents: boolean;
  readonly unverified: boolean;
  readonly deltas: boolean;
  /** somebody wants to hear what happens in every process */
  readonly watched?: Watched;
  /** ms since the store itself was started, where it knows: leases older than that could not be renewed meanwhile */
  readonly upFor?: number;
}

export interface DutyStore {
  pulse(): Promise<Pulse>;
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

/** Counts by queue, task and state. Kept by deltas: reading them scans nothing that grows with the work. */
export interface CountRow {
  readonly queue: string;
  readonly task: string;
  readonly counts: Readonly<Record<State, number>>;
}

export interface RecordStore {
  counts(): Promise<readonly CountRow[]>;
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
  /** whose job it is: where what is recorded is sealed, it is with that tenant's key */
  readonly tenant?: string;
}

export type Hint =
  /** `front`: jobs that waited at a gate are at the front of these lanes */
  | { readonly kind: "ready"; readonly lanes: readonly Lane[]; readonly front?: true }
  /** ms from now */
  | { readonly kind: "scheduled"; readonly dueIn: number }
  /** a schedule is to be looked at; ms from now */
  | { readonly kind: "tick"; readonly dueIn: number }
  /** a gate is to be looked at; ms from now */
  | { readonly kind: "admit"; readonly dueIn: number }
  | { readonly kind: "intent" }
  | { readonly kind: "finished"; readonly jobs: readonly JobId[] }
  | { readonly kind: "lanes" }
  /** somebody begins to watch, or goes on watching, what happens */
  | { readonly kind: "watch" }
  /** there is more to read of what happened */
  | { readonly kind: "events" };
