import type { RecordedEvent } from "../../core/observe/cluster-event.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Clock } from "../../runtime/time/clock.js";
import { type Loop, loop } from "../../runtime/time/loop.js";
import type { Store } from "../../store/port/index.js";
import { MAX_EVENTS, type RecordedBatches, type WatchPeriod } from "../../store/port/observe/events.js";

/** Where in what happened somebody is. */
export interface EventPosition {
  /** another one whenever recording began anew: positions of another epoch mean nothing */
  readonly epoch: string;
  readonly batch: number;
}

/** What one process recorded at once. */
export interface EventBatch {
  readonly position: EventPosition;
  readonly events: readonly RecordedEvent[];
}

/** What happens in every process on the store. For services on top of Pawl: one tail is enough for all who listen to them. */
export interface ClusterEvents {
  /**
   * Follows what happens from now on, until it is stopped. Processes begin to record when somebody follows, those that hear no
   * wakeups within seconds, and go on for a minute after nobody does.
   */
  follow(onBatch: (batch: EventBatch) => void): Promise<EventTail>;
  /** What was recorded after a position, as far as it is kept; a page at a time. */
  since(position: EventPosition): Promise<EventPage>;
}

export interface EventTail {
  /** up to where it has heard */
  readonly position: EventPosition;
  stop(): Promise<void>;
}

export interface EventPage {
  /** some of what came after the position is not kept any more, or was never recorded */
  readonly gap: boolean;
  readonly batches: readonly EventBatch[];
  /** there is nothing after these */
  readonly end: boolean;
}

/** ms: for so long others go on recording; so often they are asked to; and so often is looked, with and without wakeups */
const WATCH_MS = 60_000;
const RENEW_WATCH_MS = 15_000;
const READ_INTERVAL_MS = 1_000;
const READ_INTERVAL_WITHOUT_WAKEUPS_MS = 250;
/** Batches of one page, each of up to some hundred events. */
const BATCHES_PER_PAGE = 50;

export interface EventTailDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** this very process records too, from now on and not from its next look */
  readonly onWatched: (watched: WatchPeriod) => void;
  readonly onError: (error: unknown) => void;
}

export function clusterEvents(deps: EventTailDeps): ClusterEvents {
  const { store } = deps;
  return {
    async follow(onBatch) {
      const eventTail = new PolledEventTail(deps, onBatch);
      await eventTail.start();
      return eventTail;
    },
    async since({ epoch, batch }) {
      const [watched, found] = [await store.events.watched(), await store.events.read(batch, BATCHES_PER_PAGE)];
      const otherEpoch = watched?.epoch !== epoch;
      const read = otherEpoch ? await store.events.read(found.forgotten, BATCHES_PER_PAGE) : found;
      return {
        gap: otherEpoch || batch < read.forgotten,
        batches: batchesOf(watched?.epoch ?? epoch, read),
        end: read.batches.length < BATCHES_PER_PAGE,
      };
    },
  };
}

function batchesOf(epoch: string, { batches }: RecordedBatches): readonly EventBatch[] {
  return batches.map(({ number, entries }) => ({
    position: { epoch, batch: number },
    events: entries.map((entry) => JSON.parse(entry) as RecordedEvent),
  }));
}

/** Reads what is recorded as it comes: woken by wakeups, and looking now and then without them. */
class PolledEventTail implements EventTail {
  readonly #deps: EventTailDeps;
  readonly #onBatch: (batch: EventBatch) => void;
  #position: EventPosition = { epoch: "", batch: 0 };
  #renewWatchAt = 0;
  #readLoop: Loop | undefined;
  #unsubscribe: () => void = () => {};

  constructor(deps: EventTailDeps, onBatch: (batch: EventBatch) => void) {
    this.#deps = deps;
    this.#onBatch = onBatch;
  }

  get position(): EventPosition {
    return this.#position;
  }

  async start(): Promise<void> {
    const { store, clock, onError } = this.#deps;
    const { epoch, last } = await this.#watch();
    this.#position = { epoch, batch: last };
    this.#unsubscribe = store.onWakeup(({ kind }) => {
      if (kind === "events") this.#readLoop?.wake();
    });
    this.#readLoop = loop({ clock, step: () => this.#readOnce(), onError, backoff: { min: 200, max: 5_000 }, patience: 30_000 });
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#readLoop?.stop();
  }

  async #watch() {
    const { store, clock, onWatched } = this.#deps;
    const watch = await store.events.watch(WATCH_MS);
    this.#renewWatchAt = clock.monotonic() + RENEW_WATCH_MS;
    onWatched(watch);
    return watch;
  }

  async #readOnce(): Promise<number> {
    const { store, clock } = this.#deps;
    if (clock.monotonic() >= this.#renewWatchAt) {
      const { epoch } = await this.#watch();
      // It could not say so in time, and the others had stopped: what they did meanwhile nobody knows.
      if (epoch !== this.#position.epoch) this.#reportGap({ epoch, batch: this.#position.batch });
      await store.events.trim(DEFAULTS.keep.events, MAX_EVENTS);
    }
    const read = await store.events.read(this.#position.batch, BATCHES_PER_PAGE);
    if (read.forgotten > this.#position.batch) this.#reportGap({ ...this.#position, batch: read.forgotten });
    for (const batch of batchesOf(this.#position.epoch, read)) {
      this.#position = batch.position;
      this.#onBatch(batch);
    }
    if (read.batches.length === BATCHES_PER_PAGE) return 0;
    return store.receivesWakeups() ? READ_INTERVAL_MS : READ_INTERVAL_WITHOUT_WAKEUPS_MS;
  }

  #reportGap(position: EventPosition): void {
    this.#position = position;
    this.#onBatch({ position, events: [{ name: "gap", data: {} }] });
  }
}
