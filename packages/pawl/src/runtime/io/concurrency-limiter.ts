/** Lets so many pieces of work go on at once; the rest waits in order. */
export class ConcurrencyLimiter {
  #free: number;
  #waiting: (() => void)[] = [];
  #next = 0;

  constructor(max: number) {
    this.#free = max;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  /** A place goes straight to who waits for it. The line is cut now and then, so that leaving it costs nothing. */
  #release(): void {
    const next = this.#waiting[this.#next];
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#next++;
    if (this.#next > 1_000 && this.#next * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    next();
  }
}
