import { type Lane, type LaneKey, laneKey } from "../core/lane.js";

interface Known {
  readonly lane: Lane;
  /** when it was last said to have work, in the claimer's own count */
  stamp: number;
  /** its place in its band's ring */
  place: number;
}

interface Ring {
  readonly lanes: Known[];
  start: number;
}

/** Lanes of a band looked at by one claim: a claim takes hundreds of jobs, so thousands of lanes come in turn. */
const WINDOW = 128;

/** The lanes known to have work, by band. What is not known costs nothing: a hint or the poll brings it. */
export class LaneBook {
  readonly #known = new Map<LaneKey, Known>();
  readonly #bands = new Map<number, Ring>();

  get size(): number {
    return this.#known.size;
  }

  add(lane: Lane, stamp: number): void {
    const key = laneKey(lane);
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.stamp = stamp;
      return;
    }
    let ring = this.#bands.get(lane.band);
    if (ring === undefined) {
      ring = { lanes: [], start: 0 };
      this.#bands.set(lane.band, ring);
    }
    const entry: Known = { lane, stamp, place: ring.lanes.length };
    ring.lanes.push(entry);
    this.#known.set(key, entry);
  }

  /** Forgets a lane that gave nothing, unless it was said to have work after `since`. */
  forget(lane: Lane, since: number): void {
    const key = laneKey(lane);
    const known = this.#known.get(key);
    if (known === undefined || known.stamp > since) return;
    this.#known.delete(key);
    const ring = this.#bands.get(lane.band) as Ring;
    const last = ring.lanes.pop() as Known;
    if (last === known) return;
    ring.lanes[known.place] = last;
    last.place = known.place;
  }

  /** Takes over a fresh list; lanes hinted at since it was asked for stay. */
  replace(lanes: readonly Lane[], since: number): void {
    const fresh = new Set(lanes.map(laneKey));
    for (const [key, { lane }] of this.#known) if (!fresh.has(key)) this.forget(lane, since);
    for (const lane of lanes) if (!this.#known.has(laneKey(lane))) this.add(lane, since);
  }

  /** The lanes for one claim: of each band the next ones in turn. */
  next(): readonly Lane[] {
    const chosen: Lane[] = [];
    for (const ring of this.#bands.values()) {
      const count = Math.min(WINDOW, ring.lanes.length);
      for (let i = 0; i < count; i++) chosen.push((ring.lanes[(ring.start + i) % ring.lanes.length] as Known).lane);
      if (ring.lanes.length > WINDOW) ring.start = (ring.start + count) % ring.lanes.length;
    }
    return chosen;
  }
}
