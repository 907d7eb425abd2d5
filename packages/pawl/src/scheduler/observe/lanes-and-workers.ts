import type { Lane } from "../../core/jobs/lane.js";
import { takesJobs } from "../../core/limits/able-workers.js";
import { type Lack, lackInWords, lacksOf, type Needs, type Serves } from "../../core/limits/capacity.js";
import type { SlotUse } from "../../core/limits/slot-use.js";
import { checkName } from "../../core/values/name.js";
import { checkBoolean, checkKeys, checkObject } from "../../core/values/option.js";
import type { Store } from "../../store/port/index.js";
import type { PagedList } from "../page.js";

/** A lane with ready jobs, and how many live workers can run them. */
export interface LiveLaneView {
  readonly lane: Lane;
  readonly workers: number;
  /** needs of its jobs that no live worker meets; only where `workers` is 0 */
  readonly lacks?: readonly Lack[];
  /** the same for people */
  readonly why?: string;
}

export interface LanesFilter {
  /** true: only lanes that no live worker can run */
  readonly unserved?: boolean;
}

export interface Lanes {
  /** Lanes with ready jobs, and how many live workers can run them. Paused ones are left out. */
  list(filter?: LanesFilter): PagedList<LiveLaneView>;
}

export interface LiveWorkers {
  /** The workers that gave a sign of life in the last 45 s, in all processes. */
  list(): PagedList<LiveWorkerView>;
  /** The live worker of this name; of several, the one that started last. Undefined if there is none. */
  get(name: string): Promise<LiveWorkerView | undefined>;
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

/** The live worker of a name among all of them. */
export function newestOf(workers: readonly LiveWorkerView[], name: string): LiveWorkerView | undefined {
  checkName("worker name", name);
  return workers
    .filter((worker) => worker.name === name)
    .reduce<LiveWorkerView | undefined>((newest, worker) => (newest !== undefined && newest.since >= worker.since ? newest : worker), undefined);
}

const LANES_KEYS: ReadonlySet<string> = new Set(["unserved"] satisfies (keyof LanesFilter)[]);

export function checkLanesFilter(filter: LanesFilter = {}): LanesFilter {
  checkKeys(checkObject("filter", filter), LANES_KEYS);
  if (filter.unserved !== undefined) checkBoolean("unserved", filter.unserved);
  return filter;
}

/** Lanes that are paused are left out: they wait for something else. */
export async function liveLanes(store: Store, filter?: LanesFilter): Promise<readonly LiveLaneView[]> {
  const { unserved = false } = checkLanesFilter(filter);
  const { lanes, needsOf, workers } = await readyLanesAndWorkers(store);
  const views = lanes.map((lane) => laneView(lane, needsOf(lane), workers));
  return unserved ? views.filter((view) => view.workers === 0) : views;
}

function laneView(lane: Lane, needs: Needs, workers: readonly Serves[]): LiveLaneView {
  const ableWorkers = workers.filter((worker) => lacksOf(lane, needs, [worker]).length === 0).length;
  if (ableWorkers > 0) return { lane, workers: ableWorkers };
  const lacks = lacksOf(lane, needs, workers);
  return { lane, workers: 0, lacks, why: lacksInWords(lacks) };
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
