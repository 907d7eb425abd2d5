import type { LiveLanes } from "../port-lanes.js";

/** ms for which the last pulse is believed: two of them, and some */
const PULSE_BELIEVED = 2_500;
/** ms after which it is looked all the same: of a policy that was changed no pulse tells, if its wake-up was lost */
const LONGEST = 10_000;
/** ms after a claim for which whoever made it looks for itself, with its poll */
const BUSY = 900;

/** What a look for work answered, and whether there was nothing for anybody. */
export interface Looked {
  readonly live: LiveLanes;
  readonly nothing: boolean;
}

/**
 * Spares a process that pulses most looks for work of its idle workers. Every job that becomes ready draws a number, and a pulse
 * sees the last one: while of numbers up to that all was seen, a look that found nothing would find nothing again.
 */
export class Rest {
  #nothing: { readonly at: number; readonly live: LiveLanes } | undefined;
  #pulsedAt = Number.NEGATIVE_INFINITY;
  #claimedAt = Number.NEGATIVE_INFINITY;
  /** somebody here looks for work */
  #looks = false;
  /** counts what was heard */
  #heard = 0;

  constructor(
    private readonly monotonic: () => number,
    /** of numbers up to this one all was seen */
    private readonly seenUpTo: () => number,
    /** whether wake-ups arrive */
    private readonly hears: () => boolean,
  ) {}

  async look(ask: () => Promise<Looked>): Promise<LiveLanes> {
    this.#looks = true;
    const at = this.monotonic();
    if (this.#nothing !== undefined && this.hears() && at - this.#nothing.at < LONGEST && at - this.#pulsedAt < PULSE_BELIEVED)
      return this.#nothing.live;
    const heard = this.#heard;
    const { live, nothing } = await ask();
    // Others that look at the same time may have seen less.
    if (!nothing) this.#heard++;
    this.#nothing = nothing && heard === this.#heard ? { at, live } : undefined;
    return live;
  }

  /** A wake-up. */
  hear(): void {
    this.#heard++;
    this.#nothing = undefined;
  }

  /** Jobs were asked for: somebody here knows of work. */
  claims(): void {
    this.#claimedAt = this.monotonic();
  }

  /** Answers whether it is to be looked: work may have come that no wake-up told of, and nobody here has any. */
  pulsed(lastNumber: number): boolean {
    const now = this.monotonic();
    const isNew = lastNumber !== this.seenUpTo();
    this.#pulsedAt = isNew ? Number.NEGATIVE_INFINITY : now;
    return isNew && this.#looks && now - this.#claimedAt > BUSY;
  }
}
