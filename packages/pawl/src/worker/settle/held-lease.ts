import type { LeaseId } from "../../core/jobs/id.js";
import { stopBy } from "../../core/jobs/lease.js";
import type { Claimed } from "../../store/port/settle/leases.js";
import type { Attempt } from "../run/attempt.js";

/** A lease as its holder sees it, on the holder's monotonic clock. */
export class HeldLease {
  readonly id: LeaseId;
  readonly attempts: Attempt[] = [];
  /** jobs the store has not heard the end of */
  unsettled = 0;
  lost = false;
  /** from here on nothing may start under it, and what runs must stop */
  fenceAt: number;
  /** by when all its jobs will have ended: it is not renewed past that */
  latest = 0;
  readonly #now: number;

  constructor(
    claimed: Claimed,
    /** Counted from when the claim was sent: when it was answered says nothing about when the store began to count. */
    readonly sentAt: number,
    private readonly answeredAt: number,
    duration: number,
    readonly suspect: boolean,
  ) {
    this.id = claimed.lease;
    this.#now = claimed.now;
    this.fenceAt = stopBy(sentAt, duration);
  }

  /** The store's clock, told by monotonic time since the claim: this machine's own may be a day wrong. */
  storeTime(monotonic: number): number {
    return Math.round(this.#now + (monotonic - this.answeredAt));
  }
}
