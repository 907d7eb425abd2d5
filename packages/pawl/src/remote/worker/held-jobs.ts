import { type Lane, type LaneKey, laneKey } from "../../core/jobs/lane.js";
import type { WorkerLimit } from "../../worker/claim/worker-limits.js";

/** Jobs in hand by lane, those included whose handlers ignore their end: what the service is told with every claim. */
export class HeldJobCounter implements WorkerLimit {
  readonly until = "handler";
  readonly #lanes = new Map<LaneKey, { readonly lane: Lane; count: number }>();

  room(): number {
    return Number.POSITIVE_INFINITY;
  }

  take(lane: Lane, by: number): void {
    const key = laneKey(lane);
    const count = (this.#lanes.get(key)?.count ?? 0) + by;
    if (count === 0) this.#lanes.delete(key);
    else this.#lanes.set(key, { lane, count });
  }

  heldJobs(): readonly object[] {
    return [...this.#lanes.values()].map(({ lane: { task, queue, priority, tenant }, count }) => ({ task, queue, priority, tenant, count }));
  }
}
