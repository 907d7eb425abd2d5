import { STATES, type State } from "../core/job.js";
import { checkName } from "../core/name.js";
import type { CountRow, Store } from "../store/port.js";
import type { Registry } from "./registry.js";
import type { Named, QueueView, StateCounts, TaskView } from "./scheduler.js";

/** Queues and tasks, by name: what is paused or counted together. */
export class NamedLanes<View> implements Named<View> {
  constructor(
    readonly store: Store,
    readonly kind: "queue" | "task",
    /** names to list even while they have no jobs */
    readonly known: readonly string[],
    readonly view: (name: string, paused: boolean, counts: StateCounts) => View,
  ) {}

  async pause(name: string): Promise<void> {
    await this.store.lanes.pause(this.kind, checkName(this.kind, name));
  }

  async resume(name: string): Promise<void> {
    await this.store.lanes.resume(this.kind, checkName(this.kind, name));
  }

  async list(): Promise<readonly View[]> {
    const [rows, allPaused] = await Promise.all([this.store.records.counts(), this.store.lanes.paused()]);
    const paused = new Set(allPaused.filter(({ kind }) => kind === this.kind).map(({ name }) => name));
    const groups = new Map<string, CountRow[]>();
    for (const name of [...this.known, ...paused]) groups.set(name, []);
    for (const row of rows) {
      const group = groups.get(row[this.kind]);
      if (group === undefined) groups.set(row[this.kind], [row]);
      else group.push(row);
    }
    return [...groups.keys()].sort().map((name) => this.view(name, paused.has(name), sum(groups.get(name) as CountRow[])));
  }
}

export function queuesOf(store: Store, configured: readonly string[]): Named<QueueView> {
  return new NamedLanes(store, "queue", configured, (queue, paused, counts) => ({ queue, paused, counts }));
}

export function tasksOf(store: Store, registry: Registry): Named<TaskView> {
  return new NamedLanes(store, "task", [...registry.all.keys()], (task, paused, counts) => ({
    task,
    paused,
    registered: registry.get(task) !== undefined,
    counts,
  }));
}

export function sum(rows: readonly CountRow[]): StateCounts {
  const total = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  for (const { counts } of rows) for (const state of STATES) total[state] += counts[state];
  return total;
}
