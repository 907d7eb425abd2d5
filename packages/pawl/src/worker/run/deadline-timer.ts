import type { Clock } from "../../runtime/time/clock.js";

/**
 * One timer for many deadlines. Setting it costs a comparison unless the new time is the earliest, so every job can
 * have a deadline and only the ones that pass cost anything.
 */
export class DeadlineTimer {
  #at = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly onDue: () => void,
  ) {}

  /** Calls back at that time, or before. */
  schedule(at: number): void {
    if (at >= this.#at) return;
    this.#cancel?.();
    this.#at = at;
    this.#cancel = this.clock.after(Math.ceil(at - this.clock.monotonic()), () => {
      this.#at = Number.POSITIVE_INFINITY;
      this.#cancel = undefined;
      this.onDue();
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#at = Number.NEGATIVE_INFINITY;
  }
}
