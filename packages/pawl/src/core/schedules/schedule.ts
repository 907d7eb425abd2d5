import type { JobId } from "../jobs/id.js";
import type { NewJob } from "../jobs/job.js";
import { spreadOut } from "../jobs/spread.js";
import type { Timing } from "./recurrence.js";

/** A tenant's schedule by its name. */
export interface ScheduleRef {
  readonly tenant: string;
  readonly name: string;
}

/** What the shares of a schedule in a spread are drawn by: its own, and the same in every process. */
export function seedOf({ tenant, name }: ScheduleRef): string {
  return `${tenant}\u0001${name}`;
}

/** All that a deploy or a caller says about a schedule. Two of the same text are the same. */
export interface Definition extends Timing {
  readonly missed: MissedPolicy;
  readonly overlap: OverlapPolicy;
  /** how many of its finished jobs are kept; absent: as long as all others */
  readonly keep?: { readonly succeeded?: number; readonly dead?: number };
  readonly job: ScheduledJob;
}

/** The job of every tick, but for what is the tick's own. */
export type ScheduledJob = Pick<NewJob, "lane" | "input" | "options" | "unique">;

/** What becomes of ticks whose time passed unheeded: the store was away, or the schedule paused. */
export interface MissedPolicy {
  /** none of them, one for all of them, or each of them */
  readonly policy: "skip" | "latest" | "all";
  /** ms a tick may be late and still be on time */
  readonly tolerance: number;
  /** ms after which a missed tick is not made up for */
  readonly window: number;
  /** of `all`: how many are made up for, the newest ones */
  readonly max: number;
  /** of `all`: ms between two of them */
  readonly pace: number;
}

/** What becomes of a tick while the job of an earlier one is unfinished. */
export type OverlapPolicy = "allow" | "skip" | "wait" | "cancel";

/** Who says what the schedule is: code of that application, or whoever called at run time. */
export interface ScheduleRecord extends ScheduleRef {
  readonly definition: Definition;
  /** how often it was changed */
  readonly revision: number;
  readonly app?: string;
  /** what the code of its application says, where it was changed at run time */
  readonly declared?: Definition;
  /** since when the code of its application no longer has it */
  readonly undeclaredSince?: number;
  readonly pausedSince?: number;
  /** the next tick to be decided on; absent: it is over */
  readonly next?: number;
  /** when the store looks at it again; absent while it is paused or over */
  readonly looksAt?: number;
  readonly createdAt: number;
  readonly changedAt: number;
}

/** How a tick came to its job. */
export type TickWay = "fired" | "late" | "triggered" | "backfilled";
/** Why a tick has none: missed while nobody looked, too old, too many, a job of an earlier tick or of the same key was unfinished. */
export type SkipReason = "missed" | "window" | "max" | "overlap" | "key";

/** A tick that has a job. */
export interface FiredTick {
  readonly at: number;
  readonly way: TickWay;
  readonly firedAt: number;
  readonly job: JobId;
  /** ticks that were merged into this one */
  readonly merged: number;
}

/** Ticks in a row that have none, and why. */
export interface TickGap {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly seenAt: number;
  readonly skipped?: SkipReason;
  /** the tick that stands for them */
  readonly mergedInto?: number;
}

/** What a job knows of the tick it is for. */
export interface JobTick {
  readonly schedule: string;
  readonly at: number;
  readonly way: TickWay;
  readonly merged?: number;
}

/** The job of one tick, for the store to enqueue. */
export function jobOfTick(
  { name, definition }: Pick<ScheduleRecord, "name" | "definition">,
  tick: { readonly at: number; readonly way: TickWay; readonly merged: number },
  idSuffix: NewJob["idSuffix"],
): NewJob {
  const { at, way, merged } = tick;
  const jobTick: JobTick = { schedule: name, at, way, ...(merged === 0 ? {} : { merged }) };
  const job: NewJob = { ...definition.job, options: { ...definition.job.options, tick: jobTick }, idSuffix };
  // What a person asks for is for now, or at a pace of its own.
  return way === "fired" || way === "late" ? spreadOut(job) : job;
}

/** Of so many jobs of a schedule the store remembers that they may be unfinished. */
const MAX_OPEN = 10;

/** Which jobs may be unfinished from now on. */
export function openJobs(before: readonly JobId[], added: readonly JobId[]): readonly JobId[] {
  return [...before, ...added].slice(-MAX_OPEN);
}
