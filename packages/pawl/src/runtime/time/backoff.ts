import type { Clock } from "./clock.js";

export interface BackoffRange {
  /** ms */
  readonly min: number;
  readonly max: number;
}

/** Full jitter: anywhere between nothing and a bound that doubles, so that many who failed together return apart. */
export class Backoff {
  #failures = 0;

  constructor(
    private readonly clock: Clock,
    private readonly range: BackoffRange = { min: 100, max: 5_000 },
  ) {}

  next(): number {
    const bound = Math.min(this.range.max, this.range.min * 2 ** Math.min(this.#failures, 20));
    this.#failures++;
    // Never quite nothing: a failure that returns at once must not become a tight loop.
    return Math.max(this.range.min / 10, bound * this.clock.random());
  }

  reset(): void {
    this.#failures = 0;
  }
}
