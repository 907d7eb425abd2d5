import type { Durations } from "../../core/limits/slot-use.js";
import { DEFAULTS } from "../../core/values/defaults.js";

/** How much a new duration counts: a change of pace shows after a handful of jobs. */
const NEW_DURATION_WEIGHT = 0.1;

/** What is left of the longest duration after one more: of a thousand quick jobs ago it says nothing. */
const LONGEST_DECAY = 0.99;

/** ms of slots for which jobs are claimed ahead */
export function timeAhead(concurrency: number): number {
  return concurrency * DEFAULTS.worker.lookahead;
}

/** How long attempts take lately, and so how many more could start soon. */
export class DurationEstimate {
  /** jobs asked for, held and running */
  outstandingJobs = 0;
  #mean: number | undefined;
  #took: number | undefined;
  #longest = 0;

  /** Of the attempts that ended lately; undefined: none has. */
  get durations(): Durations | undefined {
    return this.#took === undefined ? undefined : { took: this.#took, longest: this.#longest };
  }

  add(duration: number): void {
    this.#took = this.#took === undefined ? duration : this.#took + NEW_DURATION_WEIGHT * (duration - this.#took);
    this.#longest = Math.max(duration, this.#longest * LONGEST_DECAY);
    this.#mean = this.#mean === undefined ? duration : this.#mean + NEW_DURATION_WEIGHT * (duration - this.#mean);
  }

  /** An attempt takes that long already: whatever the mean says, the next ones will not start soon. */
  raiseTo(duration: number): void {
    this.#mean = Math.max(this.#mean ?? 0, duration);
  }

  /** Jobs beyond the free slots that would start within the look-ahead. Nothing is known at first, so nothing is. */
  ahead(concurrency: number): number {
    if (this.#mean === undefined) return 0;
    return Math.floor(timeAhead(concurrency) / Math.max(this.#mean, 0.001));
  }
}
