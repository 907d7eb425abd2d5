import type { Limited, Spread, SystemAbout, Watched, WorkSettings } from "./system.ts";

/** What a scenario says to a child: one process of a system. */

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
