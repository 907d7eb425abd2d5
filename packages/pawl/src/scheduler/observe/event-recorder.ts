import { RECORDED_EVENTS, type RecordedEvent, recordedEventsOf } from "../../core/observe/cluster-event.js";
import type { EventName, Events } from "../../core/observe/event.js";
import type { Bus } from "../../runtime/process/bus.js";
import type { Clock } from "../../runtime/time/clock.js";
import { type Loop, loop } from "../../runtime/time/loop.js";
import type { Store } from "../../store/port/index.js";
import type { WatchPeriod } from "../../store/port/observe/events.js";

/** ms: events are recorded together; who has no poll looks whether somebody watches */
const WRITE_DELAY_MS = 50;
const WATCHED_CHECK_MS = 2_000;
/** Events of one write, and those that may wait for theirs: what comes beyond is lost, and that it is lost is told. */
const MAX_EVENTS_PER_WRITE = 500;
const MAX_WAITING_EVENTS = 5_000;

export interface ClusterEventRecorderDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** whether a poll tells who watches; otherwise it looks itself */
  readonly polled: boolean;
  /** what failures say is not recorded: they may repeat payloads, which are encrypted here */
  readonly hideFailures: boolean;
}

/**
 * Records what happens in this process for those who watch the whole store. While nobody does, it does not listen, and costs
 * nothing. Before it knows, it listens: what happens in a process that has just come up is told too.
 */
export class ClusterEventRecorder {
  readonly #deps: ClusterEventRecorderDeps;
  #unsubscribes: readonly (() => void)[] = [];
  #waiting: RecordedEvent[] = [];
  #lost = 0;
  #epoch: string | undefined;
  #until = Number.POSITIVE_INFINITY;
  #sending: Promise<void> | undefined;
  #timer: (() => void) | undefined;
  #watchLoop: Loop | undefined;
  #unsubscribeWakeups: () => void = () => {};
  #stopped = false;

  constructor(deps: ClusterEventRecorderDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { store, clock, polled } = this.#deps;
    this.#subscribe();
    this.#watchLoop = loop({
      clock,
      step: async () => {
        this.setWatched(await store.events.watched());
        return polled ? undefined : WATCHED_CHECK_MS;
      },
      onError: () => {},
      backoff: { min: 500, max: 10_000 },
    });
    this.#unsubscribeWakeups = store.onWakeup(({ kind }) => {
      if (kind === "watch") this.#watchLoop?.wake();
    });
  }

  /** Whether somebody watches, as the store says. */
  setWatched(watched: WatchPeriod | undefined): void {
    if (this.#stopped) return;
    if (watched === undefined) {
      // Watching is never cut short: an answer that says so is older than what is known.
      if (!this.#isWatched()) this.#unsubscribe();
      return;
    }
    this.#until = this.#deps.clock.monotonic() + watched.for;
    // It watched before, and was not known to: what happened meanwhile nobody can tell.
    if (this.#unsubscribes.length === 0 && this.#epoch === watched.epoch) this.#lost++;
    this.#epoch = watched.epoch;
    this.#subscribe();
    this.#sendSoon();
  }

  /** Records what is left. */
  async stop(): Promise<void> {
    this.#unsubscribeWakeups();
    await this.#watchLoop?.stop();
    this.#timer?.();
    this.#timer = undefined;
    await this.#sending;
    if (this.#isWatched()) await this.#send();
    this.#stopped = true;
    this.#unsubscribe();
  }

  #isWatched(): boolean {
    return this.#epoch !== undefined && this.#deps.clock.monotonic() < this.#until;
  }

  #subscribe(): void {
    if (this.#unsubscribes.length > 0) return;
    this.#unsubscribes = RECORDED_EVENTS.map((name) => this.#deps.bus.on(name, (event) => this.#receive(name, event)));
  }

  #unsubscribe(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#unsubscribes = [];
    this.#waiting = [];
    this.#lost = 0;
  }

  #receive<E extends EventName>(name: E, event: Events[E]): void {
    if (this.#waiting.length >= MAX_WAITING_EVENTS) this.#lost++;
    else this.#waiting.push(...recordedEventsOf(name, event, this.#deps.hideFailures));
    this.#sendSoon();
  }

  #sendSoon(): void {
    if (this.#epoch === undefined || this.#timer !== undefined || this.#sending !== undefined) return;
    if (this.#waiting.length === 0 && this.#lost === 0) return;
    this.#timer = this.#deps.clock.after(WRITE_DELAY_MS, () => {
      this.#timer = undefined;
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined;
        this.#sendSoon();
      });
    });
  }

  async #send(): Promise<void> {
    if (!this.#isWatched()) return this.#unsubscribe();
    const some = this.#waiting.splice(0, MAX_EVENTS_PER_WRITE);
    const lost = this.#lost;
    if (some.length === 0 && lost === 0) return;
    this.#lost = 0;
    const gap: readonly RecordedEvent[] = lost === 0 ? [] : [{ name: "gap", data: {} }];
    try {
      await this.#deps.store.events.append([...some, ...gap].map((one) => JSON.stringify(one)));
    } catch {
      // Whether it was written is not known, and it must not be twice.
      this.#lost += Math.max(1, some.length);
    }
  }
}
