import type { LiveLanes } from "../../port/claim/lanes.js";

/** ms for which the last poll is believed: two of them, and some */
const MAINTENANCE_POLL_VALID_MS = 2_500;
/** ms after which it is looked all the same: of a policy that was changed no poll tells, if its wakeup was lost */
const MAX_SKIPPED_MS = 10_000;
/** ms after a claim for which whoever made it looks for itself, with its poll */
const BUSY_MS = 900;

/** What a look for work answered, and whether there was nothing for anybody. */
export interface PollResult {
  readonly live: LiveLanes;
  readonly nothing: boolean;
}

/**
 * Spares a process that polls most looks for work of its idle workers. Every job that becomes ready draws a number, and a poll
 * sees the last one: while of numbers up to that all was seen, a look that found nothing would find nothing again.
 */
export class IdlePolls {
  #nothing: { readonly at: number; readonly live: LiveLanes } | undefined;
  #maintenancePolledAt = Number.NEGATIVE_INFINITY;
  #claimedAt = Number.NEGATIVE_INFINITY;
  /** somebody here looks for work */
  #polls = false;
  /** counts what was heard */
  #wakeups = 0;

  constructor(
    private readonly monotonic: () => number,
    /** of numbers up to this one all was seen */
    private readonly seenUpTo: () => number,
    /** whether wakeups arrive */
    private readonly receives: () => boolean,
  ) {}

  async poll(read: () => Promise<PollResult>): Promise<LiveLanes> {
    this.#polls = true;
    const at = this.monotonic();
    if (
      this.#nothing !== undefined &&
      this.receives() &&
      at - this.#nothing.at < MAX_SKIPPED_MS &&
      at - this.#maintenancePolledAt < MAINTENANCE_POLL_VALID_MS
    )
      return this.#nothing.live;
    const wakeups = this.#wakeups;
    const { live, nothing } = await read();
    // Others that look at the same time may have seen less.
    if (!nothing) this.#wakeups++;
    this.#nothing = nothing && wakeups === this.#wakeups ? { at, live } : undefined;
    return live;
  }

  /** A wakeup. */
  onWakeup(): void {
    this.#wakeups++;
    this.#nothing = undefined;
  }

  /** Jobs were asked for: somebody here knows of work. */
  onClaim(): void {
    this.#claimedAt = this.monotonic();
  }

  /** Answers whether it is to be looked: work may have come that no wakeup told of, and nobody here has any. */
  onMaintenancePoll(lastNumber: number): boolean {
    const now = this.monotonic();
    const isNew = lastNumber !== this.seenUpTo();
    this.#maintenancePolledAt = isNew ? Number.NEGATIVE_INFINITY : now;
    return isNew && this.#polls && now - this.#claimedAt > BUSY_MS;
  }
}
