import type { JobState } from "../../../core/jobs/job.js";
import { compareText, type Lane } from "../../../core/jobs/lane.js";
import {
  type Activity,
  activitiesOf,
  COUNTED_STATES,
  type CountedState,
  MINUTE_MS,
  NO_ACTIVITIES,
  NO_JOBS,
  type StepSum,
} from "../../../core/observe/series.js";
import type { SeriesQuery, SeriesStore, SeriesSums } from "../../port/observe/series.js";
import type { Tables } from "../state.js";

/** One minute of one queue and task. */
export interface MemorySeriesMinute {
  readonly minute: number;
  readonly queue: string;
  readonly task: string;
  readonly activities: Record<Activity, number>;
  readonly changes: Record<CountedState, number>;
}

export function noteMove(tables: Tables, lane: Lane, from: JobState | undefined, to: JobState): void {
  const { activities } = rowOf(tables, lane);
  for (const activity of activitiesOf(from, to)) activities[activity]++;
}

export function noteChange(tables: Tables, lane: Lane, state: JobState, by: 1 | -1): void {
  if ((COUNTED_STATES as readonly JobState[]).includes(state)) rowOf(tables, lane).changes[state as CountedState] += by;
}

function rowOf(tables: Tables, { queue, task }: Lane): MemorySeriesMinute {
  const minute = Math.floor(tables.now / MINUTE_MS);
  const key = `${minute}\u0001${queue}\u0001${task}`;
  let row = tables.series.get(key);
  if (row === undefined) {
    row = { minute, queue, task, activities: { ...NO_ACTIVITIES }, changes: { ...NO_JOBS } };
    tables.series.set(key, row);
  }
  return row;
}

export function memorySeries(tables: Tables): SeriesStore {
  return {
    read: (query) =>
      tables.step(() => {
        const length = query.step * MINUTE_MS;
        const last = query.to === undefined ? Math.floor(tables.now / length) : Math.ceil(query.to / length) - 1;
        const first = query.from === undefined ? last - Math.ceil(query.last / length) + 1 : Math.floor(query.from / length);
        return { first, last, series: seriesOf(tables, query, first, last) };
      }),
  };
}

/** Forgets minutes older than that many ms, and the oldest beyond so many rows. */
export function trimSeries(tables: Tables, age: number, most: number): number {
  const before = tables.series.size;
  const newest = [...tables.series].sort(([, a], [, b]) => b.minute - a.minute);
  const oldest = newest[most - 1]?.[1].minute ?? 0;
  const from = Math.max(Math.floor((tables.now - age) / MINUTE_MS), oldest);
  for (const [key, { minute }] of newest) if (minute < from) tables.series.delete(key);
  return before - tables.series.size;
}

interface GatheredSeries extends SeriesSums {
  readonly sums: StepSum[];
  readonly now: Record<CountedState, number>;
  busy: number;
}

function seriesOf(tables: Tables, { by, step, limit, ...of }: SeriesQuery, first: number, last: number): readonly SeriesSums[] {
  const all = new Map<string, GatheredSeries>();
  const isAsked = ({ queue, task }: Pick<MemorySeriesMinute, "queue" | "task">) => (of.queue ?? queue) === queue && (of.task ?? task) === task;
  const gathered = (row: Pick<MemorySeriesMinute, "queue" | "task">): GatheredSeries => {
    const name = by === undefined ? "" : row[by];
    let found = all.get(name);
    if (found === undefined) {
      found = { ...(by === undefined ? {} : { name }), sums: [], now: { ...NO_JOBS }, busy: 0 };
      all.set(name, found);
    }
    return found;
  };
  for (const row of tables.counts.values()) {
    if (!isAsked(row) || COUNTED_STATES.every((state) => row.counts[state] === 0)) continue;
    const { now } = gathered(row);
    for (const state of COUNTED_STATES) now[state] += row.counts[state];
  }
  for (const row of tables.series.values()) {
    const at = Math.floor(row.minute / step);
    if (!isAsked(row) || at < first) continue;
    const one = gathered(row);
    add(one.sums, Math.min(at, last + 1), row);
    if (at <= last) one.busy += row.activities.enqueued + row.activities.started;
  }
  return [...all.values()]
    .sort((a, b) => b.busy - a.busy || compareText(a.name ?? "", b.name ?? ""))
    .slice(0, limit)
    .map(({ busy: _, ...one }) => ({ ...one, sums: one.sums.sort((a, b) => a.step - b.step) }));
}

function add(sums: StepSum[], step: number, { activities, changes }: MemorySeriesMinute): void {
  let index = sums.findIndex((sum) => sum.step === step);
  if (index < 0) index = sums.push({ step, activities: NO_ACTIVITIES, changes: NO_JOBS }) - 1;
  const sum = sums[index] as StepSum;
  sums[index] = { step, activities: plus(sum.activities, activities), changes: plus(sum.changes, changes) };
}

function plus<K extends string>(a: Readonly<Record<K, number>>, b: Readonly<Record<K, number>>): Readonly<Record<K, number>> {
  return Object.fromEntries((Object.keys(a) as K[]).map((key) => [key, a[key] + b[key]])) as Record<K, number>;
}
