import type { Lane } from "../../core/jobs/lane.js";
import type { WorkerLimit } from "./worker-limits.js";

/**
 * Slots per queue and task, besides the worker's total. A slot is taken when a job is asked for and given back when
 * its handler has ended, so that no claimed job ever waits here for a slot of its queue while others could run.
 */
export class SlotLimits implements WorkerLimit {
  readonly until = "handler";
  readonly #usedByQueue = new Map<string, number>();
  readonly #usedByTask = new Map<string, number>();

  constructor(
    private readonly queues: ReadonlyMap<string, number>,
    private readonly tasks: ReadonlyMap<string, number>,
  ) {}

  room(lane: Pick<Lane, "queue" | "task">): number {
    return Math.max(0, Math.min(left(this.queues, this.#usedByQueue, lane.queue), left(this.tasks, this.#usedByTask, lane.task)));
  }

  take(lane: Pick<Lane, "queue" | "task">, count: number): void {
    if (this.queues.has(lane.queue)) add(this.#usedByQueue, lane.queue, count);
    if (this.tasks.has(lane.task)) add(this.#usedByTask, lane.task, count);
  }

  /** It may be of any queue, so all of them need room. */
  admits(tasks: readonly string[]): readonly string[] {
    for (const queue of this.queues.keys()) if (left(this.queues, this.#usedByQueue, queue) <= 0) return [];
    return tasks.filter((task) => left(this.tasks, this.#usedByTask, task) > 0);
  }

  takeAny(tasks: readonly string[], count: 1 | -1): void {
    for (const queue of this.queues.keys()) add(this.#usedByQueue, queue, count);
    for (const task of tasks) if (this.tasks.has(task)) add(this.#usedByTask, task, count);
  }
}

function add(used: Map<string, number>, name: string, count: number): void {
  used.set(name, (used.get(name) ?? 0) + count);
}

function left(limits: ReadonlyMap<string, number>, used: ReadonlyMap<string, number>, name: string): number {
  const limit = limits.get(name);
  return limit === undefined ? Number.POSITIVE_INFINITY : limit - (used.get(name) ?? 0);
}
