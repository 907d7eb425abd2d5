import type { Lane } from "../core/lane.js";
import type { Quota } from "../core/offer.js";

/**
 * Slots per queue and task, besides the worker's total. A slot is taken when a job is asked for and given back when
 * its attempt is over, so that no claimed job ever waits here for a slot of its queue while others could run.
 */
export class Slots {
  readonly #usedByQueue = new Map<string, number>();
  readonly #usedByTask = new Map<string, number>();

  constructor(
    private readonly queues: ReadonlyMap<string, number>,
    private readonly tasks: ReadonlyMap<string, number>,
  ) {}

  counts(lane: Pick<Lane, "queue" | "task">): boolean {
    return this.queues.has(lane.queue) || this.tasks.has(lane.task);
  }

  room(lane: Pick<Lane, "queue" | "task">): number {
    return Math.max(0, Math.min(left(this.queues, this.#usedByQueue, lane.queue), left(this.tasks, this.#usedByTask, lane.task)));
  }

  add(lane: Pick<Lane, "queue" | "task">, count: number): void {
    if (this.queues.has(lane.queue)) this.#usedByQueue.set(lane.queue, (this.#usedByQueue.get(lane.queue) ?? 0) + count);
    if (this.tasks.has(lane.task)) this.#usedByTask.set(lane.task, (this.#usedByTask.get(lane.task) ?? 0) + count);
  }

  /** Cuts the quotas to what is left, lane after lane, and takes it: lanes of one queue share its slots. */
  reserve(quotas: readonly Quota[]): readonly Quota[] {
    if (this.queues.size === 0 && this.tasks.size === 0) return quotas;
    const granted: Quota[] = [];
    for (const { lane, quota } of quotas) {
      const cut = Math.min(quota, this.room(lane));
      if (cut <= 0) continue;
      this.add(lane, cut);
      granted.push({ lane, quota: cut });
    }
    return granted;
  }

  /** Gives back what `reserve` took; the jobs that came are counted one by one. */
  unreserve(quotas: readonly Quota[]): void {
    if (this.queues.size === 0 && this.tasks.size === 0) return;
    for (const { lane, quota } of quotas) this.add(lane, -quota);
  }
}

function left(limits: ReadonlyMap<string, number>, used: ReadonlyMap<string, number>, name: string): number {
  const limit = limits.get(name);
  return limit === undefined ? Number.POSITIVE_INFINITY : limit - (used.get(name) ?? 0);
}
