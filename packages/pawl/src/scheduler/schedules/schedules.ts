import type { AnyTask, Task } from "../../core/jobs/task.js";
import { checkPace } from "../../core/limits/token-bucket.js";
import { ticksBetween } from "../../core/schedules/due-ticks.js";
import { type DstNote, dstNote, nextTick, plannedAt } from "../../core/schedules/recurrence.js";
import { type Definition, type ScheduleRecord, type ScheduleRef, seedOf } from "../../core/schedules/schedule.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Duration } from "../../core/values/duration.js";
import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import { checkBoolean, checkKeys, checkObject, checkWhole, invalid, shortened, show } from "../../core/values/option.js";
import type { Scope, Store } from "../../store/port/index.js";
import type { ScheduleFilter, SchedulePut, SchedulePutAnswer, TickEntry } from "../../store/port/schedules/schedules.js";
import { checkInstant } from "../check.js";
import { type EnqueueDeps, storedJobOf } from "../enqueue/enqueuer.js";
import { checkIdempotencyKey, idempotencyKeyOfJob } from "../enqueue/idempotency-key.js";
import { JobHandle } from "../jobs/handle.js";
import { cursorFormat, type PagedList, type PageOptions, pagedList, readPage, refCursor } from "../page.js";
import type { Job, Jobs } from "../scheduler.js";
import { definitionOf, type Instant, type ScheduleOptions, type ScheduleOptionsOf, type ScheduleTimes, TIME_KEYS, timesOf } from "./schedule.js";
import { ScheduleBuilder } from "./schedule-builder.js";
import { type ScheduleView, scheduleView, type TickView, tickView } from "./schedule-view.js";

/** A schedule by its name; of another tenant than the default one, with it. */
export type ScheduleReference = string | { readonly name: string; readonly tenant?: string };

/** Schedules of one tenant, or of all. Unknown ones are `schedule_unknown`. */
export interface Schedules {
  /** Makes it, or changes it; one that is there and the same stays as it is. */
  put<In, Out, Parsed>(name: string, task: Task<In, Out, Parsed>, options: ScheduleOptionsOf<NoInfer<In>>): Promise<SchedulePutAnswer>;
  put(name: string, task: string, options: ScheduleOptions): Promise<SchedulePutAnswer>;
  /** Changes a part of it. It begins anew from now, and makes up for nothing. */
  update(schedule: ScheduleReference, changes: ScheduleChanges): Promise<SchedulePutAnswer>;
  get(schedule: ScheduleReference): Promise<ScheduleView>;
  /** by tenant and name */
  list(filter?: SchedulesFilter, page?: PageOptions): PagedList<ScheduleView>;
  /** No more ticks; those that pass meanwhile are missed ticks when it is resumed. */
  pause(schedule: ScheduleReference): Promise<void>;
  resume(schedule: ScheduleReference): Promise<void>;
  /** Gone with the record of its ticks; its jobs stay. */
  delete(schedule: ScheduleReference): Promise<void>;
  /** One more job, now, also while it is paused. */
  trigger(schedule: ScheduleReference, how?: { readonly input?: unknown; readonly idempotencyKey?: string }): Promise<Job>;
  /** Jobs for the ticks of a range of the past that have none. */
  backfill(schedule: ScheduleReference, range: BackfillRange): Promise<BackfillReport>;
  /** The next ticks, and what is odd about them where clocks are changed. */
  preview(schedule: ScheduleReference, how?: PreviewOptions): Promise<readonly PreviewedTick[]>;
  /** What became of its ticks, newest first. */
  ticks(schedule: ScheduleReference, page?: PageOptions): PagedList<TickView>;
}

/** Task and tenant make a schedule what it is: they do not change. */
export interface ScheduleChanges extends ScheduleTimes {
  readonly input?: unknown;
}

export interface SchedulesFilter extends ScheduleFilter {
  readonly tenant?: string;
}

export interface PreviewOptions {
  /** ticks at most; 5 if left out, 1,000 at most */
  readonly count?: number;
  /** the ticks after then; after now if left out */
  readonly from?: Instant;
}

export interface BackfillRange {
  /** both ends included */
  readonly from: Instant;
  readonly to: Instant;
  /** time between two jobs, or a rate such as "50/s"; all at once if left out */
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

const MAX_BACKFILL_TICKS = 10_000;
const MAX_PREVIEW_TICKS = 1_000;

export class ScopedSchedules implements Schedules {
  readonly #store: Store;
  readonly #builder: ScheduleBuilder;

  constructor(
    private readonly deps: EnqueueDeps,
    private readonly scope: Scope,
    private readonly jobs: Jobs,
  ) {
    this.#store = deps.store;
    this.#builder = new ScheduleBuilder(deps, scope);
  }

  async put(name: string, task: AnyTask | string, options: ScheduleOptions): Promise<SchedulePutAnswer> {
    return this.#put(await this.#builder.build(name, task, options));
  }

  async update(reference: ScheduleReference, changes: ScheduleChanges): Promise<SchedulePutAnswer> {
    checkKeys(checkObject("changes", changes), CHANGE_KEYS);
    const { tenant, name, definition } = await this.#find(reference);
    const { input, ...times } = changes;
    const { cron, every, at, ...others } = timesOf(definition);
    const replaced = [times.cron, times.every, times.at].some((one) => one !== undefined);
    const rule = replaced ? {} : { cron, every, at };
    const job = input === undefined ? definition.job : { ...definition.job, input: await this.#encode(definition, input) };
    return this.#put({ tenant, name, definition: definitionOf({ tenant, name }, without({ ...others, ...rule, ...times }), job) });
  }

  async get(reference: ScheduleReference): Promise<ScheduleView> {
    return scheduleView(await this.#find(reference));
  }

  list(filter: SchedulesFilter = {}, page?: PageOptions): PagedList<ScheduleView> {
    return pagedList(page, async (one) => {
      checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
      const { tenant, undeclared, paused } = filter;
      const scope = tenant === undefined ? this.scope : { tenant: this.#tenant(tenant) };
      const storedFilter = {
        ...(undeclared === undefined ? {} : { undeclared: checkBoolean("filter.undeclared", undeclared) }),
        ...(paused === undefined ? {} : { paused: checkBoolean("filter.paused", paused) }),
      };
      const found = await this.#store.schedules.list(scope, storedFilter, readPage(one, SCHEDULES_CURSOR));
      return { items: found.schedules.map(scheduleView), ...(found.next === undefined ? {} : { next: SCHEDULES_CURSOR.encode(found.next) }) };
    });
  }

  pause(reference: ScheduleReference): Promise<void> {
    return this.#changeExisting(reference, (ref) => this.#store.schedules.pause(ref));
  }
  resume(reference: ScheduleReference): Promise<void> {
    return this.#changeExisting(reference, (ref) => this.#store.schedules.resume(ref));
  }
  delete(reference: ScheduleReference): Promise<void> {
    return this.#changeExisting(reference, (ref) => this.#store.schedules.delete(ref));
  }

  async trigger(reference: ScheduleReference, how: { readonly input?: unknown; readonly idempotencyKey?: string } = {}): Promise<Job> {
    checkKeys(checkObject("how", how), TRIGGER_KEYS);
    const { input, idempotencyKey } = how;
    const record = await this.#find(reference);
    const { lane, input: own } = record.definition.job;
    const text = input === undefined ? undefined : await this.#encode(record.definition, input);
    const answer = await this.#store.schedules.trigger(record, {
      idSuffix: this.deps.nextIdSuffix(lane.tenant),
      ...(text === undefined ? {} : { input: text }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey: idempotencyKeyOfJob(checkIdempotencyKey(idempotencyKey), lane.task, text ?? own) }),
    });
    if (answer === undefined) throw unknown(record);
    return new JobHandle(this.jobs, lane.task, storedJobOf(answer, lane.task, idempotencyKey));
  }

  async backfill(reference: ScheduleReference, range: BackfillRange): Promise<BackfillReport> {
    checkKeys(checkObject("range", range), BACKFILL_KEYS);
    const [from, to] = [checkInstant("from", range.from), checkInstant("to", range.to)];
    const pace = checkPace("pace", range.pace ?? 0);
    const dryRun = checkBoolean("dryRun", range.dryRun ?? false);
    if (to < from) throw invalid("to", "it is before from");
    if (to > (await this.#store.duties.poll()).now) throw invalid("to", "it is in the future, which is for the schedule itself");
    const record = await this.#find(reference);
    const ticks = ticksBetween(record.definition, seedOf(record), from, to, MAX_BACKFILL_TICKS + 1);
    if (ticks.length > MAX_BACKFILL_TICKS) throw invalid("from", `the range has more than ${MAX_BACKFILL_TICKS} ticks: take a shorter one`);
    const fired = new Set(await this.#store.schedules.fired(record, ticks));
    const missing = ticks.filter((at) => !fired.has(at));
    const report = { ticks: ticks.length, fired: fired.size, missing: missing.map((at) => new Date(at)) };
    return { ...report, jobs: dryRun ? 0 : await this.#fill(record, missing, pace) };
  }

  async preview(reference: ScheduleReference, how: PreviewOptions = {}): Promise<readonly PreviewedTick[]> {
    const { count, from } = checkPreviewOptions(how);
    const { definition, ...ref } = await this.#find(reference);
    const seed = seedOf(ref);
    const previewed: PreviewedTick[] = [];
    let at = from === undefined ? (await this.#store.duties.poll()).now : from;
    for (let next = nextTick(definition, seed, at); next !== undefined && previewed.length < count; next = nextTick(definition, seed, at)) {
      const note = dstNote(definition.rule, seed, next);
      previewed.push({ at: new Date(next), firesAt: new Date(plannedAt(definition, seed, next)), ...(note === undefined ? {} : { note }) });
      at = next;
    }
    return previewed;
  }

  ticks(reference: ScheduleReference, page?: PageOptions): PagedList<TickView> {
    return pagedList(page, async (one) => {
      const { limit, after } = readPage(one, TICKS_CURSOR);
      const [time, shown] = after ?? [undefined, 0];
      const ref = await this.#find(reference);
      // One more than asked for tells whether there are more. A tick and a gap may have the same time.
      const request = { limit: shown + limit + 1, ...(time === undefined ? {} : { before: time + 1 }) };
      const entries = (await this.#store.schedules.ticks(ref, request)).slice(shown);
      const items = entries.slice(0, limit);
      const last = items.at(-1);
      if (entries.length <= limit || last === undefined) return { items: items.map(tickView) };
      const end = timeOf(last);
      const sameTime = items.filter((entry) => timeOf(entry) === end).length + (end === time ? shown : 0);
      return { items: items.map(tickView), next: TICKS_CURSOR.encode([end, sameTime]) };
    });
  }

  async #put(entry: SchedulePut): Promise<SchedulePutAnswer> {
    return (await this.#store.schedules.put([entry])).answers[0] as SchedulePutAnswer;
  }

  /** As many at a time as one write takes; the pace goes on from one to the next. */
  async #fill(ref: ScheduleRef, missing: readonly number[], pace: number): Promise<number> {
    let jobs = 0;
    for (let done = 0; done < missing.length; done += BOUNDS.enqueueAll) {
      const ticks = missing.slice(done, done + BOUNDS.enqueueAll);
      const made = await this.#store.schedules.backfill(ref, { ticks, pace, after: done * pace, idSuffix: this.deps.nextIdSuffix });
      if (made === undefined) throw unknown(ref);
      jobs += made;
    }
    return jobs;
  }

  async #encode({ job }: Definition, input: unknown): Promise<string> {
    return this.#builder.encode(await this.deps.registry.find(job.lane.task), input);
  }

  async #find(reference: ScheduleReference): Promise<ScheduleRecord> {
    const ref = this.#ref(reference);
    const record = await this.#store.schedules.get(ref);
    if (record === undefined) throw unknown(ref);
    return record;
  }

  async #changeExisting(reference: ScheduleReference, act: (ref: ScheduleRef) => Promise<boolean>): Promise<void> {
    const ref = this.#ref(reference);
    if (!(await act(ref))) throw unknown(ref);
  }

  #ref(reference: ScheduleReference): ScheduleRef {
    const { name, tenant } =
      typeof reference === "string" ? { name: reference } : (checkObject("schedule", reference) as { name: string; tenant?: string });
    return { tenant: this.#tenant(tenant), name: checkName("schedule", name) };
  }

  #tenant(requestedTenant: string | undefined): string {
    if (this.scope === "everyone") return requestedTenant === undefined ? DEFAULTS.job.tenant : checkName("tenant", requestedTenant);
    if (requestedTenant !== undefined && requestedTenant !== this.scope.tenant)
      throw invalid("tenant", `this scheduler acts for ${show(this.scope.tenant)} only`);
    return this.scope.tenant;
  }
}

const CHANGE_KEYS: ReadonlySet<string> = new Set([...TIME_KEYS, "input"]);
const FILTER_KEYS = new Set(["tenant", "undeclared", "paused"]);
const PREVIEW_KEYS = new Set(["count", "from"]);
const TRIGGER_KEYS = new Set(["input", "idempotencyKey"]);
const BACKFILL_KEYS = new Set(["from", "to", "pace", "dryRun"]);

const SCHEDULES_CURSOR = refCursor("schedules", ["tenant", "name"]);
/** the time of the last entry shown, and how many entries of that time were shown */
const TICKS_CURSOR = cursorFormat("ticks", (place): readonly [number, number] | undefined => {
  const [time, shown] = place as readonly unknown[];
  return typeof time === "number" && Number.isInteger(shown) && Number(shown) >= 1 && Number(shown) <= 2 ? [time, Number(shown)] : undefined;
});

function timeOf(entry: TickEntry): number {
  return "at" in entry ? entry.at : entry.to;
}

/** `from` is ms since 1970. */
export function checkPreviewOptions(how: PreviewOptions): { readonly count: number; readonly from?: number } {
  checkKeys(checkObject("how", how), PREVIEW_KEYS);
  const { count = 5, from } = how;
  return { count: checkWhole("count", count, 1, MAX_PREVIEW_TICKS), ...(from === undefined ? {} : { from: checkInstant("from", from) }) };
}

function unknown({ tenant, name }: ScheduleRef) {
  return pawlError("schedule_unknown", { schedule: shortened(name), tenant });
}

/** What is undefined was not said. */
function without(times: { readonly [K in keyof ScheduleTimes]: ScheduleTimes[K] | undefined }): ScheduleTimes {
  return Object.fromEntries(Object.entries(times).filter(([, value]) => value !== undefined));
}
