import { DEFAULTS } from "../core/defaults.js";

/** How much a new duration counts: a change of pace shows after a handful of jobs. */
const WEIGHT = 0.1;

/** ms of slots for which jobs are claimed ahead */
export function timeAhead(concurrency: number): number {
  return concurrency * DEFAULTS.worker.lookahead;
}

/** How long attempts take lately, and so how many more could start soon. */
export class Pace {
  /** jobs asked for, held and running */
  inHand = 0;
  #mean: number | undefined;

  note(duration: number): void {
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
