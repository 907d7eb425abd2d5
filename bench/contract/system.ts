/**
 * What is measured: a *system* is Pawl or a peer, and a file in `systems/` is how it is spoken to. It runs in child
 * processes (`child.ts`), which obey the same commands whatever their language.
 */

export type StoreKind = "postgres" | "redis" | "folder";

/** What everybody may know of a system without loading it. */
export interface SystemAbout {
  readonly name: string;
  /** for people */
  readonly label: string;
  readonly store: StoreKind;
  readonly version: string;
  /** its settings in words, and why they are its best */
  readonly settings: string;
  /** whether finished jobs are still there to be counted */
  readonly keepsHistory: boolean;
  /** can run jobs at a given time */
  readonly delays: boolean;
  /** takes minutes for what the others do in seconds: it is given a tenth of the jobs where only their rate counts */
  readonly slow?: true;
}

/** Where a child finds its store: an empty one of its own. */
export type StoreLocation =
  | {
      readonly kind: "postgres";
      readonly url: string;
      readonly host: string;
      readonly port: number;
      readonly user: string;
      readonly database: string;
    }
  | { readonly kind: "redis"; readonly socket: string }
  | { readonly kind: "folder"; readonly folder: string };

/** What a job carries: its number, and what its handler compares with the clock. */
export interface Input {
  readonly n: number;
  /** when its enqueue began, ms of the machine's monotonic clock, the same in all processes */
  readonly at?: number;
  /** when it is due, ms since 1970 */
  readonly due?: number;
  /** how long its handler takes; left out: no time */
  readonly ms?: number;
  /** what it is limited by, where the system has limits */
  readonly key?: string;
}

/** A job to enqueue. `input.due`, if given, is when it shall run. */
export interface PlannedJob {
  readonly input: Input;
  readonly tenant?: string;
  readonly limited?: Limited;
}

/** A schedule to store. `input.due`, if given, is the tick that is waited for. */
export interface PlannedSchedule {
  readonly tenant: string;
  readonly input: Input;
  readonly times: { readonly cron: string; readonly timeZone: string } | { readonly every: `${number}d`; readonly start: number };
}

/** Drained as fast as it can, or started as soon as it can: some systems have a setting for each. */
export type Aim = "throughput" | "latency";

export interface WorkSettings {
  /** handlers at a time; left out: the system's best */
  readonly concurrency?: number;
  /** workers in this process, where a system can have several (default 1) */
  readonly workers?: number;
  /** keep a record for `watched`, which costs a little */
  readonly watch?: boolean;
}

/** What a file in `systems/` exports. */
export interface SystemModule {
  connect(location: StoreLocation, aim: Aim): Promise<Session>;
}

/** One process's connection to a system's store. */
export interface Session {
  /** makes tables and queues: once per place, before anything is timed */
  prepare(): Promise<void>;
  enqueue(job: PlannedJob): Promise<void>;
  /** the fastest documented way to enqueue many, in chunks of the system's choosing */
  enqueueMany(jobs: Iterable<PlannedJob>): Promise<void>;
  /** from an endless source at a flat cost of memory, where there is such a thing; hears how many are stored */
  enqueueStream?(jobs: AsyncIterable<PlannedJob>, stored: (count: number) => void): Promise<void>;
  /** as a deploy does, all at once, where there is such a thing */
  putSchedules?(schedules: readonly PlannedSchedule[]): Promise<void>;
  /** starts the worker and answers when it is ready; calls `handle` once per attempt */
  work(handle: (input: Input) => void, settings: WorkSettings): Promise<void>;
  /** what the system says of its own work since it was last asked, or since `work` was called with `watch` */
  watched?(): Watched;
  /** no worker of any process claims until `resume`, so that a backlog can be made before workers that are warm */
  pause?(): Promise<void>;
  resume?(): Promise<void>;
  /** stops gracefully: what was handled is recorded */
  stop(): Promise<void>;
}

/** What a system says of its own work. */
export interface Watched {
  /** how long its claims took, as the worker saw it */
  readonly claims: Spread;
  /** whatever did not go as it should: failed operations and duties, lost leases, stale settlements */
  readonly errors: number;
  /** the first few of them */
  readonly samples: readonly string[];
}

/** Percentiles of what was recorded, in ms. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
  readonly mean: number;
}

/** What jobs are limited by: see `Jobs.limited`. */
export type Limited = "one key" | "parked";
