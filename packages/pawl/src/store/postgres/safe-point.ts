/**
 * A value below which nothing new can appear: a sequence's value at a moment all of whose transactions have ended.
 *
 * Every transaction that drew a number up to `value` had its id before it drew, so its id is below the `xmax` of any
 * snapshot taken after the value was read; once `xmin` has passed that, all of them have ended and what they wrote
 * can be seen. A reader that merely holds an old snapshot has no id and holds nothing back.
 */
export class SafePoint {
  #safe: number;
  #read: number | undefined;
  #waiting: { value: number; xmax: number } | undefined;

  constructor(start = 0) {
    this.#safe = start;
  }

  /** The value was read after the snapshot (xmin, xmax) was taken, in the same statement. */
  observe(value: number, xmin: number, xmax: number): number {
    if (this.#waiting !== undefined && xmin >= this.#waiting.xmax) {
      this.#safe = Math.max(this.#safe, this.#waiting.value);
      this.#waiting = undefined;
    }
    // This snapshot is later than the previous reading: it bounds the transactions that reading could have missed.
    if (this.#waiting === undefined && this.#read !== undefined) {
      this.#waiting = { value: this.#read, xmax };
      if (xmin >= xmax) {
        this.#safe = Math.max(this.#safe, this.#read);
        this.#waiting = undefined;
      }
    }
    this.#read = value;
    return this.#safe;
  }

  get value(): number {
    return this.#safe;
  }
}
