import { lastTick, nextTick, plannedAt } from "./recurrence.js";
import type { Definition, SkipReason, TickWay } from "./schedule.js";

/** A schedule as the store sees it when its time has come. */
export interface DueSchedule {
  /** see `seedOf` */
  readonly seed: string;
  readonly definition: Definition;
  readonly next: number;
  /** how many jobs of its earlier ticks are unfinished */
  readonly unfinished: number;
}

/** What a store is to do about one schedule, in one step. */
export interface DuePlan {
  readonly fires: readonly PlannedFire[];
  readonly gaps: readonly PlannedGap[];
  /** the tick to store as the next one; absent: it is over */
  readonly next?: number;
  /** when to look again; never before now */
  readonly looksAt?: number;
}

export interface PlannedFire {
  readonly at: number;
  readonly way: Extract<TickWay, "fired" | "late">;
  readonly merged: number;
  /** the unfinished jobs are waited for, or cancelled first */
  readonly overlap?: "wait" | "cancel";
}

export interface PlannedGap {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly skipped?: SkipReason;
  readonly mergedInto?: number;
}

/** Ticks accounted for in one step: after a year away, a step is still short. */
export const MAX_TICKS = 1_000;

/**
 * Every tick that is due is accounted for: it fires, is skipped for a reason, or is merged into another. Several steps
 * may be needed; each leaves `next` at the first tick that is not.
 */
export function duePlan(schedule: DueSchedule, now: number): DuePlan {
  const { seed, definition, next } = schedule;
  const { policy, window, max, pace } = definition.missed;
  // Beyond those that are to be made up for, so that a step gets on however many these are.
  const most = MAX_TICKS + (policy === "all" ? max : 0);
  const { ticks, following } = dueTicks(schedule, now, most);
  const lateBy = (tick: number) => now - plannedAt(definition, seed, tick);
  const goOn = (from: number | undefined, notBefore = now): Pick<DuePlan, "next" | "looksAt"> =>
    from === undefined ? {} : { next: from, looksAt: Math.max(notBefore, plannedAt(definition, seed, from)) };
  const last = ticks.at(-1);
  const after = (tick: number) => (tick === last ? following : nextTick(definition, seed, tick));

  // Nothing is due (a window of its own has moved it): look again at its time.
  if (last === undefined) return { fires: [], gaps: [], ...goOn(next) };
  const onTime = firstOnTime(schedule, ticks, following, now);
  const missed = onTime === -1 ? ticks : ticks.slice(0, onTime);
  const rest = onTime === -1 ? [] : ticks.slice(onTime);
  const many = ticks.length === most && following !== undefined && lateBy(following) >= 0;

  if (policy === "all" && missed.length > 0) {
    const young = missed.findIndex((tick) => lateBy(tick) <= window);
    const old = young === -1 ? missed.length : young;
    const excess = Math.max(0, missed.length - old - max);
    const gaps = [...gap(missed.slice(0, old), { skipped: "window" }), ...gap(missed.slice(old, old + excess), { skipped: "max" })];
    const first = missed[old + excess];
    if (first === undefined || many) return { fires: [], gaps, ...goOn(first ?? after(missed.at(-1) as number)) };
    // Made up for one by one: a job that is not done yet is waited for, whatever ticks on time do.
    if (schedule.unfinished > 0 && definition.overlap !== "allow") return { fires: [], gaps, ...goOn(first, now + pace) };
    const second = missed[old + excess + 1];
    return {
      fires: [{ at: first, way: "late", merged: 0 }],
      gaps,
      ...(second === undefined ? goOn(after(first)) : goOn(second, now + pace)),
    };
  }
  if (many) {
    const target = lastTick(definition, seed, last, now);
    const latest: Pick<PlannedGap, "skipped" | "mergedInto"> = lateBy(target) > window ? { skipped: "window" } : { mergedInto: target };
    return { fires: [], gaps: gap(ticks, policy === "skip" ? { skipped: "missed" } : latest), ...goOn(after(last)) };
  }
  if (policy === "skip") {
    const later = onTimePlan(schedule, rest, 0);
    return { fires: later.fires, gaps: [...gap(missed, { skipped: "missed" }), ...later.gaps], ...goOn(after(later.last ?? last)) };
  }
  // latest: if some were missed, the last one that is due stands for all of them, if it is not too old.
  const overdue = onTime === -1;
  if (overdue && lateBy(last) > window) return { fires: [], gaps: gap(missed, { skipped: "window" }), ...goOn(after(last)) };
  // So does it for those on time, if only one of them can have a job: the one that the others would wait for is the newest.
  const oneForAll = missed.length > 0 || (policy === "latest" && definition.overlap !== "allow");
  const merged = oneForAll ? ticks.slice(0, -1) : [];
  const served = onTimePlan(schedule, oneForAll ? [last] : rest, merged.length, overdue ? "late" : "fired");
  // Where an unfinished job is in the way of the last one, nothing stands for the others.
  if (oneForAll && served.fires.length === 0) return { fires: [], gaps: gap(ticks, { skipped: "overlap" }), ...goOn(after(last)) };
  return { fires: served.fires, gaps: [...gap(merged, { mergedInto: last }), ...served.gaps], ...goOn(after(served.last ?? last)) };
}

/** Ticks to be fired unless an earlier job stands in the way; at most one if that matters, so that the next one sees it. */
function onTimePlan(
  { definition, unfinished }: DueSchedule,
  ticks: readonly number[],
  merged: number,
  way: PlannedFire["way"] = "fired",
): { readonly fires: readonly PlannedFire[]; readonly gaps: readonly PlannedGap[]; readonly last?: number } {
  const { overlap } = definition;
  if (overlap === "allow") {
    const last = ticks.at(-1);
    return { fires: ticks.map((at, index) => ({ at, way, merged: index === 0 ? merged : 0 })), gaps: [], ...(last === undefined ? {} : { last }) };
  }
  const [at] = ticks;
  if (at === undefined) return { fires: [], gaps: [] };
  // One may wait for the one that runs; a third would only make a queue of them.
  if (unfinished > 0 && (overlap === "skip" || (overlap === "wait" && unfinished > 1)))
    return { fires: [], gaps: gap(ticks, { skipped: "overlap" }), last: ticks.at(-1) as number };
  const fire: PlannedFire = { at, way, merged, ...(unfinished > 0 && overlap !== "skip" ? { overlap } : {}) };
  return { fires: [fire], gaps: [], last: at };
}

/** ms that a tick may always be late: timers are, and two ticks that their jitter brings together are not one. */
const ALWAYS_ON_TIME = 1_000;

/**
 * From which of the due ticks on they are on time; -1: none of them. A tick is on time as long as it is late by no more than
 * its tolerance, and the next one is not due: else what becomes of missed ticks would mean nothing to a schedule that ticks
 * more often than that.
 */
function firstOnTime({ seed, definition }: DueSchedule, ticks: readonly number[], following: number | undefined, now: number): number {
  const { tolerance } = definition.missed;
  // In the order of ticks: one that its jitter brings before the one ahead of it waits for that.
  let dueAt = Number.NEGATIVE_INFINITY;
  const due = (following === undefined ? ticks : [...ticks, following]).map((tick) => {
    dueAt = Math.max(dueAt, plannedAt(definition, seed, tick));
    return dueAt;
  });
  return ticks.findIndex((_, index) => {
    const since = due[index] as number;
    const untilNext = (due[index + 1] ?? Number.POSITIVE_INFINITY) - since;
    return now - since <= Math.min(tolerance, Math.max(ALWAYS_ON_TIME, untilNext));
  });
}

/** Ticks that are due, and the one after them. */
function dueTicks(
  { seed, definition, next }: DueSchedule,
  now: number,
  most: number,
): { readonly ticks: readonly number[]; readonly following?: number } {
  const ticks: number[] = [];
  let tick: number | undefined = next;
  while (tick !== undefined && ticks.length < most && plannedAt(definition, seed, tick) <= now) {
    ticks.push(tick);
    tick = nextTick(definition, seed, tick);
  }
  return { ticks, ...(tick === undefined ? {} : { following: tick }) };
}

function gap(ticks: readonly number[], why: Pick<PlannedGap, "skipped" | "mergedInto">): readonly PlannedGap[] {
  const [from] = ticks;
  return from === undefined ? [] : [{ from, to: ticks.at(-1) as number, count: ticks.length, ...why }];
}

/** The ticks of a range, both ends included, up to `limit`. */
export function ticksBetween(definition: Definition, seed: string, from: number, to: number, limit: number): readonly number[] {
  const ticks: number[] = [];
  for (let tick = nextTick(definition, seed, from - 1); tick !== undefined && tick <= to; tick = nextTick(definition, seed, tick)) {
    ticks.push(tick);
    if (ticks.length === limit) break;
  }
  return ticks;
}

/** Where a schedule begins when it is new or was changed: with what is still to come. */
export function firstTick(definition: Definition, seed: string, now: number): { readonly next?: number; readonly looksAt?: number } {
  const next = nextTick(definition, seed, now);
  return next === undefined ? {} : { next, looksAt: Math.max(now, plannedAt(definition, seed, next)) };
}
