const TICK_MS = 20;
/** ms; less is how computers are */
const NOTED_MS = 100;

/**
 * How long this machine stood still, as far as one process can tell: time in which a timer was due and did not fire. A
 * promise in seconds is about the time in which a process gets to run, and shared machines take that away at times.
 */
export class Standstill implements Disposable {
  #total = 0;
  #last = performance.now();
  readonly #timer = setInterval(() => this.#look(), TICK_MS);

  get ms(): number {
    this.#look();
    return this.#total;
  }

  #look(): void {
    const now = performance.now();
    const late = now - this.#last - TICK_MS;
    if (late > NOTED_MS) this.#total += late;
    this.#last = now;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
