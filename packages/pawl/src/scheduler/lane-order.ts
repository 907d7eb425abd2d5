import type { NewJob } from "../core/job.js";
import { type LaneKey, laneKey } from "../core/lane.js";
import type { ChunkPipe } from "./chunks.js";

/** Jobs that are gathered before they go out: enough for most calls, and no more memory than they have taken already. */
const GATHERED = 100_000;

/**
 * Sends the jobs of a call lane by lane. Those of one lane that are stored together cost a fraction, from here to their
 * history, and a call for thousands of tenants may name each of them in turn. Inside a lane they stay in order, which is all
 * the order that jobs have.
 */
export class LaneOrder {
  /** places in the call, in the order they went out */
  readonly sent: number[] = [];
  #jobs: NewJob[] = [];

  constructor(private readonly pipe: Pick<ChunkPipe, "add">) {}

  add(job: NewJob): Promise<void> | undefined {
    this.#jobs.push(job);
    return this.#jobs.length >= GATHERED ? this.flush() : undefined;
  }

  async flush(): Promise<void> {
    const [jobs, first] = [this.#jobs, this.sent.length];
    this.#jobs = [];
    for (const place of byLane(jobs)) {
      this.sent.push(first + place);
      const wait = this.pipe.add(jobs[place] as NewJob);
      if (wait !== undefined) await wait;
    }
  }
}

/** The places of jobs, lane by lane. Where the first of several counts (request ids, keys, limits), whatever its lane, they stay as they are. */
export function byLane(jobs: readonly NewJob[]): readonly number[] {
  const lanes = new Map<LaneKey, number[]>();
  for (const [place, { lane, request, unique, options }] of jobs.entries()) {
    if (request !== undefined || unique !== undefined || options?.limits !== undefined) return [...jobs.keys()];
    const key = laneKey(lane);
    const places = lanes.get(key);
    if (places === undefined) lanes.set(key, [place]);
    else places.push(place);
  }
  return [...lanes.values()].flat();
}
