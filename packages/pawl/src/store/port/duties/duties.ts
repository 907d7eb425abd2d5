import type { IdSuffixSource } from "../../../core/jobs/id.js";
import type { AttemptRecord, JobRecord } from "../../../core/jobs/job.js";
import type { WatchPeriod } from "../observe/events.js";

/**
 * Work for the whole store that any process may do. A store declares the duties it has. Callers run them by name and need not know
 * what they do; some names are known, since other things follow from them: `promote`, `reap` and `tick`.
 */
export interface DutyStore {
  readonly declared: readonly DutyDeclaration[];
  /** When each duty is due, by one cheap statement. */
  poll(): Promise<Poll>;
  /** One bounded step of a duty. Two processes may do it at once, and it may be repeated. */
  run(duty: string, request: DutyRequest): Promise<DutyReport>;
}

/** The names that callers know. */
export const PROMOTE = "promote";
export const REAP = "reap";
export const TICK = "tick";
export const ADMIT = "admit";

export interface DutyDeclaration {
  readonly name: string;
  /** `poll`: the poll says when it is due. `period`: it is due once per period, and nothing waits for it. */
  readonly dueBy: "poll" | "period";
  /** the largest `limit` that is of use */
  readonly maxLimit?: number;
}

export interface Poll {
  /** the store's clock */
  readonly now: number;
  /** ms from now until each duty is due; zero or less is now. A duty that is not in here has nothing in sight. */
  readonly due: ReadonlyMap<string, number>;
  /** somebody wants to hear what happens in every process */
  readonly watched?: WatchPeriod;
  /** ms since the store itself was started, where it knows: leases older than that could not be renewed meanwhile */
  readonly upFor?: number;
}

/** Everything that a duty may need; each reads its own part. */
export interface DutyRequest {
  /** rows, leases or keys that one step handles */
  readonly limit: number;
  readonly keep: Retention;
  /** for the ids of jobs that schedules make */
  readonly idSuffixes: IdSuffixSource;
  /** sees the finished jobs about to go, in batches, before they do; if it throws they stay */
  readonly exportFinished?: (batch: readonly ExportedJob[]) => Promise<void>;
}

/** How long things are kept, in ms, and how many rows of the series. */
export interface Retention {
  readonly finished: number;
  readonly dead: number;
  readonly series: number;
  readonly seriesRows: number;
  readonly events: number;
}

export interface DutyReport {
  /** how much was done */
  readonly count: number;
  /** there may be more to do at once */
  readonly more: boolean;
  /** ms until there is more to do, where that is known */
  readonly nextIn?: number;
  /** what was done, by the duty's own names: `leases` and `jobs` of a `reap`, `schedules`, `jobs` and `latest` (ms) of a `tick` */
  readonly counts?: Readonly<Record<string, number>>;
  /** why some of it could not be done; it is tried again later */
  readonly failures?: readonly unknown[];
}

export interface ExportedJob {
  readonly job: JobRecord;
  readonly history: readonly AttemptRecord[];
}
