import type { Lane } from "../core/lane.js";
import type { Cap } from "./caps.js";

/**
 * Slots per queue and task, besides the worker's total. A slot is taken when a job is asked for and given back when
 * its attempt is over, so that no claimed job ever waits here for a slot of its queue while others could run.
 */
export class Slots implements Cap {
  readonly until = "slot";
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
    if (this.queues.has(lane.queue)) this.#usedByQueue.set(lane.queue, (this.#usedByQueue.get(lane.queue) ?? 0) + count);
    if (this.tasks.has(lane.task)) this.#usedByTask.set(lane.task, (this.#usedByTask.get(lane.task) ?? 0) + count);
  }
}

function left(limits: ReadonlyMap<string, number>, used: ReadonlyMap<string, number>, name: string): number {
  const limit = limits.get(name);
  return limit === undefined ? Number.POSITIVE_INFINITY : limit - (used.get(name) ?? 0);
}
