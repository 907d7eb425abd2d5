import { DEFAULTS } from "../../core/values/defaults.js";
import type { Clock } from "../../runtime/time/clock.js";

export interface LoopLagMonitorDeps {
  readonly clock: Clock;
  /** whether there is anything to watch */
  readonly isBusy: () => boolean;
  readonly onTick: (now: number) => void;
  /** the event loop was blocked for that long */
  readonly onBlocked: (lag: number) => void;
}

const TICK_MS = DEFAULTS.worker.intentPoll;
const BLOCKED_FROM_MS = 1_000;

/** A tick every half second, only while jobs are in hand; how late it comes tells how long handlers blocked the loop. */
export class LoopLagMonitor {
  #cancel: (() => void) | undefined;

  constructor(private readonly deps: LoopLagMonitorDeps) {}

  /** Cheap if it is armed already. */
  arm(): void {
    if (this.#cancel !== undefined) return;
    const { clock, isBusy, onTick, onBlocked } = this.deps;
    const expected = clock.monotonic() + TICK_MS;
    this.#cancel = clock.after(TICK_MS, () => {
      this.#cancel = undefined;
      const now = clock.monotonic();
      if (now - expected >= BLOCKED_FROM_MS) onBlocked(now - expected);
      if (!isBusy()) return;
      this.arm();
      onTick(now);
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = () => {};
  }
}
