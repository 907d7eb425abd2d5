import type { Lane } from "../../core/jobs/lane.js";
import type { AnyTask } from "../../core/jobs/task.js";
import { meets, type Needs, type Provides } from "../../core/limits/capacity.js";
import { partsOf } from "../../core/limits/capacity-check.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { WorkerSettings } from "../options.js";
import type { WorkerLimit } from "./worker-limits.js";

export interface CapacityDeps {
  /** what this worker has */
  readonly has: Required<Provides>;
  /** what each task needs; those that need nothing are not in it */
  readonly needs: ReadonlyMap<string, Needs>;
  /** monotonic ms */
  readonly now: () => number;
  /** ms a task waits for room that others keep taking before room is kept for it */
  readonly patience: number;
}

/** None, if nothing that is served needs anything. */
export function capacityOf({ tasks: served, provides }: WorkerSettings, tasks: ReadonlyMap<string, AnyTask>, clock: Clock): Capacity | undefined {
  const needs = new Map(
    served.flatMap((task) => {
      const taskNeeds = tasks.get(task)?.options.needs;
      return taskNeeds === undefined ? [] : [[task, taskNeeds] as const];
    }),
  );
  if (needs.size === 0) return undefined;
  return new Capacity({ has: provides, needs, now: () => clock.monotonic(), patience: DEFAULTS.capacity.patience });
}

/** One task's share of what the worker has, in whole parts. */
interface TaskDemand {
  readonly possible: boolean;
  readonly resources: readonly (readonly [name: string, parts: number])[];
  /** since when its jobs found no room */
  waitsSince: number | undefined;
}

/**
 * What a worker has, and what its handlers use of it. Taken before a claim is sent and given back when a handler has
 * truly ended, so it is never oversubscribed, and a worker that dies gives all of it back with its process.
 *
 * A task that has waited for longer than `patience` is the one room is kept for: others take only what is left beside
 * its need. So it starts when as much has been given back as it lacks: at the latest when the longest of the handlers
 * that run by then has ended.
 */
export class Capacity implements WorkerLimit {
  readonly until = "handler";
  readonly #demands: ReadonlyMap<string, TaskDemand>;
  readonly #total: ReadonlyMap<string, number>;
  readonly #used = new Map<string, number>();
  #waiting = 0;

  constructor(private readonly deps: CapacityDeps) {
    const { has, needs } = deps;
    this.#total = inParts(has.resources);
    this.#demands = new Map(
      [...needs].map(([task, taskNeeds]) => [
        task,
        { possible: meets(has, taskNeeds), resources: [...inParts(taskNeeds.resources ?? {})], waitsSince: undefined },
      ]),
    );
  }

  /** What is used of each amount, for people. */
  get used(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#total.keys()].map((name) => [name, (this.#used.get(name) ?? 0) / partsOf(1)]));
  }

  serves({ task }: Pick<Lane, "task">): boolean {
    return this.#demands.get(task)?.possible ?? true;
  }

  room({ task }: Pick<Lane, "task">): number {
    const demand = this.#demands.get(task);
    if (demand === undefined) return Number.POSITIVE_INFINITY;
    if (!demand.possible) return 0;
    const longestWaiting = this.#longestWaiting();
    const room = this.#fits(demand, longestWaiting === demand ? undefined : longestWaiting);
    if (room === 0 && demand.waitsSince === undefined) {
      demand.waitsSince = this.deps.now();
      this.#waiting++;
    }
    return room;
  }

  take({ task }: Pick<Lane, "task">, count: number): void {
    const demand = this.#demands.get(task);
    if (demand === undefined) return;
    for (const [name, parts] of demand.resources) this.#used.set(name, (this.#used.get(name) ?? 0) + count * parts);
    if (count > 0) this.#served(demand);
  }

  admits(tasks: readonly string[]): readonly string[] {
    return this.#demands.size === 0 ? tasks : tasks.filter((task) => this.room({ task }) > 0);
  }

  /** As much of each amount as the greediest of them needs. */
  takeAny(tasks: readonly string[], count: 1 | -1): void {
    const most = new Map<string, number>();
    for (const task of tasks)
      for (const [name, parts] of this.#demands.get(task)?.resources ?? []) most.set(name, Math.max(most.get(name) ?? 0, parts));
    for (const [name, parts] of most) this.#used.set(name, (this.#used.get(name) ?? 0) + count * parts);
  }

  /** A task whose jobs others have taken waits no longer. */
  refreshed(lanes: readonly Lane[]): void {
    if (this.#waiting === 0) return;
    const live = new Set(lanes.map(({ task }) => task));
    for (const [task, demand] of this.#demands) if (!live.has(task)) this.#served(demand);
  }

  #fits({ resources }: TaskDemand, longestWaiting: TaskDemand | undefined): number {
    let room = Number.POSITIVE_INFINITY;
    for (const [name, parts] of resources) {
      const reserved = longestWaiting?.resources.find(([other]) => other === name)?.[1] ?? 0;
      const free = (this.#total.get(name) ?? 0) - (this.#used.get(name) ?? 0) - reserved;
      room = Math.min(room, Math.max(0, Math.floor(free / parts)));
    }
    return room;
  }

  /** The one that has waited longest, and too long. */
  #longestWaiting(): TaskDemand | undefined {
    if (this.#waiting === 0) return undefined;
    let first: TaskDemand | undefined;
    for (const demand of this.#demands.values()) {
      if (demand.waitsSince !== undefined && demand.waitsSince < (first?.waitsSince ?? Number.POSITIVE_INFINITY)) first = demand;
    }
    return first?.waitsSince !== undefined && this.deps.now() - first.waitsSince >= this.deps.patience ? first : undefined;
  }

  #served(demand: TaskDemand): void {
    if (demand.waitsSince === undefined) return;
    demand.waitsSince = undefined;
    this.#waiting--;
  }
}

function inParts(resources: Readonly<Record<string, number>>): ReadonlyMap<string, number> {
  return new Map(Object.entries(resources).map(([name, amount]) => [name, partsOf(amount)]));
}
