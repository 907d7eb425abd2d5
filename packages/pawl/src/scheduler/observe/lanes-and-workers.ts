import type { Lane } from "../../core/jobs/lane.js";
import { takesJobs } from "../../core/limits/able-workers.js";
import { type Lack, lackInWords, lacksOf, type Needs, type Serves } from "../../core/limits/capacity.js";
import type { SlotUse } from "../../core/limits/slot-use.js";
import type { Store } from "../../store/port/index.js";

/** A lane with ready jobs that no live worker can run, and why. */
export interface UnservedLane {
  readonly lane: Lane;
  readonly lacks: readonly Lack[];
  /** the same for people */
  readonly why: string;
}

/** A lane with ready jobs, and how many live workers can run them. */
export interface LiveLaneView {
  readonly lane: Lane;
  readonly workers: number;
  /** why none of them can */
  readonly why?: string;
}

/** A worker that is there, as people see it. */
export interface LiveWorkerView extends Omit<Serves, "took" | "slots"> {
  readonly name: string;
  readonly instance: string;
  readonly since: Date;
  /** as it said last, up to 15 s ago; absent: it is of a version that does not say so */
  readonly slots?: Pick<SlotUse, "total" | "inUse" | "overrun" | "stuck">;
  /** when the handler began that has run longest; absent where none runs */
  readonly oldest?: Date;
}

export async function liveWorkers(store: Store): Promise<readonly LiveWorkerView[]> {
  // How long whose jobs take is not for everybody who may see that it is there.
  return (await store.workers.live()).map(({ name, instance, since, serves: { took: _, slots, ...serves } }) => ({
    name,
    instance,
    since: new Date(since),
    ...serves,
    ...(slots === undefined ? {} : slotsView(slots)),
  }));
}

function slotsView({ total, inUse, overrun, stuck, tasks: [first] }: SlotUse): Pick<LiveWorkerView, "slots" | "oldest"> {
  return {
    slots: { total, inUse, overrun, ...(stuck === true ? { stuck } : {}) },
    ...(first?.since === undefined ? {} : { oldest: new Date(first.since) }),
  };
}

/** Lanes that are paused are left out: they wait for something else. */
export async function unservedLanes(store: Store): Promise<readonly UnservedLane[]> {
  const { lanes, needsOf, workers } = await readyLanesAndWorkers(store);
  return lanes.flatMap((lane) => {
    const lacks = lacksOf(lane, needsOf(lane), workers);
    return lacks.length === 0 ? [] : [{ lane, lacks, why: lacksInWords(lacks) }];
  });
}

export async function liveLanes(store: Store): Promise<readonly LiveLaneView[]> {
  const { lanes, needsOf, workers } = await readyLanesAndWorkers(store);
  return lanes.map((lane) => {
    const ableWorkers = workers.filter((worker) => lacksOf(lane, needsOf(lane), [worker]).length === 0).length;
    return { lane, workers: ableWorkers, ...(ableWorkers > 0 ? {} : { why: lacksInWords(lacksOf(lane, needsOf(lane), workers)) }) };
  });
}

function lacksInWords(lacks: readonly Lack[]): string {
  return lacks.map(lackInWords).join("; ");
}

/** The lanes with ready jobs, what their tasks need, and who is there. */
async function readyLanesAndWorkers(store: Store): Promise<{ lanes: readonly Lane[]; needsOf: (lane: Lane) => Needs; workers: readonly Serves[] }> {
  const ready = (await store.records.counts()).filter(({ counts }) => counts.ready > 0);
  const tasks = [...new Set(ready.map(({ task }) => task))];
  if (tasks.length === 0) return { lanes: [], needsOf: () => ({}), workers: [] };
  const [{ lanes }, live, records] = await Promise.all([store.lanes.live(undefined, tasks), store.workers.live(), store.tasks.get(tasks)]);
  const needs = new Map(records.map(({ name, defaults }) => [name, defaults.needs ?? {}]));
  return { lanes, needsOf: ({ task }) => needs.get(task) ?? {}, workers: live.map(({ serves }) => serves).filter(takesJobs) };
}
