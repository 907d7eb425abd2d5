import { type Lane, sameLane } from "../jobs/lane.js";
import { lacksOf, type Needs, type Serves } from "./capacity.js";
import type { SlotUse } from "./slot-use.js";

/** The workers that can run the jobs of a lane, by what they said last of their slots. */
export interface AbleWorkers {
  /** those that can start a job of the lane as soon as a slot is free */
  readonly workers: number;
  /** the others: they have as many of its kind as they may, or too little left of what it needs */
  readonly shut: number;
  /** those of the former, and so the rest */
  readonly slots: number;
  readonly free: number;
  /** when the handler began that has run longest; absent where none runs */
  readonly oldest?: number;
  /** when the slots in use are free: each time stands for so many; null: nobody can say */
  readonly ends: readonly { readonly at: number | null; readonly slots: number }[];
  /** ms that a job of the lane's task takes lately */
  readonly took?: number;
}

/** Whether it takes jobs, or is about to stop. */
export function takesJobs({ slots }: Serves): boolean {
  return slots?.draining !== true;
}

/** Undefined where there is none, or one of them is from before workers said how full they are. */
export function ableWorkersOf(lane: Lane, needs: Needs, workers: readonly Serves[]): AbleWorkers | undefined {
  const able = workers.filter((serves) => lacksOf(lane, needs, [serves]).length === 0);
  const all = able.flatMap(({ slots }) => slots ?? []);
  if (able.length === 0 || all.length < able.length) return undefined;
  const open = all.filter(({ shut }) => shut?.some((one) => sameLane(one, lane)) !== true);
  const own = all.flatMap(({ tasks }) => tasks.filter(({ task }) => task === lane.task));
  const took = own.flatMap((use) => use.took ?? []);
  const since = all.flatMap(({ tasks }) => tasks.flatMap((use) => use.since ?? []));
  const slots = sum(open.map(({ total }) => total));
  return {
    workers: open.length,
    shut: all.length - open.length,
    slots,
    free: slots - sum(open.map(({ inUse }) => inUse)),
    ...(since.length === 0 ? {} : { oldest: Math.min(...since) }),
    ends: open.flatMap(endsOf),
    ...(took.length === 0 ? {} : { took: sum(took) / took.length }),
  };
}

function endsOf({ ends, inUse }: SlotUse): AbleWorkers["ends"] {
  return ends.map((at) => ({ at, slots: inUse / ends.length }));
}

/** ms; of a job that takes no time at all, too many would fit */
const LEAST_TOOK = 0.05;

/**
 * When a job starts that has so many before it, if all of them and it take as long as the task takes lately; undefined where
 * nobody can say. A slot that should have been free by now has been taken again meanwhile.
 */
export function startOf({ free, ends, took }: Pick<AbleWorkers, "free" | "ends" | "took">, ahead: number, now: number): number | undefined {
  const each = took === undefined ? undefined : Math.max(LEAST_TOOK, took);
  const slots = [
    ...(free > 0 ? [{ at: now, slots: free }] : []),
    ...ends.flatMap(({ at, slots }) => (at === null ? [] : [{ at: nextOf(at, each, now), slots }])),
  ].sort((a, b) => a.at - b.at);
  const [first] = slots;
  if (first === undefined) return undefined;
  if (each === undefined) return firstRound(slots, ahead);
  const startsBy = (at: number) => sum(slots.map((slot) => (slot.at > at ? 0 : slot.slots * (Math.floor((at - slot.at) / each) + 1))));
  // By halving: one of them alone would have started it by the later bound.
  let [early, late] = [first.at, first.at + (each * (ahead + 1)) / first.slots];
  if (startsBy(early) > ahead) return early;
  while (late - early > Math.max(1, 0.01 * (early - now))) {
    const middle = (early + late) / 2;
    if (startsBy(middle) > ahead) late = middle;
    else early = middle;
  }
  return Math.round(late);
}

function nextOf(at: number, each: number | undefined, now: number): number {
  if (at >= now) return at;
  return each === undefined ? now : at + each * Math.ceil((now - at) / each);
}

/** Each slot serves one: how long that one keeps it is not known. */
function firstRound(slots: readonly { readonly at: number; readonly slots: number }[], ahead: number): number | undefined {
  let starts = 0;
  for (const slot of slots) {
    starts += slot.slots;
    if (starts > ahead) return slot.at;
  }
  return undefined;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
