import type { AnyTask, Task } from "../../core/jobs/task.js";
import { checkPace } from "../../core/limits/token-bucket.js";
import { cronOf } from "../../core/schedules/cron.js";
import { MAX_TICKS } from "../../core/schedules/due-ticks.js";
import { type DstPolicy, instantIn, nextTick, type RecurrenceRule, type Timing } from "../../core/schedules/recurrence.js";
import {
  type Definition,
  type MissedPolicy,
  type OverlapPolicy,
  type ScheduledJob,
  type ScheduleRef,
  seedOf,
} from "../../core/schedules/schedule.js";
import { timeZoneOf } from "../../core/schedules/time-zone.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Duration } from "../../core/values/duration.js";
import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import { checkDuration, checkKeys, checkObject, checkOneOf, checkPeriod, checkWhole, invalid, shortened, show } from "../../core/values/option.js";
import { checkInstant } from "../check.js";
import { optionNames } from "../enqueue/option-table.js";
import type { EnqueueOptions } from "../options.js";

/** A Date, ms since 1970, or an ISO 8601 text; a text without an offset is a time in the schedule's zone. */
export type Instant = Date | number | string;

/** When a schedule ticks, and what becomes of the ticks that cannot fire as planned. One of `cron`, `every` and `at`. */
export interface ScheduleTimes {
  /** five or six fields, as in docs/schedules.md */
  readonly cron?: string;
  /** counted from `start`, or from 1970: elapsed time, whatever the clocks do */
  readonly every?: Duration;
  readonly at?: Instant;
  /** of the tz database; UTC if left out */
  readonly timeZone?: string;
  readonly start?: Instant;
  readonly end?: Instant;
  /** of schedules with a fixed time of day: where the clocks skip it, and where they show it twice */
  readonly dst?: Partial<DstPolicy>;
  readonly missed?: MissedPolicy["policy"] | MissedOptions;
  readonly overlap?: OverlapPolicy;
  /** moves the whole schedule by a part of this, its own and always the same */
  readonly stagger?: Duration;
  /** moves each tick by a part of this, its own and always the same */
  readonly jitter?: Duration;
  /** how many of its finished jobs are kept */
  readonly keep?: { readonly succeeded?: number; readonly dead?: number };
}

export interface MissedOptions {
  readonly policy?: MissedPolicy["policy"];
  /** how late a tick may be and still be on time */
  readonly tolerance?: Duration;
  /** how old a missed tick may be to be made up for; `all` asks for it */
  readonly window?: Duration;
  /** of `all`: how many are made up for, the newest ones */
  readonly max?: number;
  /** of `all`: the time between two of them */
  readonly pace?: Duration;
}

/** What each of its jobs is enqueued with; the tick says the rest. */
export type ScheduledJobOptions = Omit<
  EnqueueOptions,
  "delay" | "runAt" | "tenant" | "idempotencyKey" | "dependsOn" | "onDependencyDeath" | "trace" | "tx" | "debounce"
>;

export interface ScheduleOptions<In = unknown> extends ScheduleTimes {
  readonly tenant?: string;
  readonly input?: In;
  readonly job?: ScheduledJobOptions;
}

/** Input may be left out where the task takes none. */
export type ScheduleOptionsOf<In> = undefined extends In ? ScheduleOptions<In> : ScheduleOptions<In> & { readonly input: In };

/** A schedule that is part of the code, for `open(url, { schedules: [...] })`. */
export interface CodeSchedule {
  readonly name: string;
  readonly task: AnyTask | string;
  readonly options: ScheduleOptions;
}

export function schedule<In, Out, Parsed>(name: string, task: Task<In, Out, Parsed>, options: ScheduleOptionsOf<NoInfer<In>>): CodeSchedule;
export function schedule(name: string, task: string, options: ScheduleOptions): CodeSchedule;
export function schedule(name: string, task: AnyTask | string, options: ScheduleOptions): CodeSchedule {
  return { name: checkName("schedule", name), task, options };
}

const TIME_NAMES = {
  cron: true,
  every: true,
  at: true,
  timeZone: true,
  start: true,
  end: true,
  dst: true,
  missed: true,
  overlap: true,
  stagger: true,
  jitter: true,
  keep: true,
} satisfies Record<keyof ScheduleTimes, true>;
export const TIME_KEYS: ReadonlySet<string> = new Set(Object.keys(TIME_NAMES));
const OPTION_KEYS: ReadonlySet<string> = new Set([...TIME_KEYS, "tenant", "input", "job"]);
const JOB_KEYS: ReadonlySet<string> = new Set(optionNames(({ alsoOf }) => alsoOf?.includes("schedule") === true));

export function checkScheduleOptions(options: unknown): ScheduleOptions {
  const scheduleOptions = checkObject("options", options) as ScheduleOptions;
  checkKeys(scheduleOptions, OPTION_KEYS);
  if (scheduleOptions.job !== undefined) checkKeys(checkObject("job", scheduleOptions.job), JOB_KEYS, "job.");
  return scheduleOptions;
}

const DST_KEYS = new Set(["gap", "overlap"]);
const MISSED_KEYS = new Set(["policy", "tolerance", "window", "max", "pace"]);
const KEEP_KEYS = new Set(["succeeded", "dead"]);
const MIN_EVERY_MS = 1_000;
const MAX_JOBS_KEPT = 10_000;

/** All that a caller says about a schedule, checked, in stored form. What could never tick is refused here. */
export function definitionOf(ref: ScheduleRef, times: ScheduleTimes, job: ScheduledJob): Definition {
  const zone = times.timeZone ?? DEFAULTS.schedule.timeZone;
  if (typeof zone !== "string") throw pawlError("time_zone_unknown", { zone: shortened(zone) });
  timeZoneOf(zone);
  const dst = checkDst(times.dst);
  const instant = (option: "start" | "end" | "at", value: Instant) => checkCivil(option, value, zone, dst);
  const start = times.start === undefined ? undefined : instant("start", times.start);
  const end = times.end === undefined ? undefined : instant("end", times.end);
  if (start !== undefined && end !== undefined && end < start) throw invalid("end", "it is before the start");
  const timing: Timing = {
    rule: checkRule(times, zone, dst, instant),
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
    ...(times.stagger === undefined ? {} : { stagger: checkDuration("stagger", times.stagger) }),
    ...(times.jitter === undefined ? {} : { jitter: checkDuration("jitter", times.jitter) }),
  };
  const never = neverReason(timing, seedOf(ref));
  if (never !== undefined) throw pawlError("schedule_never_ticks", { schedule: ref.name, reason: never });
  const keep = checkKeep(times.keep);
  return {
    ...timing,
    missed: checkMissed(times.missed, () => defaultPace(timing, seedOf(ref))),
    overlap: checkOneOf("overlap", times.overlap ?? DEFAULTS.schedule.overlap, ["allow", "skip", "wait", "cancel"]),
    ...(keep === undefined ? {} : { keep }),
    job,
  };
}

/** Some day of the calendar, from which all that ever come will come. */
const REFERENCE_INSTANT_MS = Date.UTC(2000, 0, 1);

function neverReason(timing: Timing, seed: string): string | undefined {
  const { rule, start, end } = timing;
  if (rule.kind === "cron" && cronOf(rule.expression, seed).from(REFERENCE_INSTANT_MS) === undefined) return `no date is ${show(rule.expression)}`;
  if (start === undefined && end === undefined) return undefined;
  return nextTick(timing, seed, -1) === undefined ? "no tick falls between its start and its end" : undefined;
}

function checkRule(times: ScheduleTimes, zone: string, dst: DstPolicy, instant: (option: "at", value: Instant) => number): RecurrenceRule {
  const ruleNames = (["cron", "every", "at"] as const).filter((name) => times[name] !== undefined);
  if (ruleNames.length !== 1)
    throw invalid("cron", ruleNames.length === 0 ? "say cron, every or at" : `${ruleNames.join(" and ")} are given: choose one`);
  if (times.at !== undefined) return { kind: "at", at: instant("at", times.at) };
  if (times.every !== undefined) {
    const every = checkPeriod("every", times.every);
    if (every < MIN_EVERY_MS) throw invalid("every", `it is shorter than ${MIN_EVERY_MS} ms`);
    return { kind: "every", every };
  }
  if (typeof times.cron !== "string") throw pawlError("cron_invalid", { expression: shortened(times.cron), reason: "it is not a text" });
  return { kind: "cron", expression: times.cron.trim().replace(/\s+/g, " "), zone, dst };
}

const CIVIL = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?$/;

function checkCivil(option: string, value: unknown, zone: string, dst: DstPolicy): number {
  if (typeof value !== "string" || !CIVIL.test(value)) return checkInstant(option, value);
  const civil = Date.parse(`${value.length === 10 ? `${value}T00:00` : value.replace(" ", "T")}Z`);
  return checkInstant(option, instantIn(zone, checkInstant(option, civil), dst));
}

function checkDst(dst: ScheduleTimes["dst"] = {}): DstPolicy {
  checkKeys(checkObject("dst", dst), DST_KEYS, "dst.");
  return {
    gap: checkOneOf("dst.gap", dst.gap ?? "shift", ["shift", "skip"]),
    overlap: checkOneOf("dst.overlap", dst.overlap ?? "first", ["first", "second", "both"]),
  };
}

/** Ahead of its ticks: at their own pace nothing would ever be made up for, since as many come as are. */
function defaultPace({ rule }: Timing, seed: string): number {
  const first = nextTick({ rule }, seed, REFERENCE_INSTANT_MS);
  const second = first === undefined ? undefined : nextTick({ rule }, seed, first);
  const { pace } = DEFAULTS.schedule;
  return first === undefined || second === undefined ? pace : Math.min(pace, Math.floor((second - first) / 2));
}

function checkMissed(missedOption: ScheduleTimes["missed"] = {}, paceOfAll: () => number): MissedPolicy {
  const options: MissedOptions = typeof missedOption === "string" ? { policy: missedOption } : missedOption;
  checkKeys(checkObject("missed", options), MISSED_KEYS, "missed.");
  const { missed, tolerance, window, max, pace } = DEFAULTS.schedule;
  const policy = checkOneOf("missed", options.policy ?? missed, ["skip", "latest", "all"]);
  if (policy === "all" && options.window === undefined) throw invalid("missed.window", "all asks for how far back: say, 24h");
  return {
    policy,
    tolerance: checkDuration("missed.tolerance", options.tolerance ?? tolerance),
    window: checkDuration("missed.window", options.window ?? window),
    max: checkWhole("missed.max", options.max ?? max, 1, MAX_TICKS),
    pace: checkPace("missed.pace", options.pace ?? (policy === "all" ? paceOfAll() : pace)),
  };
}

function checkKeep(keep: ScheduleTimes["keep"]): Definition["keep"] {
  if (keep === undefined) return undefined;
  checkKeys(checkObject("keep", keep), KEEP_KEYS, "keep.");
  const { succeeded, dead } = keep;
  return {
    ...(succeeded === undefined ? {} : { succeeded: checkWhole("keep.succeeded", succeeded, 0, MAX_JOBS_KEPT) }),
    ...(dead === undefined ? {} : { dead: checkWhole("keep.dead", dead, 0, MAX_JOBS_KEPT) }),
  };
}

/** The same in the words of a caller, for showing it and for changing a part of it. */
export function timesOf({ rule, start, end, stagger, jitter, missed, overlap, keep }: Definition): ScheduleTimes {
  return {
    ...(rule.kind === "cron" ? { cron: rule.expression, timeZone: rule.zone, dst: rule.dst } : {}),
    ...(rule.kind === "every" ? { every: rule.every } : {}),
    ...(rule.kind === "at" ? { at: new Date(rule.at) } : {}),
    ...(start === undefined ? {} : { start: new Date(start) }),
    ...(end === undefined ? {} : { end: new Date(end) }),
    ...(stagger === undefined ? {} : { stagger }),
    ...(jitter === undefined ? {} : { jitter }),
    missed,
    overlap,
    ...(keep === undefined ? {} : { keep }),
  };
}
