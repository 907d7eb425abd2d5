import { DEFAULTS } from "../../core/values/defaults.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Attempt } from "./attempt.js";
import { DeadlineTimer } from "./deadline-timer.js";

export interface OverrunsDeps {
  readonly clock: Clock;
  /** lost ones from which on the worker is stuck */
  readonly maxLost: number;
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
  readonly #timer: DeadlineTimer;
  #stuck = false;
  #idle: (() => void)[] = [];

  constructor(private readonly deps: OverrunsDeps) {
    this.#timer = new DeadlineTimer(deps.clock, () => this.#check());
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
    this.#since.set(attempt, this.deps.clock.monotonic());
    this.#check();
  }

  /** The handler has ended. */
  ended(attempt: Attempt): void {
    if (!this.#since.delete(attempt)) return;
    this.#check();
    if (this.count === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Resolves when there are none. */
  none(): Promise<void> {
    if (this.count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  stop(): void {
    this.#timer.stop();
  }

  #check(): void {
    const last = this.#decisive();
    const lostAt = last === undefined ? Number.POSITIVE_INFINITY : last + DEFAULTS.worker.overrun;
    const stuck = this.deps.clock.monotonic() >= lostAt;
    if (!stuck && Number.isFinite(lostAt)) this.#timer.schedule(lostAt);
    if (stuck === this.#stuck) return;
    this.#stuck = stuck;
    this.deps.onChange(stuck);
  }

  /** When the one began with whose loss there are as many as make the worker stuck. */
  #decisive(): number | undefined {
    if (this.count < this.deps.maxLost) return undefined;
    let position = 0;
    for (const since of this.#since.values()) if (++position === this.deps.maxLost) return since;
    return undefined;
  }
}
