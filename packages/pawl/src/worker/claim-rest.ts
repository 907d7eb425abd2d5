import { Backoff } from "../runtime/backoff.js";
import type { Clock } from "../runtime/clock.js";
import type { HeldLease } from "./held-lease.js";

/** ms; the first is short, since most often it was the store that was away, and it is back */
const REST = { min: 250, max: 30_000 };

/**
 * After a lease was lost unrenewed, claims rest. Where renewals do not get through for good, a worker that claimed again
 * at once would run the same jobs up to the end of one lease after the other.
 */
export class ClaimRest {
  readonly #backoff: Backoff;
  #begunAt = Number.NEGATIVE_INFINITY;
  #resting = false;
  #cancel: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly onOver: () => void,
  ) {
    this.#backoff = new Backoff(clock, REST);
  }

  get resting(): boolean {
    return this.#resting;
  }

  /** Those claimed before the last rest say nothing new. */
  lost({ sentAt }: Pick<HeldLease, "sentAt">): void {
    if (this.#resting || sentAt < this.#begunAt) return;
    this.#begunAt = this.clock.monotonic();
    this.#resting = true;
    this.#cancel = this.clock.after(this.#backoff.next(), () => {
      this.#resting = false;
      this.onOver();
    });
  }

  renewed(): void {
    this.#backoff.reset();
  }

  stop(): void {
    this.#cancel?.();
  }
}
