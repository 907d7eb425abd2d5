import type { JobId } from "../core/jobs/id.js";
import type { JobState } from "../core/jobs/job.js";
import type { Task } from "../core/jobs/task.js";
import type { StoredDefaults } from "../core/jobs/task-record.js";
import type { Finding } from "../core/observe/doctor.js";
import type { EventName, Events } from "../core/observe/event.js";
import type { Policies, PolicyChanges, PolicyKind, QueuePolicy, TaskPolicy, TenantPolicy } from "../core/sharing/policy.js";
import type { Duration } from "../core/values/duration.js";
import type { PawlError } from "../core/values/error.js";
import type { JsonSchema } from "../core/values/json-schema.js";
import type { ExportedJob } from "../store/port/duties/duties.js";
import type { StoreInfo } from "../store/port/index.js";
import type { StoredJobFilter } from "../store/port/jobs/jobs.js";
import type { Targets } from "./access/targets.js";
import type { Tenants } from "./access/tenants.js";
import type { Tasks } from "./jobs/tasks.js";
import type { AttemptView, JobView, LogView } from "./jobs/view.js";
import type { BreakersOperator } from "./limits/breakers.js";
import type { LimitsOperator } from "./limits/limits-view.js";
import type { CountsOptions, JobCounts, StateCounts } from "./observe/counts.js";
import type { DoctorOptions } from "./observe/doctor.js";
import type { Explanation } from "./observe/explain.js";
import type { Lanes, LiveWorkers } from "./observe/lanes-and-workers.js";
import type { SeriesOptions, SeriesView } from "./observe/series.js";
import type {
  CallOptions,
  EnqueueAllOptions,
  EnqueueItem,
  EnqueueManyOptions,
  EnqueueOptions,
  EnqueueStreamOptions,
  JobRef,
  StreamSummary,
} from "./options.js";
import type { PagedList, PageOptions } from "./page.js";
import type { Instant } from "./schedules/schedule.js";
import type { Schedules } from "./schedules/schedules.js";

/** Input may be left out where the task takes none. */
type InputAndOptions<In, Options> = undefined extends In ? [input?: In, options?: Options] : [input: In, options?: Options];

/**
 * What producers and operators of one tenant, or of all, can do: the same for a store in this process and for a
 * server far away. Ids may be given as texts; malformed, foreign and unknown ones are all `job_unknown`.
 */
export interface Scheduler {
  /**
   * Stores one job and answers with its handle. Calls made in the same turn of the event loop share a write.
   * A task can be given by name, where its code is not at hand.
   */
  enqueue<In, Out, Parsed>(task: Task<In, Out, Parsed>, ...rest: InputAndOptions<In, EnqueueOptions>): Promise<Job<Out>>;
  enqueue(task: string, input?: unknown, options?: EnqueueOptions): Promise<Job>;
  /**
   * Stores one job, waits until it has succeeded, and answers with its output. It throws `job_failed` if the job is dead or
   * cancelled, and `wait_timeout` after `wait`: the job goes on then, and `details.job` is its id.
   */
  call<In, Out, Parsed>(task: Task<In, Out, Parsed>, ...rest: InputAndOptions<In, CallOptions>): Promise<Out>;
  call(task: string, input?: unknown, options?: CallOptions): Promise<unknown>;
  /**
   * Stores many jobs, and answers with their handles in order. Up to 1,000 (and 16 MB of input) all are stored or
   * none; beyond that, chunk by chunk (with `each` the jobs of a lane go together), and the error of a failed chunk says how
   * many were stored (`details.stored`).
   * A job whose key is taken is no error here: its handle says `rejected` and is that of the holder.
   */
  enqueueMany<In, Out, Parsed>(
    task: Task<In, Out, Parsed>,
    inputs: readonly NoInfer<In>[],
    options?: EnqueueManyOptions<NoInfer<In>>,
  ): Promise<readonly Job<Out>[]>;
  enqueueMany(task: string, inputs: readonly unknown[], options?: EnqueueManyOptions<unknown>): Promise<readonly Job[]>;
  /**
   * Stores jobs of any tasks in one step, up to 1,000 of them, and answers for each in order: its handle, or what was wrong
   * with it. With an idempotency key it can be repeated, and says so.
   */
  enqueueAll(items: readonly EnqueueItem[], options?: EnqueueAllOptions): Promise<EnqueueAllResult>;
  /** Stores what an iterable yields, chunk by chunk, at a flat cost of memory however long it is. */
  enqueueStream<In, Out, Parsed>(
    task: Task<In, Out, Parsed>,
    inputs: Iterable<NoInfer<In>> | AsyncIterable<NoInfer<In>>,
    options?: EnqueueStreamOptions<NoInfer<In>>,
  ): Promise<StreamSummary>;
  enqueueStream(task: string, inputs: Iterable<unknown> | AsyncIterable<unknown>, options?: EnqueueStreamOptions<unknown>): Promise<StreamSummary>;

  readonly jobs: Jobs;
  readonly dead: Dead;
  readonly schedules: Schedules;
  readonly targets: Targets;

  /** How many jobs are in each state, right now. Of one tenant it is counted when it is asked for, and without those that have succeeded or were cancelled. */
  counts(of?: CountsOptions): Promise<JobCounts>;

  /** The same for one tenant, seeing and changing nothing but its jobs. */
  forTenant(tenant: string): Scheduler;
}

export interface EnqueueAllResult {
  /** the idempotency key was known, and this is the answer of the first time */
  readonly repeated: boolean;
  readonly results: readonly EnqueueAnswer[];
}
/** As with `enqueueMany`, a job whose key is taken is no error. */
export type EnqueueAnswer = Job | { readonly error: PawlError };

/** A job that was enqueued. Everything it can do is also in `pawl.jobs`, by id. */
export interface Job<Out = unknown> {
  readonly id: JobId;
  readonly task: string;
  /** `existing`: the key or idempotency key was known and this is its job. `rejected` (from `enqueueMany` only): this is the holder of the key. */
  readonly enqueued: "created" | "existing" | "rejected";
  /** the job this one took the place of */
  readonly replaced?: JobId;
  get(): Promise<JobView<Out>>;
  /** Waits until it has succeeded, and answers with its output; throws `job_failed` if it is dead or cancelled. */
  result(how?: Wait): Promise<Out>;
  /** Waits until it is finished, however it ends. */
  wait(how?: Wait): Promise<JobView<Out>>;
  /** oldest first: attempts, claims lost to crashes, and what people did */
  history(page?: PageOptions): PagedList<AttemptView>;
  logs(page?: PageOptions): PagedList<LogView>;
  /** why it is not running, and when it will */
  explain(): Promise<Explanation>;
  cancel(reason?: string): Promise<JobChange>;
  pause(reason?: string): Promise<JobChange>;
  resume(reason?: string): Promise<JobChange>;
  promote(reason?: string): Promise<JobChange>;
  redrive(how?: RedriveJobOptions): Promise<JobChange>;
  /** a new job like this finished one */
  rerun(): Promise<Job<Out>>;
  /** a finished one, gone with its history */
  delete(reason?: string): Promise<void>;
}

export interface WaitOptions {
  /** `wait_timeout` after this long; for ever if left out */
  readonly wait?: Duration;
  readonly signal?: AbortSignal;
}

/** How long a call waits: `"30s"`, or `{ wait, signal }`. */
export type Wait = Duration | WaitOptions;

/** From which state to which. They are equal where a worker holds the job and was asked to see to it. */
export interface JobChange {
  readonly from: JobState;
  readonly to: JobState | "deleted";
}

export interface RedriveJobOptions {
  /** in place of the old input, and checked like any other */
  readonly input?: unknown;
  readonly delay?: Duration;
  /** why; its history keeps it */
  readonly reason?: string;
}

/** The verbs for all jobs of a filter. */
export const BULK_VERBS = ["cancel", "pause", "resume", "promote", "redrive", "delete"] as const;
export type BulkVerb = (typeof BULK_VERBS)[number];

export interface BulkOptions {
  /** jobs changed at most; all if left out */
  readonly limit?: number;
  /** of `redrive`: the first at once, each next one this much later: a duration, or a rate such as "50/s" */
  readonly pace?: Duration;
  /** why, for the events and histories of the jobs */
  readonly reason?: string;
}

/**
 * Verbs that do not apply in a job's state are refused with `job_state_conflict`. A `reason` is told with the event
 * `job.changed`; the history keeps those of `cancel` and `redrive`.
 */
export interface Jobs {
  get(job: JobRef): Promise<JobView>;
  /**
   * Newest due time first. A page holds 4 MB of inputs and outputs at most, and may be short where a million jobs were
   * looked through: it is the last one only if it has no `next`.
   */
  list(filter?: JobFilter, page?: PageOptions): PagedList<JobView>;
  /** How many jobs there are of a filter. By state, queue and task they are counted; anything finer is found by listing. */
  count(filter?: JobFilter): Promise<number>;
  /** oldest first: attempts, claims lost to crashes, and what people did */
  history(job: JobRef, page?: PageOptions): PagedList<AttemptView>;
  logs(job: JobRef, page?: PageOptions): PagedList<LogView>;
  /** why it is not running, and when it will: what stands in its way, as data and in words */
  explain(job: JobRef): Promise<Explanation>;
  /** at once if it waits; if it runs, its worker is told, and it ends as cancelled unless it finishes first */
  cancel(job: JobRef, reason?: string): Promise<JobChange>;
  pause(job: JobRef, reason?: string): Promise<JobChange>;
  resume(job: JobRef, reason?: string): Promise<JobChange>;
  /** now, instead of when it is due */
  promote(job: JobRef, reason?: string): Promise<JobChange>;
  /** a dead job, again, with fresh counts, and with another input if asked */
  redrive(job: JobRef, how?: RedriveJobOptions): Promise<JobChange>;
  /** a new job like a finished one: the same lane, input and options, without its key */
  rerun(job: JobRef): Promise<Job>;
  /** a finished job, gone with its history */
  delete(job: JobRef, reason?: string): Promise<void>;
  /**
   * One verb on all jobs of a filter, newest first; those that it does not apply to are skipped. One failing job stops none of
   * the others. Give a filter with a state, so that jobs are not looked at in vain.
   */
  bulk(verb: BulkVerb, filter: JobFilter, how?: BulkOptions): Promise<BulkReport>;
  /** Brings back what `keep.exportFinished` was given, with its history. Answers how many were missing and are there again. */
  restore(jobs: readonly ExportedJob[]): Promise<number>;
  /** Waits until it is finished, however it ends. */
  wait(job: JobRef, how?: Wait): Promise<JobView>;
  /** Waits for its output; throws `job_failed` if it is dead or cancelled. */
  result(job: JobRef, how?: Wait): Promise<unknown>;
}

export interface JobFilter extends Omit<StoredJobFilter, "fingerprint" | "since" | "until"> {
  readonly tenant?: string;
  /** of what killed it, as `pawl.dead.groups()` tells it */
  readonly fingerprint?: string;
  /** due from then on, and before then. (One enqueued more than three months ahead is found at the end of those.) */
  readonly since?: Instant;
  readonly until?: Instant;
}

export type DeadFilter = Omit<JobFilter, "state">;

export interface Dead {
  list(filter?: DeadFilter, page?: PageOptions): PagedList<JobView>;
  count(filter?: DeadFilter): Promise<number>;
  /** Dead jobs by what they died of, the largest group first. */
  groups(filter?: DeadGroupsFilter, page?: PageOptions): PagedList<DeadGroupView>;
  redrive(filter?: DeadFilter, how?: RedriveManyOptions): Promise<BulkReport>;
  delete(filter?: DeadFilter, how?: Omit<BulkOptions, "pace">): Promise<BulkReport>;
}

export type DeadGroupsFilter = Pick<DeadFilter, "tenant" | "queue" | "task" | "failure">;

/** Dead jobs of one cause: the same task and class, and a message that differs in numbers, ids and quoted parts only. */
export interface DeadGroupView {
  /** for filters: `pawl.dead.redrive({ fingerprint })` */
  readonly fingerprint: string;
  readonly task: string;
  readonly kind: string;
  readonly name: string;
  /** what their messages have in common */
  readonly message: string;
  readonly count: number;
  readonly firstSeen: Date;
  readonly lastSeen: Date;
  /** the one of them that was due last */
  readonly sample: JobView;
}

export interface RedriveManyOptions extends BulkOptions {
  /** makes the new input out of the old one; undefined leaves it as it is */
  readonly edit?: (input: unknown, job: JobView) => unknown;
}

export interface BulkReport {
  /** how many were changed */
  readonly changed: number;
  /** how many somebody else changed first */
  readonly skipped: number;
  /** how many could not be changed, and the first few of them */
  readonly failed: number;
  readonly failures: readonly { readonly job: JobId; readonly error: unknown }[];
}

/** What an operator of the whole store can do besides. */
export interface Operator extends Scheduler {
  readonly queues: PolicyOperator<"queue", QueueView>;
  readonly tasks: Tasks;
  readonly tenants: Tenants;
  readonly breakers: BreakersOperator;
  readonly limits: LimitsOperator;
  readonly lanes: Lanes;
  readonly workers: LiveWorkers;
  /** What is wrong with the store and those who work on it: what it costs, and how to mend it. */
  doctor(options?: DoctorOptions): Promise<readonly Finding[]>;
  counts(of?: CountsOptions): Promise<StateCounts>;
  /** What happened over time, step by step: enqueued, started, succeeded, retried, died, cancelled; and what stood then. */
  series(of?: SeriesOptions): Promise<SeriesView>;
  info(): Promise<PawlInfo>;
  /** Has workers look at once, after a transaction of your own in which jobs were enqueued has committed. */
  wake(): void;
  /** Calls back on every such event in this process, until the answer is called. */
  on<E extends EventName>(name: E, listener: (event: Events[E]) => void): () => void;
}

/** What holds for all of a queue, task or tenant, in every process. */
export interface PolicyOperator<Kind extends PolicyKind, View> {
  /** Stops claims from all of it; what runs goes on. The event `claims.paused` tells the reason. */
  pause(name: string, reason?: string): Promise<void>;
  resume(name: string, reason?: string): Promise<void>;
  /**
   * Changes its policy: how it shares, and its limits over all workers. What is left out stays as it is, null takes it
   * away. Limits hold for every claim from the answer on; workers share by new weights within a second or two.
   */
  update(name: string, changes: PolicyChanges[Kind]): Promise<Policies[Kind]>;
  /** one that nobody has heard of has no policy and no jobs */
  get(name: string): Promise<View>;
  /** All of them on one page; of tenants, those that are paused or have a policy. */
  list(): PagedList<View>;
}

export interface TenantView {
  readonly tenant: string;
  readonly paused: boolean;
  readonly policy: TenantPolicy;
}

export interface QueueView {
  readonly queue: string;
  readonly paused: boolean;
  readonly policy: QueuePolicy;
  readonly counts: StateCounts;
}

export interface TaskView {
  readonly task: string;
  readonly paused: boolean;
  readonly policy: TaskPolicy;
  /** whether this process has its code */
  readonly registered: boolean;
  readonly counts: StateCounts;
  /** as they were published with its code or by `define`; told of one task, not in lists */
  readonly defaults?: StoredDefaults;
  /** of its input, where that is known */
  readonly inputSchema?: JsonSchema;
}

export interface PawlInfo extends StoreInfo {
  /** whether wakeups from other processes arrive, or everybody polls */
  readonly receivesWakeups: boolean;
  readonly tasks: readonly string[];
}
