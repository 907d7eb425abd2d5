import { DEFAULTS } from "../core/defaults.js";
import type { Clock } from "../runtime/clock.js";
import { Alarm } from "./alarm.js";
import type { Attempt } from "./attempt.js";

export interface OverrunsParts {
  readonly clock: Clock;
  /** lost ones from which on the worker is stuck */
  readonly most: number;
  /** it is stuck from now on, or no longer */
  readonly onChange: (stuck: boolean) => void;
}

/**
 * Handlers that go on though their attempts are over: nothing in JavaScript can end them. Each keeps its slot until it ends,
 * so that no more handlers run than there are slots. One that has not ended within a grace is lost, most likely for ever;
 * with so many lost ones the worker is stuck, and its process had better be replaced.
 */
export class Overruns {
  readonly #since = new Map<Attempt, number>();
  readonly #alarm: Alarm;
  #stuck = false;
  #idle: (() => void)[] = [];

  constructor(private readonly parts: OverrunsParts) {
    this.#alarm = new Alarm(parts.clock, () => this.#look());
  }

  get count(): number {
    return this.#since.size;
  }

  /** With when their attempts were over; the one that began first comes first. */
  get all(): Iterable<readonly [attempt: Attempt, since: number]> {
    return this.#since;
  }

  get stuck(): boolean {
    return this.#stuck;
  }

  add(attempt: Attempt): void {
    this.#since.set(attempt, this.parts.clock.monotonic());
    this.#look();
  }

  /** The handler has ended. */
  ended(attempt: Attempt): void {
    if (!this.#since.delete(attempt)) return;
    this.#look();
    if (this.count === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Resolves when there are none. */
  none(): Promise<void> {
    if (this.count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  stop(): void {
    this.#alarm.stop();
  }

  #look(): void {
    const last = this.#decisive();
    const lostAt = last === undefined ? Number.POSITIVE_INFINITY : last + DEFAULTS.worker.overrun;
    const stuck = this.parts.clock.monotonic() >= lostAt;
    if (!stuck && Number.isFinite(lostAt)) this.#alarm.by(lostAt);
    if (stuck === this.#stuck) return;
    this.#stuck = stuck;
    this.parts.onChange(stuck);
  }

  /** When the one began with whose loss there are as many as make the worker stuck. */
  #decisive(): number | undefined {
    if (this.count < this.parts.most) return undefined;
    let place = 0;
    for (const since of this.#since.values()) if (++place === this.parts.most) return since;
    return undefined;
  }
}
