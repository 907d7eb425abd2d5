import { DEFAULTS } from "../core/defaults.js";
import type { Clock } from "../runtime/clock.js";

export interface WatchParts {
  readonly clock: Clock;
  /** whether there is anything to watch */
  readonly isBusy: () => boolean;
  readonly onTick: (now: number) => void;
  /** the event loop was blocked for that long */
  readonly onBlocked: (lag: number) => void;
}

const EVERY = DEFAULTS.worker.intentPoll;
const BLOCKED_FROM = 1_000;

/** A tick every half second, only while jobs are in hand; how late it comes tells how long handlers blocked the loop. */
export class Watch {
  #cancel: (() => void) | undefined;

  constructor(private readonly parts: WatchParts) {}

  /** Cheap if it is armed already. */
  arm(): void {
    if (this.#cancel !== undefined) return;
    const { clock, isBusy, onTick, onBlocked } = this.parts;
    const expected = clock.monotonic() + EVERY;
    this.#cancel = clock.after(EVERY, () => {
      this.#cancel = undefined;
      const now = clock.monotonic();
      if (now - expected >= BLOCKED_FROM) onBlocked(now - expected);
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
