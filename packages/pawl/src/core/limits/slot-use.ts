import type { Lane } from "../jobs/lane.js";

/** How full a worker is, as it tells the others with what it serves. Instants are ms since 1970, by the store's clock. */
export interface SlotUse {
  readonly total: number;
  /** slots that nothing can start in now */
  readonly inUse: number;
  /** handlers that go on though their attempts are over */
  readonly overrun: number;
  /** it takes nothing more: it is about to stop */
  readonly draining?: true;
  /** it takes nothing more: too many of its handlers do not end */
  readonly stuck?: true;
  /** lanes with ready jobs of which nothing can start here now, also in a free slot: their queue, their task, or what they need has no more */
  readonly shut?: readonly Lane[];
  /** what its handlers run, the task first whose handler has run longest, and what they ran; some, where there are many */
  readonly tasks: readonly TaskUse[];
  /** when slots in use should be free, the soonest first; null: nobody can say. Some of them, evenly chosen, where there are many */
  readonly ends: readonly (number | null)[];
}

/** The handlers of one task. */
export interface TaskUse {
  readonly task: string;
  /** those in slots */
  readonly running: number;
  /** when the one began that has run longest; absent where none runs */
  readonly since?: number;
  /** ms that handlers of it take lately, and the longest of them; absent: none has ended yet */
  readonly took?: number;
  readonly longest?: number;
  /** how many go on though their attempts are over, and since when the first of them does */
  readonly overrun?: number;
  readonly overdue?: number;
}

/** A handler as its worker knows it. */
export interface RunningHandler {
  readonly task: string;
  readonly since: number;
  /** ms since then */
  readonly ranFor: number;
}

/** One that goes on though its attempt is over, and since when it is. */
export interface OverrunHandler extends RunningHandler {
  readonly overdue: number;
}

/** ms that handlers of a task take lately, and the longest of them. */
export interface Durations {
  readonly took: number;
  readonly longest: number;
}

export interface SlotNumbers {
  readonly total: number;
  readonly free: number;
  readonly draining: boolean;
  readonly stuck: boolean;
  readonly shut: readonly Lane[];
  readonly running: Iterable<RunningHandler>;
  readonly overruns: Iterable<OverrunHandler>;
  /** of the tasks of which handlers have ended */
  readonly durations: ReadonlyMap<string, Durations>;
}

/** tasks reported of one worker */
const MAX_TASKS = 20;
/** ends reported of one worker: an estimate needs no more */
const MAX_ENDS = 32;

/** What a worker says of its slots. */
export function slotUse({ total, free, draining, stuck, shut, running, overruns, durations }: SlotNumbers): SlotUse {
  const tasks = new Map<string, TaskUse>();
  const useOf = (task: string): TaskUse => tasks.get(task) ?? { task, running: 0, ...durations.get(task) };
  const ends: (number | null)[] = [];
  for (const handler of running) {
    const { task } = handler;
    const use = useOf(task);
    tasks.set(task, { ...use, running: use.running + 1, since: earlier(use.since, handler.since) });
    ends.push(endOf(handler, durations.get(task)));
  }
  let overrun = 0;
  for (const handler of overruns) {
    const { task, since, overdue } = handler;
    const use = useOf(task);
    overrun++;
    tasks.set(task, { ...use, since: earlier(use.since, since), overrun: (use.overrun ?? 0) + 1, overdue: earlier(use.overdue, overdue) });
  }
  for (const task of durations.keys()) tasks.set(task, useOf(task));
  const inUse = total - free;
  // What keeps a slot beside those that run are overruns, and when one of these ends nobody can say.
  while (ends.length < inUse) ends.push(null);
  return {
    total,
    inUse,
    overrun,
    ...(draining ? { draining } : {}),
    ...(stuck ? { stuck } : {}),
    ...(shut.length === 0 ? {} : { shut }),
    tasks: [...tasks.values()].sort((a, b) => (a.since ?? Number.POSITIVE_INFINITY) - (b.since ?? Number.POSITIVE_INFINITY) || 0).slice(0, MAX_TASKS),
    ends: evenly(ends.sort(soonestFirst), MAX_ENDS),
  };
}

function earlier(one: number | undefined, other: number): number {
  return one === undefined ? other : Math.min(one, other);
}

/** As its task takes lately. One that has taken longer than that is given as much again as it is late. */
function endOf({ since, ranFor }: RunningHandler, durations: Durations | undefined): number | null {
  if (durations === undefined) return null;
  const { took } = durations;
  return Math.round(since + Math.max(took, 2 * ranFor - took));
}

function soonestFirst(a: number | null, b: number | null): number {
  return (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY);
}

/** So many of them at most, the first and the last among them. */
function evenly<T>(sorted: readonly T[], most: number): readonly T[] {
  if (sorted.length <= most) return sorted;
  return Array.from({ length: most }, (_, index) => sorted[Math.round((index * (sorted.length - 1)) / (most - 1))] as T);
}
