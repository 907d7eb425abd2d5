/**
 * What the parts of the benchmark say to each other. A *system* is Pawl or a peer. It runs in *child* processes, which
 * obey the same commands whatever their language. A *scenario* measures systems by giving children commands.
 */

// ---- systems: what is measured

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
export type Place =
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
export interface Planned {
  readonly input: Input;
  readonly tenant?: string;
  readonly limited?: Limited;
}

/** A schedule to store. `input.due`, if given, is the tick that is waited for. */
export interface PlannedSchedule {
  readonly tenant: string;
  readonly input: Input;
  readonly times: { readonly cron: string; readonly zone: string } | { readonly every: `${number}d`; readonly start: number };
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
  connect(place: Place, aim: Aim): Promise<Session>;
}

/** One process's connection to a system's store. */
export interface Session {
  /** makes tables and queues: once per place, before anything is timed */
  prepare(): Promise<void>;
  enqueue(job: Planned): Promise<void>;
  /** the fastest documented way to enqueue many, in chunks of the system's choosing */
  enqueueMany(jobs: Iterable<Planned>): Promise<void>;
  /** from an endless source at a flat cost of memory, where there is such a thing; hears how many are stored */
  enqueueStream?(jobs: AsyncIterable<Planned>, stored: (count: number) => void): Promise<void>;
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

// ---- children: the commands

/** Which jobs: numbers `from` … `from + count - 1`. */
export interface Jobs {
  readonly count: number;
  /** default 0 */
  readonly from?: number;
  /** due at instants scattered evenly, in random order, over `over` ms from `start` (ms since 1970) */
  readonly due?: { readonly start: number; readonly over: number };
  /** half of all jobs in the first tenant, the rest evenly in the others */
  readonly tenants?: number;
  /** all of one tenant */
  readonly tenant?: string;
  /** of so many tenants in turn, none of which has others */
  readonly newcomers?: number;
  /** ms that each handler takes, where the system has such jobs */
  readonly ms?: number;
  /** every hundredth is of a key of which 50 may run at a time; or all are of a key that lets in one a day */
  readonly limited?: Limited;
}
export type Limited = "one key" | "parked";

/** Which schedules: one per tenant, due at `at` (ms since 1970) or from then on. */
export interface Schedules {
  readonly count: number;
  readonly at: number;
  /** at one time of day in every zone, all at that instant, or over so many ms */
  readonly when: "everywhere" | "at once" | { readonly over: number };
}

export interface Took {
  readonly count: number;
  /** ms */
  readonly ms: number;
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

/** What the handlers of one child have seen. */
export interface Ran {
  readonly count: number;
  /** handler calls beyond the first for the same number */
  readonly twice: number;
  /** the first and the last handler call, ms of the monotonic clock */
  readonly first: number;
  readonly last: number;
  /** enqueue to handler start (jobs with `at`) */
  readonly latency: Spread;
  /** due time to handler start (jobs with `due`) */
  readonly lateness: Spread;
}

export interface Usage {
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly peakRssBytes: number;
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

export interface WorkCommand extends WorkSettings {
  /** the highest job number, plus one, that may come: numbers are ticked off up to it */
  readonly upTo: number;
}

/** What a scenario asks of one process of a system. All times are taken inside that process. */
export interface Child {
  readonly system: SystemAbout;
  readonly pid: number;
  prepare(): Promise<void>;
  enqueueMany(jobs: Jobs): Promise<Took>;
  /** awaited one by one, or with so many in flight */
  enqueueEach(jobs: Jobs & { readonly inFlight: number }): Promise<Took & { readonly latency: Spread }>;
  /** so many per second, evenly, each carrying the moment of its enqueue */
  enqueuePaced(jobs: Jobs & { readonly perSecond: number }): Promise<Took>;
  /** chunk after chunk for so long, never more than `backlog` ahead of what `done` was last told */
  enqueueFor(command: { readonly ms: number; readonly chunk: number; readonly backlog: number }): Promise<Took>;
  /** tells a child in `enqueueFor` how many jobs have run elsewhere */
  done(count: number): void;
  /** through `enqueueStream`; answers ms and RSS after each tenth */
  enqueueStream(jobs: Jobs): Promise<Took & { readonly tenths: readonly { readonly ms: number; readonly rssBytes: number }[] }>;
  /** see `Session.putSchedules`; answers how many of them are due then */
  putSchedules(schedules: Schedules): Promise<{ readonly due: number }>;
  /** starts the worker; answers the monotonic ms at which the call began */
  work(command: WorkCommand): Promise<{ readonly began: number }>;
  /** waits until so many jobs have run in this process */
  ran(count: number): Promise<Ran>;
  /** what has run so far */
  report(): Promise<Ran>;
  /** see `Session.watched` */
  watched(): Promise<Watched>;
  /** see `Session.pause` */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** forgets what has run so far, for another round with the same worker; `upTo` as in `work` */
  forget(upTo: number): Promise<void>;
  usage(): Promise<Usage>;
  /** hears, some ten times a second, how many jobs have run or were enqueued by the current command */
  onProgress(listener: (count: number) => void): void;
  /** stops the worker gracefully, closes connections; the process ends */
  stop(): Promise<void>;
}

// ---- the second connection: what the store itself says

export interface Counts {
  /** enqueued and not finished, running ones included */
  readonly unfinished: number;
  /** finished well and still there; undefined where the system deletes them */
  readonly finished: number | undefined;
}

/** What a system's server has spent since it was started. Differences count. */
export interface ServerUsage {
  readonly cpuMs: number;
  /** WAL, or the append-only file */
  readonly logBytes: number;
  /** of the database, or the dataset in memory */
  readonly dataBytes: number;
  /** transactions, where there are any */
  readonly commits: number;
  /** statements or commands; on Postgres only counted in a place made with `countStatements` */
  readonly statements: number;
}

export interface Inspector {
  /** false: nobody else can look while a process has it open (PGlite) */
  readonly shared: boolean;
  counts(): Promise<Counts>;
  /** the cheaper half of `counts` */
  unfinished(): Promise<number>;
  usage(): Promise<ServerUsage>;
  /** Postgres only: opens a transaction with a snapshot and keeps it until the answer is called */
  pin(): Promise<() => Promise<void>>;
  /** SQL on Postgres */
  query<Row extends object>(sql: string): Promise<readonly Row[]>;
}

// ---- scenarios: what is asked

/** One repetition's view of one system: an empty store, and everything started on it ends with it. */
export interface Turn {
  readonly system: SystemAbout;
  readonly place: Place;
  readonly inspect: Inspector;
  /** a process of the system; the first one of a turn has called `prepare` */
  start(): Promise<Child>;
  /** the live line */
  say(text: string): void;
  /** throws unless the store has no unfinished job left and, where it keeps history, so many finished ones */
  verify(finished: number): Promise<void>;
  /** waits until the store has recorded every outcome; answers the monotonic ms at which that was so (if not `shared`: now) */
  recorded(finished: number): Promise<number>;
}

/** Figures of one repetition, or of all: names end in their unit (`perSecond`, `p99Ms`, `walKB`, `rssMB`, `cpuSeconds`). */
export type Figures = Readonly<Record<string, number>>;

export interface TurnOptions {
  /** of the systems taking part; left out: all of the scenario's that were asked for */
  readonly systems?: readonly SystemAbout[];
  /** which of their best settings systems use (default: throughput) */
  readonly aim?: Aim;
  /** count statements on Postgres, which costs a little */
  readonly countStatements?: boolean;
  /** what this round is about, for the live line ("pinned", "1M ready") */
  readonly title?: string;
  /** left out: the scenario's */
  readonly runs?: number;
}

/** The samples of each system, by its name, one per repetition. */
export type Samples<F extends Figures = Figures> = ReadonlyMap<string, readonly F[]>;

/** What a scenario gets. */
export interface Bench {
  readonly jobs: number;
  readonly runs: number;
  /** the scenario's systems that were asked for and can run here */
  readonly systems: readonly SystemAbout[];
  /** measures every system in every repetition, in turns: a, b, c, a, b, c */
  turns<F extends Figures>(measure: (turn: Turn) => Promise<F>, options?: TurnOptions): Promise<Samples<F>>;
  say(text: string): void;
}

/** One row of the table. `case` tells rows of the same system apart. */
export interface Result {
  readonly system: string;
  readonly case?: string;
  readonly [figure: string]: number | string | undefined;
}

/** Something that is better seen as lines than as bars. */
export interface Curve {
  readonly head: string;
  readonly stops: readonly string[];
  /** one value per stop; null where there is none */
  readonly lines: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
  readonly unit?: string;
}

export interface Outcome {
  readonly results: readonly Result[];
  /** as the issue of each scenario defines it; null where it was not measured (`--only pawl`) */
  readonly ratio: number | null;
  /** what `bars.ts` has a bar for, by its name there, and what else is worth a name */
  readonly parts: Readonly<Record<string, number>>;
  /** drawn in place of bars */
  readonly curves?: readonly Curve[];
}

export interface Scenario {
  readonly name: string;
  /** one sentence */
  readonly measures: string;
  readonly systems: readonly string[];
  readonly jobs: number;
  readonly runs: number;
  run(bench: Bench): Promise<Outcome>;
}

// ---- reports: what is handed to `report/`

export interface Report extends Outcome {
  readonly scenario: string;
  readonly measures: string;
  readonly jobs: number;
  readonly runs: number;
  /** those that took part */
  readonly systems: readonly SystemAbout[];
  /** one line each: the servers' versions and configuration, the Node of the children */
  readonly servers: Readonly<Record<string, string>>;
  /** what could not take part, and why */
  readonly skipped: Readonly<Record<string, string>>;
  readonly took: { readonly ms: number };
}
