import { SafeSequence, type SnapshotHorizon } from "./safe-sequence.js";

/** How far a statement's own clock, or a number drawn early, may lag behind the id of its transaction, generously. */
const CLOCK_MARGIN_MS = 5_000;
const NUMBER_MARGIN = 1_000;

/**
 * A value of an index below which nothing live can be left or appear, so that a look for the smallest one need not
 * walk the dead rows that pile up there while some transaction pins the horizon. Private to this process, and learnt
 * again from nothing after a restart.
 */
class LowWatermark {
  #safe = new SafeSequence();
  #value = 0;
  #last = 0;
  constructor(readonly margin: number) {}

  get value(): number {
    return this.#value;
  }

  /** `reading`: what everything written from now on is above. `head`: the smallest one seen, undefined if none. */
  saw(reading: number, head: number | undefined, horizon: SnapshotHorizon): void {
    // The server's clock went back: nothing known about times holds.
    if (reading < this.#last) this.forget();
    this.#last = reading;
    const safe = this.#safe.observe(reading - this.margin, horizon);
    this.#value = Math.max(this.#value, Math.min(head ?? safe, safe));
  }

  forget(): void {
    this.#safe = new SafeSequence();
    this.#value = 0;
  }
}

/** One for every index that the duties read from its low end. New times are never before now, new numbers never below the last. */
export class LowWatermarks {
  readonly scheduled = new LowWatermark(CLOCK_MARGIN_MS);
  readonly lease = new LowWatermark(CLOCK_MARGIN_MS);
  readonly timer = new LowWatermark(CLOCK_MARGIN_MS);
  readonly tick = new LowWatermark(CLOCK_MARGIN_MS);
  readonly limitCheck = new LowWatermark(CLOCK_MARGIN_MS);
  readonly delta = new LowWatermark(NUMBER_MARGIN);
  #polls = 0;

  /** An id of a transaction is drawn by one poll in five: often enough, and the rest of them write nothing. */
  drawsTransactionId(): boolean {
    return this.#polls++ % 5 === 0;
  }

  /** Another server answers, which may lack what the last one had: what was gone can be there again. */
  forget(): void {
    for (const one of [this.scheduled, this.lease, this.timer, this.tick, this.limitCheck, this.delta]) one.forget();
  }
}
