import type { Bus } from "../runtime/process/bus.js";
import type { Clock } from "../runtime/time/clock.js";
import { type Loop, loop } from "../runtime/time/loop.js";
import type { Duty } from "./duty.js";

/**
 * A full batch is followed by the next at once; work that trickles in is gathered for as long as the last run took, up to
 * this (ms). Who found nothing to do, though it was due, rests for all of it: somebody else is at it.
 */
const GATHER_MS = 4;
const MIN_GATHER_MS = 1;
const STUCK_AFTER_MS = 60_000;

/** Runs one duty whenever it is due, apart from all others: its failures and its back-off are its own. */
export class DutyRunner {
  readonly #loop: Loop;
  #dueAt = Number.POSITIVE_INFINITY;
  #idleUntil = Number.NEGATIVE_INFINITY;

  constructor(
    readonly duty: Duty,
    private readonly clock: Clock,
    private readonly bus: Bus,
  ) {
    this.#loop = loop({
      clock,
      step: () => this.#step(),
      onError: (error) => bus.emit("duty.failed", { duty: duty.name, error }),
      patience: STUCK_AFTER_MS,
    });
  }

  /** There is something to do in that many ms. The earliest such time counts. */
  schedule(ms: number): void {
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
    const wait = Math.max(this.#dueAt, this.#idleUntil) - began;
    if (wait > 0) return wait === Number.POSITIVE_INFINITY ? undefined : wait;
    const dueAt = this.#dueAt;
    this.#dueAt = Number.POSITIVE_INFINITY;
    try {
      const { count, nextIn } = await this.duty.run();
      const now = this.clock.monotonic();
      if (nextIn !== undefined) this.#dueAt = Math.min(this.#dueAt, now + nextIn);
      const idleFor = count === 0 ? GATHER_MS : Math.min(GATHER_MS, Math.max(MIN_GATHER_MS, now - began));
      this.#idleUntil = nextIn === 0 ? Number.NEGATIVE_INFINITY : now + idleFor;
      if (count > 0 && this.bus.hasListeners("duty.ran")) this.bus.emit("duty.ran", { duty: this.duty.name, count, duration: now - began });
    } catch (error) {
      // Still due: the loop comes back after its back-off.
      this.#dueAt = Math.min(this.#dueAt, dueAt);
      throw error;
    }
    return this.#dueAt === Number.POSITIVE_INFINITY ? undefined : Math.max(0, this.#dueAt - this.clock.monotonic());
  }
}
