import { Snooze } from "../core/failure.js";
import { MOST_TARGETS, type OpenTarget, type TargetRef, targetKey } from "../core/target.js";
import type { TaskRecord } from "../core/task.js";
import type { Clock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";
import type { Context } from "./context.js";
import { LaneSlots } from "./lane-slots.js";
import type { WorkerOptions } from "./options.js";
import type { AnyTask } from "./task.js";
import type { Worker } from "./worker.js";

/** One attempt at a job whose task has a target. */
export interface Delivery {
  readonly url: string;
  /** ms until it must be answered */
  readonly timeout: number;
  /** all of them sign, the newest first */
  readonly secrets: readonly string[];
  readonly input: unknown;
  readonly context: Context;
  /** It wants no more: nothing goes there until it is put again. */
  gone(): Promise<void>;
}

/** Delivers one, and answers with the job's output; what it throws is as a handler's. */
export type Deliver = (delivery: Delivery) => Promise<unknown>;

export interface PusherParts {
  readonly store: Pick<Store, "targets" | "tasks">;
  readonly clock: Clock;
  readonly deliver: Deliver;
  /** starts a worker for these tasks, and of them for what the slots serve */
  readonly work: (tasks: ReadonlyMap<string, AnyTask>, slots: LaneSlots, options: WorkerOptions) => Promise<Worker>;
  readonly onError: (error: unknown) => void;
}

/** ms after which all is read again: definitions of tasks, and keys that were missing, may be others */
const READ_EVERY = 30_000;
/** ms a job is put off whose target was taken away while it was claimed */
const WITHOUT_TARGET = 5_000;
/** workers that may be finishing beside the new one, however often targets change */
const MOST_GOING = 4;
/** ms; targets say how long a delivery may take, none as long as this */
const LONGEST = 310_000;

/**
 * Delivers the jobs of tasks that have a target. Which there are is held by this process and read again when a poll of its
 * workers tells of a change (`hear`), so that nobody polls for it. What is delivered to is looked up as each delivery begins;
 * where it is another set of tasks, another worker takes the place of the one there was, which finishes what it has.
 */
export class Pusher {
  #targets = new Map<string, OpenTarget>();
  /** of what the worker was made */
  #shape = "[]";
  #worker: Worker | undefined;
  readonly #going = new Set<Promise<unknown>>();
  #mark = "";
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #stopped = false;
  /** the store's clock, as ms after our own */
  #ahead = 0;

  constructor(
    private readonly parts: PusherParts,
    private readonly options: WorkerOptions,
  ) {}

  start(): Promise<void> {
    return this.#read("");
  }

  /** The mark of the lanes, as a poll just read it. */
  hear(mark: string): void {
    const old = this.parts.clock.monotonic() - this.#readAt >= READ_EVERY;
    if ((mark !== this.#mark || old) && this.#reading === undefined) void this.#read(mark);
  }

  /** No more is begun, and what is under way may end. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#reading;
    this.#retire();
    await Promise.all(this.#going);
  }

  #read(mark: string): Promise<void> {
    this.#reading ??= this.#look()
      // Not before it is read: one that failed is asked for again by the next poll.
      .then(() => {
        this.#mark = mark;
      }, this.parts.onError)
      .finally(() => {
        this.#readAt = this.parts.clock.monotonic();
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #look(): Promise<void> {
    const { store, clock } = this.parts;
    const { targets, now } = await store.targets.open(MOST_TARGETS.ofAll);
    this.#ahead = now - clock.monotonic();
    this.#targets = new Map(targets.map((target) => [targetKey(target), target]));
    const names = [...new Set(targets.map(({ task }) => task))];
    const published = await store.tasks.get(names);
    const refs = targets.map(({ tenant, task }) => ({ tenant, task }));
    const shape = JSON.stringify([refs, [...published].sort((a, b) => (a.name < b.name ? -1 : 1))]);
    if (shape !== this.#shape) await this.#replace(refs, names, published);
    this.#shape = shape;
  }

  async #replace(refs: readonly TargetRef[], names: readonly string[], published: readonly TaskRecord[]): Promise<void> {
    while (this.#going.size >= MOST_GOING) await Promise.race(this.#going);
    const known = new Map(published.map((task) => [task.name, task]));
    const tasks = new Map(names.map((name) => [name, this.#taskOf(name, known.get(name))]));
    const slots = new LaneSlots(refs, (ref) => this.#targets.get(targetKey(ref))?.concurrency);
    const tenants = [...new Set(refs.map(({ tenant }) => tenant))];
    const next = refs.length === 0 || this.#stopped ? undefined : await this.parts.work(tasks, slots, { ...this.options, tenants });
    this.#retire();
    this.#worker = next;
  }

  #retire(): void {
    const going = this.#worker?.stop().catch(this.parts.onError);
    this.#worker = undefined;
    if (going === undefined) return;
    this.#going.add(going);
    void going.then(() => this.#going.delete(going));
  }

  /** Retries, breaker and needs are those that the task was defined with; how long a delivery may take, its target says. */
  #taskOf(name: string, published: TaskRecord | undefined): AnyTask {
    const { retry, breaker, needs, atMostOnce } = published?.defaults ?? {};
    return {
      name,
      schema: undefined,
      options: {
        timeout: LONGEST,
        ...(retry === undefined ? {} : { retry }),
        ...(breaker === undefined ? {} : { breaker }),
        ...(needs === undefined ? {} : { needs }),
        ...(atMostOnce === undefined ? {} : { atMostOnce }),
      },
      handler: (input: unknown, context) => this.#deliver(input, context),
    };
  }

  async #deliver(input: unknown, context: Context): Promise<unknown> {
    const target = this.#targets.get(targetKey(context));
    if (target === undefined) throw new Snooze(WITHOUT_TARGET, "its task has no target any more");
    const now = this.parts.clock.monotonic() + this.#ahead;
    const { url, timeout, secrets } = target;
    return this.parts.deliver({
      url,
      timeout,
      secrets: secrets.filter(({ until }) => until === undefined || until > now).map(({ text }) => text),
      input,
      context,
      gone: () => this.parts.store.targets.gone(target, url),
    });
  }
}

/** The store, whose polls for lanes these hear, too. */
export function heardBy(pushers: Iterable<Pick<Pusher, "hear">>, store: Store): Store {
  const { lanes } = store;
  return {
    ...store,
    get engine() {
      return store.engine;
    },
    lanes: {
      ...lanes,
      async live(queues, tasks) {
        const live = await lanes.live(queues, tasks);
        for (const pusher of pushers) pusher.hear(live.mark);
        return live;
      },
    },
  };
}
