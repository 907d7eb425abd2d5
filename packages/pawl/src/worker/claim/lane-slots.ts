import { type TargetRef, targetKey } from "../../core/access/push-target.js";
import type { Lane } from "../../core/jobs/lane.js";
import type { WorkerLimit } from "./worker-limits.js";

/** What a worker serves that is for some tasks of some tenants alone: which, and how many jobs of each it has at a time. */
export class LaneSlots implements WorkerLimit {
  readonly until = "handler";
  readonly #used = new Map<string, number>();

  /** `size`: of one of them now; none: nothing of it is taken. */
  constructor(
    readonly refs: readonly TargetRef[],
    private readonly size: (ref: TargetRef) => number | undefined,
  ) {}

  serves(lane: Lane): boolean {
    return this.size(lane) !== undefined;
  }

  room(lane: Lane): number {
    return Math.max(0, (this.size(lane) ?? 0) - (this.#used.get(targetKey(lane)) ?? 0));
  }

  take(lane: Lane, count: number): void {
    const key = targetKey(lane);
    const used = (this.#used.get(key) ?? 0) + count;
    if (used === 0) this.#used.delete(key);
    else this.#used.set(key, used);
  }
}
