import { type Lack, lackInWords, lacksOf, type Serves } from "../core/capacity.js";
import type { Lane } from "../core/lane.js";
import type { Store } from "../store/port.js";

/** A lane with ready jobs that no live worker can run, and why. */
export interface UnservedLane {
  readonly lane: Lane;
  readonly lacks: readonly Lack[];
  /** the same for people */
  readonly why: string;
}

/** A worker that is there, as people see it. */
export interface LiveWorkerView extends Serves {
  readonly name: string;
  readonly boot: string;
  readonly since: Date;
}

export async function liveWorkers(store: Store): Promise<readonly LiveWorkerView[]> {
  return (await store.workers.live()).map(({ name, boot, since, serves }) => ({ name, boot, since: new Date(since), ...serves }));
}

/** Lanes that are paused are left out: they wait for something else. */
export async function unserved(store: Store): Promise<readonly UnservedLane[]> {
  const ready = (await store.records.counts()).filter(({ counts }) => counts.ready > 0);
  const tasks = [...new Set(ready.map(({ task }) => task))];
  if (tasks.length === 0) return [];
  const [{ lanes }, live, known] = await Promise.all([store.lanes.live(undefined, tasks), store.workers.live(), store.tasks.get(tasks)]);
  const needs = new Map(known.map(({ name, defaults }) => [name, defaults.needs ?? {}]));
  const workers = live.map(({ serves }) => serves);
  return lanes.flatMap((lane) => {
    const lacks = lacksOf(lane, needs.get(lane.task) ?? {}, workers);
    return lacks.length === 0 ? [] : [{ lane, lacks, why: lacks.map(lackInWords).join("; ") }];
  });
}
