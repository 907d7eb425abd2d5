import type { NewJob } from "../../core/jobs/job.js";
import { type LaneKey, laneKey } from "../../core/jobs/lane.js";
import type { ChunkPipe } from "./chunks.js";

/** Jobs that are gathered before they go out: enough for most calls, and no more memory than they have taken already. */
const MAX_GATHERED_JOBS = 100_000;

/**
 * Sends the jobs of a call lane by lane. Those of one lane that are stored together cost a fraction, from here to their
 * history, and a call for thousands of tenants may name each of them in turn. Inside a lane they stay in order, which is all
 * the order that jobs have.
 */
export class LaneGrouper {
  /** places in the call, in the order they went out */
  readonly sent: number[] = [];
  #jobs: NewJob[] = [];

  constructor(private readonly pipe: Pick<ChunkPipe, "add">) {}

  add(job: NewJob): Promise<void> | undefined {
    this.#jobs.push(job);
    return this.#jobs.length >= MAX_GATHERED_JOBS ? this.flush() : undefined;
  }

  async flush(): Promise<void> {
    const [jobs, first] = [this.#jobs, this.sent.length];
    this.#jobs = [];
    for (const index of indexesByLane(jobs)) {
      this.sent.push(first + index);
      const wait = this.pipe.add(jobs[index] as NewJob);
      if (wait !== undefined) await wait;
    }
  }
}

/** The places of jobs, lane by lane. Where the first of several counts (idempotency keys, keys, limits), whatever its lane, they stay as they are. */
export function indexesByLane(jobs: readonly NewJob[]): readonly number[] {
  const lanes = new Map<LaneKey, number[]>();
  for (const [index, { lane, idempotencyKey, unique, options }] of jobs.entries()) {
    if (idempotencyKey !== undefined || unique !== undefined || options?.limits !== undefined) return [...jobs.keys()];
    const key = laneKey(lane);
    const indexes = lanes.get(key);
    if (indexes === undefined) lanes.set(key, [index]);
    else indexes.push(index);
  }
  return [...lanes.values()].flat();
}
