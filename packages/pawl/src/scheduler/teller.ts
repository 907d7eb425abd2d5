import type { EventName, Events } from "../core/event.js";
import { TOLD_EVENTS, type ToldEvent, toldOf } from "../core/told.js";
import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import type { Store } from "../store/port.js";
import type { Watched } from "../store/port-events.js";

/** ms: events are recorded together; who has no pulse looks whether somebody watches */
const TOGETHER = 50;
const LOOK = 2_000;
/** Events of one write, and those that may wait for theirs: what comes beyond is lost, and that it is lost is told. */
const MOST_TOGETHER = 500;
const MOST_WAITING = 5_000;

export interface TellerParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** whether a pulse tells who watches; otherwise it looks itself */
  readonly pulsed: boolean;
  /** what failures say is not recorded: they may repeat payloads, which are encrypted here */
  readonly discreet: boolean;
}

/**
 * Records what happens in this process for those who watch the whole store. While nobody does, it does not listen, and costs
 * nothing. Before it knows, it listens: what happens in a process that has just come up is told too.
 */
export class Teller {
  readonly #parts: TellerParts;
  #deafen: readonly (() => void)[] = [];
  #waiting: ToldEvent[] = [];
  #lost = 0;
  #epoch: string | undefined;
  #until = Number.POSITIVE_INFINITY;
  #sending: Promise<void> | undefined;
  #timer: (() => void) | undefined;
  #looks: Loop | undefined;
  #unhear: () => void = () => {};
  #stopped = false;

  constructor(parts: TellerParts) {
    this.#parts = parts;
  }

  start(): void {
    const { store, clock, pulsed } = this.#parts;
    this.#listen();
    this.#looks = loop({
      clock,
      step: async () => {
        this.saw(await store.events.watched());
        return pulsed ? undefined : LOOK;
      },
      onError: () => {},
      backoff: { min: 500, max: 10_000 },
    });
    this.#unhear = store.onHint(({ kind }) => {
      if (kind === "watch") this.#looks?.wake();
    });
  }

  /** Whether somebody watches, as the store says. */
  saw(watched: Watched | undefined): void {
    if (this.#stopped) return;
    if (watched === undefined) {
      // Watching is never cut short: an answer that says so is older than what is known.
      if (!this.#isWatched()) this.#rest();
      return;
    }
    this.#until = this.#parts.clock.monotonic() + watched.for;
    // It watched before, and was not known to: what happened meanwhile nobody can tell.
    if (this.#deafen.length === 0 && this.#epoch === watched.epoch) this.#lost++;
    this.#epoch = watched.epoch;
    this.#listen();
    this.#sendSoon();
  }

  /** Records what is left. */
  async stop(): Promise<void> {
    this.#unhear();
    await this.#looks?.stop();
    this.#timer?.();
    this.#timer = undefined;
    await this.#sending;
    if (this.#isWatched()) await this.#send();
    this.#stopped = true;
    this.#rest();
  }

  #isWatched(): boolean {
    return this.#epoch !== undefined && this.#parts.clock.monotonic() < this.#until;
  }

  #listen(): void {
    if (this.#deafen.length > 0) return;
    this.#deafen = TOLD_EVENTS.map((name) => this.#parts.bus.on(name, (event) => this.#hear(name, event)));
  }

  #rest(): void {
    for (const deafen of this.#deafen) deafen();
    this.#deafen = [];
    this.#waiting = [];
    this.#lost = 0;
  }

  #hear<E extends EventName>(name: E, event: Events[E]): void {
    if (this.#waiting.length >= MOST_WAITING) this.#lost++;
    else this.#waiting.push(...toldOf(name, event, this.#parts.discreet));
    this.#sendSoon();
  }

  #sendSoon(): void {
    if (this.#epoch === undefined || this.#timer !== undefined || this.#sending !== undefined) return;
    if (this.#waiting.length === 0 && this.#lost === 0) return;
    this.#timer = this.#parts.clock.after(TOGETHER, () => {
      this.#timer = undefined;
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined;
        this.#sendSoon();
      });
    });
  }

  async #send(): Promise<void> {
    if (!this.#isWatched()) return this.#rest();
    const some = this.#waiting.splice(0, MOST_TOGETHER);
    const lost = this.#lost;
    if (some.length === 0 && lost === 0) return;
    this.#lost = 0;
    const gap: readonly ToldEvent[] = lost === 0 ? [] : [{ name: "gap", data: {} }];
    try {
      await this.#parts.store.events.append([...some, ...gap].map((one) => JSON.stringify(one)));
    } catch {
      // Whether it was written is not known, and it must not be twice.
      this.#lost += Math.max(1, some.length);
    }
  }
}
