import { MAX_TARGETS, type OpenTarget, type TargetRef, targetKey } from "../../core/access/push-target.js";
import type { Context } from "../../core/jobs/context.js";
import { Snooze } from "../../core/jobs/failure.js";
import type { AnyTask } from "../../core/jobs/task.js";
import type { TaskRecord } from "../../core/jobs/task-record.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import { LaneSlots } from "../claim/lane-slots.js";
import type { WorkerOptions } from "../options.js";
import type { Worker } from "../worker.js";

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

export interface PusherDeps {
  readonly store: Pick<Store, "targets" | "tasks">;
  readonly clock: Clock;
  readonly deliver: Deliver;
  /** starts a worker for these tasks, and of them for what the slots serve */
  readonly work: (tasks: ReadonlyMap<string, AnyTask>, slots: LaneSlots, options: WorkerOptions) => Promise<Worker>;
  readonly onError: (error: unknown) => void;
}

/** ms after which all is read again: definitions of tasks, and keys that were missing, may be others */
const REREAD_MS = 30_000;
/** ms a job is put off whose target was taken away while it was claimed */
const MISSING_TARGET_DELAY_MS = 5_000;
/** workers that may be finishing beside the new one, however often targets change */
const MAX_STOPPING_WORKERS = 4;
/** ms; targets say how long a delivery may take, none as long as this */
const MAX_DELIVERY_MS = 310_000;

/**
 * Delivers the jobs of tasks that have a target. Which there are is held by this process and read again when a poll of its
 * workers tells of a change (`hear`), so that nobody polls for it. What is delivered to is looked up as each delivery begins;
 * where it is another set of tasks, another worker takes the place of the one there was, which finishes what it has.
 */
export class Pusher {
  #targets = new Map<string, OpenTarget>();
  /** of what the worker was made */
  #served = "[]";
  #worker: Worker | undefined;
  readonly #stopping = new Set<Promise<unknown>>();
  #version = "";
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #stopped = false;
  /** the store's clock, as ms after our own */
  #clockOffset = 0;

  constructor(
    private readonly deps: PusherDeps,
    private readonly options: WorkerOptions,
  ) {}

  start(): Promise<void> {
    return this.#read("");
  }

  /** The version of the lanes, as a poll just read it. */
  handlePoll(version: string): void {
    const old = this.deps.clock.monotonic() - this.#readAt >= REREAD_MS;
    if ((version !== this.#version || old) && this.#reading === undefined) void this.#read(version);
  }

  /** No more is begun, and what is under way may end. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#reading;
    this.#retire();
    await Promise.all(this.#stopping);
  }

  #read(version: string): Promise<void> {
    this.#reading ??= this.#load()
      // Not before it is read: one that failed is asked for again by the next poll.
      .then(() => {
        this.#version = version;
      }, this.deps.onError)
      .finally(() => {
        this.#readAt = this.deps.clock.monotonic();
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #load(): Promise<void> {
    const { store, clock } = this.deps;
    const { targets, now } = await store.targets.open(MAX_TARGETS.ofAll);
    this.#clockOffset = now - clock.monotonic();
    this.#targets = new Map(targets.map((target) => [targetKey(target), target]));
    const names = [...new Set(targets.map(({ task }) => task))];
    const published = await store.tasks.get(names);
    const refs = targets.map(({ tenant, task }) => ({ tenant, task }));
    const served = JSON.stringify([refs, [...published].sort((a, b) => (a.name < b.name ? -1 : 1))]);
    if (served !== this.#served) await this.#replace(refs, names, published);
    this.#served = served;
  }

  async #replace(refs: readonly TargetRef[], names: readonly string[], published: readonly TaskRecord[]): Promise<void> {
    while (this.#stopping.size >= MAX_STOPPING_WORKERS) await Promise.race(this.#stopping);
    const recordOf = new Map(published.map((task) => [task.name, task]));
    const tasks = new Map(names.map((name) => [name, this.#taskOf(name, recordOf.get(name))]));
    const slots = new LaneSlots(refs, (ref) => this.#targets.get(targetKey(ref))?.concurrency);
    const tenants = [...new Set(refs.map(({ tenant }) => tenant))];
    const next = refs.length === 0 || this.#stopped ? undefined : await this.deps.work(tasks, slots, { ...this.options, tenants });
    this.#retire();
    this.#worker = next;
  }

  #retire(): void {
    const stopping = this.#worker?.stop().catch(this.deps.onError);
    this.#worker = undefined;
    if (stopping === undefined) return;
    this.#stopping.add(stopping);
    void stopping.then(() => this.#stopping.delete(stopping));
  }

  /** Retries, breaker and needs are those that the task was defined with; how long a delivery may take, its target says. */
  #taskOf(name: string, published: TaskRecord | undefined): AnyTask {
    const { retry, breaker, needs, atMostOnce } = published?.defaults ?? {};
    return {
      name,
      schema: undefined,
      options: {
        timeout: MAX_DELIVERY_MS,
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
    if (target === undefined) throw new Snooze(MISSING_TARGET_DELAY_MS, "its task has no target any more");
    const now = this.deps.clock.monotonic() + this.#clockOffset;
    const { url, timeout, secrets } = target;
    return this.deps.deliver({
      url,
      timeout,
      secrets: secrets.filter(({ until }) => until === undefined || until > now).map(({ text }) => text),
      input,
      context,
      gone: () => this.deps.store.targets.gone(target, url),
    });
  }
}

/** The store, whose polls for lanes these hear, too. */
export function notifyPushers(pushers: Iterable<Pick<Pusher, "handlePoll">>, store: Store): Store {
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
        for (const pusher of pushers) pusher.handlePoll(live.version);
        return live;
      },
    },
  };
}
