import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import type { Duty } from "./duty.js";

/**
 * A full batch is followed by the next at once; work that trickles in is gathered for as long as the last run took, up to
 * this (ms). Who found nothing to do, though it was due, rests for all of it: somebody else is at it.
 */
const GATHER = 4;
const LEAST = 1;
const PATIENCE = 60_000;

/** Runs one duty whenever it is due, apart from all others: its failures and its back-off are its own. */
export class Runs {
  readonly #loop: Loop;
  #dueAt = Number.POSITIVE_INFINITY;
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(
    readonly duty: Duty,
    private readonly clock: Clock,
    private readonly bus: Bus,
  ) {
    this.#loop = loop({
      clock,
      step: () => this.#step(),
      onError: (error) => bus.emit("duty.failed", { duty: duty.name, error }),
      patience: PATIENCE,
    });
  }

  /** There is something to do in that many ms. The earliest such time counts. */
  expect(ms: number): void {
    const at = this.clock.monotonic() + ms;
    if (at >= this.#dueAt) return;
    this.#dueAt = at;
    this.#loop.wake();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #step(): Promise<number | undefined> {
    const began = this.clock.monotonic();
    const wait = Math.max(this.#dueAt, this.#restsUntil) - began;
    if (wait > 0) return wait === Number.POSITIVE_INFINITY ? undefined : wait;
    const dueAt = this.#dueAt;
    this.#dueAt = Number.POSITIVE_INFINITY;
    try {
      const { count, nextIn } = await this.duty.run();
      const now = this.clock.monotonic();
      if (nextIn !== undefined) this.#dueAt = Math.min(this.#dueAt, now + nextIn);
      const rest = count === 0 ? GATHER : Math.min(GATHER, Math.max(LEAST, now - began));
      this.#restsUntil = nextIn === 0 ? Number.NEGATIVE_INFINITY : now + rest;
      if (count > 0 && this.bus.hears("duty.ran")) this.bus.emit("duty.ran", { duty: this.duty.name, count, duration: now - began });
    } catch (error) {
      // Still due: the loop comes back after its back-off.
      this.#dueAt = Math.min(this.#dueAt, dueAt);
      throw error;
    }
    return this.#dueAt === Number.POSITIVE_INFINITY ? undefined : Math.max(0, this.#dueAt - this.clock.monotonic());
  }
}
