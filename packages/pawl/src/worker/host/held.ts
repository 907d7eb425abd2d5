import { type Lane, type LaneKey, laneKey } from "../../core/lane.js";
import type { Caps } from "../caps.js";
import type { Holding } from "./told.js";

/** More lanes than any worker has jobs of, unless it makes them up. */
export const MOST_LANES = 10_000;
/** The same of jobs, of all lanes together. */
export const MOST_HELD = 100_000;

/**
 * How many jobs of each lane the worker has, so that what bounds it (slots, amounts, reservations) holds. Counted by
 * what goes through this process, and set right by what the worker says: it may have got jobs through others.
 */
export class Held {
  readonly #lanes = new Map<LaneKey, { readonly lane: Lane; count: number }>();

  constructor(private readonly caps: Pick<Caps, "taken" | "ended">) {}

  taken(lane: Lane, count = 1): void {
    this.#add(lane, count);
  }

  /** What it never counted, since the worker did not say so, cannot be given back. */
  over(lane: Lane): void {
    if ((this.#lanes.get(laneKey(lane))?.count ?? 0) > 0) this.#add(lane, -1);
  }

  /** The worker says what it has. */
  told(holding: readonly Holding[]): void {
    const said = new Map<LaneKey, Holding>();
    for (const { lane, count } of holding) said.set(laneKey(lane), { lane, count: (said.get(laneKey(lane))?.count ?? 0) + count });
    for (const [key, { lane, count }] of [...this.#lanes]) this.#add(lane, (said.get(key)?.count ?? 0) - count);
    for (const [key, { lane, count }] of said) if (!this.#lanes.has(key)) this.#add(lane, count);
  }

  #add(lane: Lane, by: number): void {
    const key = laneKey(lane);
    const count = (this.#lanes.get(key)?.count ?? 0) + by;
    if (count === 0) this.#lanes.delete(key);
    else this.#lanes.set(key, { lane, count });
    if (by > 0) this.caps.taken(lane, by);
    if (by < 0) this.caps.ended(lane, -by);
  }
}
