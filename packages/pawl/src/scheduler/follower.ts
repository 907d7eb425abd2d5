import { DEFAULTS } from "../core/defaults.js";
import type { ToldEvent } from "../core/told.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import type { Store } from "../store/port.js";
import { MOST_EVENTS, type RecordedEvents, type Watched } from "../store/port-events.js";

/** Where in what happened somebody is. */
export interface EventPosition {
  /** another one whenever recording began anew: positions of another epoch mean nothing */
  readonly epoch: string;
  readonly batch: number;
}

/** What one process recorded at once. */
export interface EventBatch {
  readonly position: EventPosition;
  readonly events: readonly ToldEvent[];
}

/** What happens in every process on the store. For services on top of Pawl: one tail is enough for all who listen to them. */
export interface ClusterEvents {
  /**
   * Follows what happens from now on, until it is stopped. Processes begin to record when somebody follows, those that hear no
   * wake-ups within seconds, and go on for a minute after nobody does.
   */
  follow(heard: (batch: EventBatch) => void): Promise<EventTail>;
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

/** ms: for so long others go on recording; so often they are asked to; and so often is looked, with and without wake-ups */
const WATCH = 60_000;
const AGAIN = 15_000;
const LOOK = 1_000;
const LOOK_DEAF = 250;
/** Batches of one page, each of up to some hundred events. */
const PAGE = 50;

export interface FollowerParts {
  readonly store: Store;
  readonly clock: Clock;
  /** this very process records too, from now on and not from its next look */
  readonly onWatched: (watched: Watched) => void;
  readonly onError: (error: unknown) => void;
}

export function clusterEvents(parts: FollowerParts): ClusterEvents {
  const { store } = parts;
  return {
    async follow(heard) {
      const follower = new Follower(parts, heard);
      await follower.start();
      return follower;
    },
    async since({ epoch, batch }) {
      const [watched, found] = [await store.events.watched(), await store.events.read(batch, PAGE)];
      const foreign = watched?.epoch !== epoch;
      const read = foreign ? await store.events.read(found.forgotten, PAGE) : found;
      return { gap: foreign || batch < read.forgotten, batches: batchesOf(watched?.epoch ?? epoch, read), end: read.batches.length < PAGE };
    },
  };
}

function batchesOf(epoch: string, { batches }: RecordedEvents): readonly EventBatch[] {
  return batches.map(({ number, entries }) => ({
    position: { epoch, batch: number },
    events: entries.map((entry) => JSON.parse(entry) as ToldEvent),
  }));
}

/** Reads what is recorded as it comes: woken by hints, and looking now and then without them. */
class Follower implements EventTail {
  readonly #parts: FollowerParts;
  readonly #heard: (batch: EventBatch) => void;
  #position: EventPosition = { epoch: "", batch: 0 };
  #askAgainAt = 0;
  #looks: Loop | undefined;
  #unhear: () => void = () => {};

  constructor(parts: FollowerParts, heard: (batch: EventBatch) => void) {
    this.#parts = parts;
    this.#heard = heard;
  }

  get position(): EventPosition {
    return this.#position;
  }

  async start(): Promise<void> {
    const { store, clock, onError } = this.#parts;
    const { epoch, last } = await this.#watch();
    this.#position = { epoch, batch: last };
    this.#unhear = store.onHint(({ kind }) => {
      if (kind === "events") this.#looks?.wake();
    });
    this.#looks = loop({ clock, step: () => this.#look(), onError, backoff: { min: 200, max: 5_000 }, patience: 30_000 });
  }

  async stop(): Promise<void> {
    this.#unhear();
    await this.#looks?.stop();
  }

  async #watch() {
    const { store, clock, onWatched } = this.#parts;
    const watch = await store.events.watch(WATCH);
    this.#askAgainAt = clock.monotonic() + AGAIN;
    onWatched(watch);
    return watch;
  }

  async #look(): Promise<number> {
    const { store, clock } = this.#parts;
    if (clock.monotonic() >= this.#askAgainAt) {
      const { epoch } = await this.#watch();
      // It could not say so in time, and the others had stopped: what they did meanwhile nobody knows.
      if (epoch !== this.#position.epoch) this.#gap({ epoch, batch: this.#position.batch });
      await store.events.trim(DEFAULTS.keep.events, MOST_EVENTS);
    }
    const read = await store.events.read(this.#position.batch, PAGE);
    if (read.forgotten > this.#position.batch) this.#gap({ ...this.#position, batch: read.forgotten });
    for (const batch of batchesOf(this.#position.epoch, read)) {
      this.#position = batch.position;
      this.#heard(batch);
    }
    if (read.batches.length === PAGE) return 0;
    return store.hearsOthers() ? LOOK : LOOK_DEAF;
  }

  #gap(position: EventPosition): void {
    this.#position = position;
    this.#heard({ position, events: [{ name: "gap", data: {} }] });
  }
}
