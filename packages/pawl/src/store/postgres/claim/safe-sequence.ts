/** Ids of transactions grow, so whoever has a smaller one began earlier. */
export interface SnapshotHorizon {
  /** All transactions with smaller ids have ended, and what they wrote can be seen by the statement that says so. */
  readonly xmin: number;
  /** An id drawn after what that statement read. */
  readonly xact: number | undefined;
}

/**
 * A value below which nothing new can appear: a sequence's value at a moment all of whose transactions have ended.
 *
 * Every transaction that drew a number up to `value` had its id before it drew, so it is smaller than one that is drawn after the
 * value was read. Once `xmin` has passed that, all of them have ended and what they wrote can be seen. (The `xmax` of a snapshot
 * would not do: it is one past the last id that has ended, and there may be larger ones at work.) A reader that merely holds an
 * old snapshot has no id and holds nothing back.
 */
export class SafeSequence {
  #safe: number;
  #waiting: { readonly value: number; readonly xact: number } | undefined;

  constructor(start = 0) {
    this.#safe = start;
  }

  observe(value: number, { xmin, xact }: SnapshotHorizon): number {
    if (this.#waiting !== undefined && xmin >= this.#waiting.xact) {
      this.#safe = Math.max(this.#safe, this.#waiting.value);
      this.#waiting = undefined;
    }
    if (this.#waiting === undefined && xact !== undefined) this.#waiting = { value, xact };
    return this.#safe;
  }

  get value(): number {
    return this.#safe;
  }
}
