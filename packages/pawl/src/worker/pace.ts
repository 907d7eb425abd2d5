import { DEFAULTS } from "../core/defaults.js";
import type { Durations } from "../core/slots.js";

/** How much a new duration counts: a change of pace shows after a handful of jobs. */
const WEIGHT = 0.1;

/** What is left of the longest duration after one more: of a thousand quick jobs ago it says nothing. */
const FADING = 0.99;

/** ms of slots for which jobs are claimed ahead */
export function timeAhead(concurrency: number): number {
  return concurrency * DEFAULTS.worker.lookahead;
}

/** How long attempts take lately, and so how many more could start soon. */
export class Pace {
  /** jobs asked for, held and running */
  inHand = 0;
  #mean: number | undefined;
  #took: number | undefined;
  #longest = 0;

  /** Of the attempts that ended lately; undefined: none has. */
  get durations(): Durations | undefined {
    return this.#took === undefined ? undefined : { took: this.#took, longest: this.#longest };
  }

  note(duration: number): void {
    this.#took = this.#took === undefined ? duration : this.#took + WEIGHT * (duration - this.#took);
    this.#longest = Math.max(duration, this.#longest * FADING);
    this.#mean = this.#mean === undefined ? duration : this.#mean + WEIGHT * (duration - this.#mean);
  }

  /** An attempt takes that long already: whatever the mean says, the next ones will not start soon. */
  atLeast(duration: number): void {
    this.#mean = Math.max(this.#mean ?? 0, duration);
  }

  /** Jobs beyond the free slots that would start within the look-ahead. Nothing is known at first, so nothing is. */
  ahead(concurrency: number): number {
    if (this.#mean === undefined) return 0;
    return Math.floor(timeAhead(concurrency) / Math.max(this.#mean, 0.001));
  }
}
