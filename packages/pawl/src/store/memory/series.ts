import type { State } from "../../core/job.js";
import { compareText, type Lane } from "../../core/lane.js";
import { type Activity, activitiesOf, MINUTE, NOBODY, NOTHING, STANDING, type Standing, type StepSum } from "../../core/series.js";
import type { SeriesQuery, SeriesStore, SeriesSums } from "../port-series.js";
import type { Tables } from "./state.js";

/** One minute of one queue and task. */
export interface SeriesRow {
  readonly minute: number;
  readonly queue: string;
  readonly task: string;
  readonly activities: Record<Activity, number>;
  readonly changes: Record<Standing, number>;
}

export function noteMove(tables: Tables, lane: Lane, from: State | undefined, to: State): void {
  const { activities } = rowOf(tables, lane);
  for (const activity of activitiesOf(from, to)) activities[activity]++;
}

export function noteChange(tables: Tables, lane: Lane, state: State, by: 1 | -1): void {
  if ((STANDING as readonly State[]).includes(state)) rowOf(tables, lane).changes[state as Standing] += by;
}

function rowOf(tables: Tables, { queue, task }: Lane): SeriesRow {
  const minute = Math.floor(tables.now / MINUTE);
  const key = `${minute}\u0001${queue}\u0001${task}`;
  let row = tables.series.get(key);
  if (row === undefined) {
    row = { minute, queue, task, activities: { ...NOTHING }, changes: { ...NOBODY } };
    tables.series.set(key, row);
  }
  return row;
}

export function memorySeries(tables: Tables): SeriesStore {
  return {
    read: (query) =>
      tables.step(() => {
        const length = query.step * MINUTE;
        const last = query.to === undefined ? Math.floor(tables.now / length) : Math.ceil(query.to / length) - 1;
        const first = query.from === undefined ? last - Math.ceil(query.last / length) + 1 : Math.floor(query.from / length);
        return { first, last, series: seriesOf(tables, query, first, last) };
      }),
    trim: (age, most) =>
      tables.step(() => {
        const before = tables.series.size;
        const newest = [...tables.series].sort(([, a], [, b]) => b.minute - a.minute);
        const oldest = newest[most - 1]?.[1].minute ?? 0;
        const from = Math.max(Math.floor((tables.now - age) / MINUTE), oldest);
        for (const [key, { minute }] of newest) if (minute < from) tables.series.delete(key);
        return before - tables.series.size;
      }),
  };
}

interface Gathered extends SeriesSums {
  readonly sums: StepSum[];
  readonly now: Record<Standing, number>;
  busy: number;
}

function seriesOf(tables: Tables, { by, step, limit, ...of }: SeriesQuery, first: number, last: number): readonly SeriesSums[] {
  const all = new Map<string, Gathered>();
  const isAsked = ({ queue, task }: Pick<SeriesRow, "queue" | "task">) => (of.queue ?? queue) === queue && (of.task ?? task) === task;
  const gathered = (row: Pick<SeriesRow, "queue" | "task">): Gathered => {
    const name = by === undefined ? "" : row[by];
    let found = all.get(name);
    if (found === undefined) {
      found = { ...(by === undefined ? {} : { name }), sums: [], now: { ...NOBODY }, busy: 0 };
      all.set(name, found);
    }
    return found;
  };
  for (const row of tables.counts.values()) {
    if (!isAsked(row) || STANDING.every((state) => row.counts[state] === 0)) continue;
    const { now } = gathered(row);
    for (const state of STANDING) now[state] += row.counts[state];
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

function add(sums: StepSum[], step: number, { activities, changes }: SeriesRow): void {
  let place = sums.findIndex((sum) => sum.step === step);
  if (place < 0) place = sums.push({ step, activities: NOTHING, changes: NOBODY }) - 1;
  const sum = sums[place] as StepSum;
  sums[place] = { step, activities: plus(sum.activities, activities), changes: plus(sum.changes, changes) };
}

function plus<K extends string>(a: Readonly<Record<K, number>>, b: Readonly<Record<K, number>>): Readonly<Record<K, number>> {
  return Object.fromEntries((Object.keys(a) as K[]).map((key) => [key, a[key] + b[key]])) as Record<K, number>;
}
