import { Backoff } from "../../runtime/time/backoff.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { HeldLease } from "../settle/held-lease.js";

/** ms; the first is short, since most often it was the store that was away, and it is back */
const BACKOFF_MS = { min: 250, max: 30_000 };

/**
 * After a lease was lost unrenewed, claims back off. Where renewals do not get through for good, a worker that claimed again
 * at once would run the same jobs up to the end of one lease after the other.
 */
export class ClaimBackoff {
  readonly #backoff: Backoff;
  #startedAt = Number.NEGATIVE_INFINITY;
  #active = false;
  #cancel: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly onEnd: () => void,
  ) {
    this.#backoff = new Backoff(clock, BACKOFF_MS);
  }

  get active(): boolean {
    return this.#active;
  }

  /** Those claimed before the last backoff say nothing new. */
  leaseLost({ sentAt }: Pick<HeldLease, "sentAt">): void {
    if (this.#active || sentAt < this.#startedAt) return;
    this.#startedAt = this.clock.monotonic();
    this.#active = true;
    this.#cancel = this.clock.after(this.#backoff.next(), () => {
      this.#active = false;
      this.onEnd();
    });
  }

  leaseRenewed(): void {
    this.#backoff.reset();
  }

  stop(): void {
    this.#cancel?.();
  }
}
