import { BOUNDS } from "../core/bounds.js";
import { DEFAULTS } from "../core/defaults.js";
import type { Duration } from "../core/duration.js";
import { pawlError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkBoolean, checkDuration, checkKeys, checkObject, checkWhole, invalid, show, told } from "../core/option.js";
import { type Definition, type ScheduleRecord, type ScheduleRef, seedOf } from "../core/schedule.js";
import { ticksBetween } from "../core/schedule-plan.js";
import { type DstNote, dstNote, nextTick, plannedAt } from "../core/schedule-rule.js";
import type { Scope, Store } from "../store/port.js";
import type { ScheduleFilter, SchedulePut, SchedulePutAnswer } from "../store/port-schedules.js";
import type { AnyTask, Task } from "../worker/task.js";
import { checkInstant, checkPageKeys } from "./check.js";
import { type Intake, storedOf } from "./enqueuer.js";
import { JobHandle } from "./handle.js";
import { checkRequest, jobRequest } from "./once.js";
import { definitionOf, type Instant, type ScheduleGiven, type ScheduleOptions, type ScheduleTimes, TIME_KEYS, timesOf } from "./schedule.js";
import { ScheduleMaker } from "./schedule-maker.js";
import { type ScheduleView, scheduleView, type TickView, tickView } from "./schedule-view.js";
import type { Job, Jobs } from "./scheduler.js";

/** A schedule by its name; of another tenant than the default one, with it. */
export type ScheduleReference = string | { readonly name: string; readonly tenant?: string };

/** Schedules of one tenant, or of all. Unknown ones are `schedule_unknown`. */
export interface Schedules {
  /** Makes it, or changes it; one that is there and the same stays as it is. */
  put<In, Out, Parsed>(name: string, task: Task<In, Out, Parsed>, options: ScheduleGiven<NoInfer<In>>): Promise<SchedulePutAnswer>;
  put(name: string, task: string, options: ScheduleOptions): Promise<SchedulePutAnswer>;
  /** Changes a part of it. It begins anew from now, and makes up for nothing. */
  update(schedule: ScheduleReference, changes: ScheduleChanges): Promise<SchedulePutAnswer>;
  get(schedule: ScheduleReference): Promise<ScheduleView>;
  /** by tenant and name; `next` is the `after` of the following page */
  list(filter?: SchedulesFilter, page?: { readonly limit?: number; readonly after?: ScheduleRef }): Promise<ScheduleListing>;
  /** No more ticks; those that pass meanwhile are missed ticks when it is resumed. */
  pause(schedule: ScheduleReference): Promise<void>;
  resume(schedule: ScheduleReference): Promise<void>;
  /** Gone with the record of its ticks; its jobs stay. */
  remove(schedule: ScheduleReference): Promise<void>;
  /** One more job, now, also while it is paused. */
  trigger(schedule: ScheduleReference, how?: { readonly input?: unknown; readonly request?: string }): Promise<Job>;
  /** Jobs for the ticks of a range of the past that have none. */
  backfill(schedule: ScheduleReference, range: BackfillRange): Promise<BackfillReport>;
  /** The next ticks, and what is odd about them where clocks are changed. */
  preview(schedule: ScheduleReference, count?: number, from?: Instant): Promise<readonly PreviewedTick[]>;
  /** What became of its ticks, newest first. `before` is a time. */
  ticks(schedule: ScheduleReference, page?: { readonly limit?: number; readonly before?: Instant }): Promise<readonly TickView[]>;
}

/** Task and tenant make a schedule what it is: they do not change. */
export interface ScheduleChanges extends ScheduleTimes {
  readonly input?: unknown;
}

export interface SchedulesFilter extends ScheduleFilter {
  readonly tenant?: string;
}

export interface ScheduleListing {
  readonly schedules: readonly ScheduleView[];
  readonly next?: ScheduleRef;
}

export interface BackfillRange {
  /** both ends included */
  readonly from: Instant;
  readonly to: Instant;
  /** between two jobs; all at once if left out */
  readonly pace?: Duration;
  /** only says what it would do */
  readonly dryRun?: boolean;
}

export interface BackfillReport {
  /** ticks of the range */
  readonly ticks: number;
  /** those of them that had a job before */
  readonly fired: number;
  /** those that have one now, or would have */
  readonly missing: readonly Date[];
  readonly jobs: number;
}

export interface PreviewedTick {
  readonly at: Date;
  /** with its share of spread and jitter */
  readonly firesAt: Date;
  readonly note?: DstNote;
}

const MOST_BACKFILLED = 10_000;
const MOST_PREVIEWED = 1_000;
const PAGE = { size: 50, largest: 1_000 } as const;

export class ScopedSchedules implements Schedules {
  readonly #store: Store;
  readonly #maker: ScheduleMaker;

  constructor(
    private readonly intake: Intake,
    private readonly scope: Scope,
    private readonly jobs: Jobs,
  ) {
    this.#store = intake.store;
    this.#maker = new ScheduleMaker(intake, scope);
  }

  async put(name: string, task: AnyTask | string, options: ScheduleOptions): Promise<SchedulePutAnswer> {
    return this.#put(await this.#maker.make(name, task, options));
  }

  async update(given: ScheduleReference, changes: ScheduleChanges): Promise<SchedulePutAnswer> {
    checkKeys(checkObject("changes", changes), CHANGE_KEYS);
    const { tenant, name, definition } = await this.#find(given);
    const { input, ...times } = changes;
    const { cron, every, at, ...others } = timesOf(definition);
    const replaced = [times.cron, times.every, times.at].some((one) => one !== undefined);
    const rule = replaced ? {} : { cron, every, at };
    const job = input === undefined ? definition.job : { ...definition.job, input: await this.#encode(definition, input) };
    return this.#put({ tenant, name, definition: definitionOf({ tenant, name }, without({ ...others, ...rule, ...times }), job) });
  }

  async get(given: ScheduleReference): Promise<ScheduleView> {
    return scheduleView(await this.#find(given));
  }

  async list(filter: SchedulesFilter = {}, page: { readonly limit?: number; readonly after?: ScheduleRef } = {}): Promise<ScheduleListing> {
    checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
    checkPageKeys(page);
    const { tenant, missing, paused } = filter;
    const scope = tenant === undefined ? this.scope : { tenant: this.#tenant(tenant) };
    const asked = {
      ...(missing === undefined ? {} : { missing: checkBoolean("filter.missing", missing) }),
      ...(paused === undefined ? {} : { paused: checkBoolean("filter.paused", paused) }),
    };
    const { limit = PAGE.size, after } = page;
    const found = await this.#store.schedules.list(scope, asked, {
      limit: checkWhole("page.limit", limit, 1, PAGE.largest),
      ...(after === undefined ? {} : { after: { tenant: checkName("tenant", after.tenant), name: checkName("schedule", after.name) } }),
    });
    return { schedules: found.schedules.map(scheduleView), ...(found.next === undefined ? {} : { next: found.next }) };
  }

  pause(given: ScheduleReference): Promise<void> {
    return this.#known(given, (ref) => this.#store.schedules.pause(ref));
  }
  resume(given: ScheduleReference): Promise<void> {
    return this.#known(given, (ref) => this.#store.schedules.resume(ref));
  }
  remove(given: ScheduleReference): Promise<void> {
    return this.#known(given, (ref) => this.#store.schedules.remove(ref));
  }

  async trigger(given: ScheduleReference, how: { readonly input?: unknown; readonly request?: string } = {}): Promise<Job> {
    checkKeys(checkObject("how", how), TRIGGER_KEYS);
    const { input, request } = how;
    const record = await this.#find(given);
    const { lane, input: own } = record.definition.job;
    const text = input === undefined ? undefined : await this.#encode(record.definition, input);
    const answer = await this.#store.schedules.trigger(record, {
      tail: this.intake.tails(lane.tenant),
      ...(text === undefined ? {} : { input: text }),
      ...(request === undefined ? {} : { request: jobRequest(checkRequest(request), lane.task, text ?? own) }),
    });
    if (answer === undefined) throw unknown(record);
    return new JobHandle(this.jobs, lane.task, storedOf(answer, lane.task, request));
  }

  async backfill(given: ScheduleReference, range: BackfillRange): Promise<BackfillReport> {
    checkKeys(checkObject("range", range), BACKFILL_KEYS);
    const [from, to] = [checkInstant("from", range.from), checkInstant("to", range.to)];
    const pace = checkDuration("pace", range.pace ?? 0);
    const dryRun = checkBoolean("dryRun", range.dryRun ?? false);
    if (to < from) throw invalid("to", "it is before from");
    if (to > (await this.#store.duties.pulse()).now) throw invalid("to", "it is in the future, which is for the schedule itself");
    const record = await this.#find(given);
    const ticks = ticksBetween(record.definition, seedOf(record), from, to, MOST_BACKFILLED + 1);
    if (ticks.length > MOST_BACKFILLED) throw invalid("from", `the range has more than ${MOST_BACKFILLED} ticks: take a shorter one`);
    const fired = new Set(await this.#store.schedules.fired(record, ticks));
    const missing = ticks.filter((at) => !fired.has(at));
    const report = { ticks: ticks.length, fired: fired.size, missing: missing.map((at) => new Date(at)) };
    return { ...report, jobs: dryRun ? 0 : await this.#fill(record, missing, pace) };
  }

  async preview(given: ScheduleReference, count = 5, from?: Instant): Promise<readonly PreviewedTick[]> {
    checkWhole("count", count, 1, MOST_PREVIEWED);
    const { definition, ...ref } = await this.#find(given);
    const seed = seedOf(ref);
    const previewed: PreviewedTick[] = [];
    let at = from === undefined ? (await this.#store.duties.pulse()).now : checkInstant("from", from);
    for (let next = nextTick(definition, seed, at); next !== undefined && previewed.length < count; next = nextTick(definition, seed, at)) {
      const note = dstNote(definition.rule, seed, next);
      previewed.push({ at: new Date(next), firesAt: new Date(plannedAt(definition, seed, next)), ...(note === undefined ? {} : { note }) });
      at = next;
    }
    return previewed;
  }

  async ticks(given: ScheduleReference, page: { readonly limit?: number; readonly before?: Instant } = {}): Promise<readonly TickView[]> {
    checkKeys(checkObject("page", page), TICK_PAGE_KEYS, "page.");
    const { limit = PAGE.size, before } = page;
    const ref = await this.#find(given);
    const entries = await this.#store.schedules.ticks(ref, {
      limit: checkWhole("page.limit", limit, 1, PAGE.largest),
      ...(before === undefined ? {} : { before: checkInstant("page.before", before) }),
    });
    return entries.map(tickView);
  }

  async #put(entry: SchedulePut): Promise<SchedulePutAnswer> {
    return (await this.#store.schedules.put([entry])).answers[0] as SchedulePutAnswer;
  }

  /** As many at a time as one write takes; the pace goes on from one to the next. */
  async #fill(ref: ScheduleRef, missing: readonly number[], pace: number): Promise<number> {
    let jobs = 0;
    for (let done = 0; done < missing.length; done += BOUNDS.enqueueBatch) {
      const ticks = missing.slice(done, done + BOUNDS.enqueueBatch);
      const made = await this.#store.schedules.backfill(ref, { ticks, pace, after: done * pace, tail: this.intake.tails });
      if (made === undefined) throw unknown(ref);
      jobs += made;
    }
    return jobs;
  }

  async #encode({ job }: Definition, input: unknown): Promise<string> {
    return this.#maker.encode(await this.intake.registry.find(job.lane.task), input);
  }

  async #find(given: ScheduleReference): Promise<ScheduleRecord> {
    const ref = this.#ref(given);
    const record = await this.#store.schedules.get(ref);
    if (record === undefined) throw unknown(ref);
    return record;
  }

  async #known(given: ScheduleReference, act: (ref: ScheduleRef) => Promise<boolean>): Promise<void> {
    const ref = this.#ref(given);
    if (!(await act(ref))) throw unknown(ref);
  }

  #ref(given: ScheduleReference): ScheduleRef {
    const { name, tenant } = typeof given === "string" ? { name: given } : (checkObject("schedule", given) as { name: string; tenant?: string });
    return { tenant: this.#tenant(tenant), name: checkName("schedule", name) };
  }

  #tenant(asked: string | undefined): string {
    if (this.scope === "everyone") return asked === undefined ? DEFAULTS.job.tenant : checkName("tenant", asked);
    if (asked !== undefined && asked !== this.scope.tenant) throw invalid("tenant", `this scheduler acts for ${show(this.scope.tenant)} only`);
    return this.scope.tenant;
  }
}

const CHANGE_KEYS: ReadonlySet<string> = new Set([...TIME_KEYS, "input"]);
const FILTER_KEYS = new Set(["tenant", "missing", "paused"]);
const TICK_PAGE_KEYS = new Set(["limit", "before"]);
const TRIGGER_KEYS = new Set(["input", "request"]);
const BACKFILL_KEYS = new Set(["from", "to", "pace", "dryRun"]);

function unknown({ tenant, name }: ScheduleRef) {
  return pawlError("schedule_unknown", { schedule: told(name), tenant });
}

/** What is undefined was not said. */
function without(times: { readonly [K in keyof ScheduleTimes]: ScheduleTimes[K] | undefined }): ScheduleTimes {
  return Object.fromEntries(Object.entries(times).filter(([, value]) => value !== undefined));
}
