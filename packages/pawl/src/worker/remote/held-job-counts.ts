import { type Lane, type LaneKey, laneKey } from "../../core/jobs/lane.js";
import type { WorkerLimits } from "../claim/worker-limits.js";
import type { HeldJobs } from "./reported-outcome.js";

/** More lanes than any worker has jobs of, unless it makes them up. */
export const MAX_LANES = 10_000;
/** The same of jobs, of all lanes together. */
export const MAX_HELD_JOBS = 100_000;

/**
 * How many jobs of each lane the worker has, so that what bounds it (slots, amounts, reservations) holds. Counted by
 * what goes through this process, and set right by what the worker says: it may have got jobs through others.
 */
export class HeldJobCounts {
  readonly #lanes = new Map<LaneKey, { readonly lane: Lane; count: number }>();

  constructor(private readonly limits: Pick<WorkerLimits, "addJobs" | "removeJobs">) {}

  addJobs(lane: Lane, count = 1): void {
    this.#add(lane, count);
  }

  /** What it never counted, since the worker did not say so, cannot be given back. */
  removeJob(lane: Lane): void {
    if ((this.#lanes.get(laneKey(lane))?.count ?? 0) > 0) this.#add(lane, -1);
  }

  /** The worker says what it has. */
  set(heldJobs: readonly HeldJobs[]): void {
    const heldByLane = new Map<LaneKey, HeldJobs>();
    for (const { lane, count } of heldJobs) heldByLane.set(laneKey(lane), { lane, count: (heldByLane.get(laneKey(lane))?.count ?? 0) + count });
    for (const [key, { lane, count }] of [...this.#lanes]) this.#add(lane, (heldByLane.get(key)?.count ?? 0) - count);
    for (const [key, { lane, count }] of heldByLane) if (!this.#lanes.has(key)) this.#add(lane, count);
  }

  #add(lane: Lane, by: number): void {
    const key = laneKey(lane);
    const count = (this.#lanes.get(key)?.count ?? 0) + by;
    if (count === 0) this.#lanes.delete(key);
    else this.#lanes.set(key, { lane, count });
    if (by > 0) this.limits.addJobs(lane, by);
    if (by < 0) this.limits.removeJobs(lane, -by);
  }
}
