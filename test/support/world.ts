import { randomFillSync } from "node:crypto";
import type { EventName, Events } from "../../packages/pawl/src/core/event.js";
import { type JobId, tailSource } from "../../packages/pawl/src/core/id.js";
import type { AttemptRecord, JobRecord, NewJob, Priority } from "../../packages/pawl/src/core/job.js";
import type { Lane } from "../../packages/pawl/src/core/lane.js";
import { Maintenance, type MaintenanceOptions } from "../../packages/pawl/src/maintenance/maintenance.js";
import { Bus } from "../../packages/pawl/src/runtime/bus.js";
import { memoryStore } from "../../packages/pawl/src/store/memory/index.js";
import type { Store } from "../../packages/pawl/src/store/port.js";
import { type VirtualClock, virtualClock } from "../../packages/pawl/src/testing/clock.js";
import type { WorkerOptions } from "../../packages/pawl/src/worker/options.js";
import type { AnyTask, TaskDefaults } from "../../packages/pawl/src/worker/task.js";
import { Worker } from "../../packages/pawl/src/worker/worker.js";

export interface WorldOptions {
  readonly tasks: readonly AnyTask[];
  readonly defaults?: Readonly<Record<string, TaskDefaults>>;
  /** puts something around the store that the workers see; what the test itself asks goes past it */
  readonly around?: (store: Store) => Store;
}

export type JobWish = Partial<Omit<NewJob, "input" | "lane" | "tail">> & { readonly lane?: Partial<Lane> };

/** A memory store, a virtual clock and workers on them, for tests of the worker and of maintenance. */
export class World {
  readonly clock: VirtualClock = virtualClock();
  readonly bus = new Bus();
  readonly inner: Store = memoryStore({ now: this.clock.now });
  readonly store: Store;
  readonly #services: { stop(): Promise<void> }[] = [];
  readonly #tail = tailSource((size) => randomFillSync(new Uint8Array(size)));
  readonly #events: { readonly name: EventName; readonly event: unknown }[] = [];

  constructor(private readonly options: WorldOptions) {
    this.store = options.around?.(this.inner) ?? this.inner;
    for (const name of [
      "attempt.stale",
      "attempt.blocked",
      "retry.failed",
      "lease.lost",
      "worker.stalled",
      "worker.stopped",
      "worker.stuck",
      "worker.unstuck",
      "duty.failed",
      "lines.lost",
      "attempt.settled",
    ] as const) {
      this.bus.on(name, (event) => void this.#events.push({ name, event }));
    }
  }

  async enqueue(task: AnyTask | string, input: unknown = {}, wish: JobWish = {}): Promise<JobId> {
    const [id] = await this.enqueueMany(task, [input], wish);
    return id as JobId;
  }

  async enqueueMany(task: AnyTask | string, inputs: readonly unknown[], { lane, ...wish }: JobWish = {}): Promise<readonly JobId[]> {
    const name = typeof task === "string" ? task : task.name;
    const full: Lane = { queue: "default", band: 5 as Priority, tenant: "default", task: name, ...lane };
    const jobs = inputs.map(
      (input): NewJob => ({ options: undefined, ...wish, tail: this.#tail(full.tenant), lane: full, input: JSON.stringify(input) }),
    );
    return (await this.inner.jobs.enqueue(jobs)).map((answer) => (answer as { id: JobId }).id);
  }

  /** A worker that has not started. */
  worker(options: WorkerOptions = {}): Worker {
    const tasks = new Map(this.options.tasks.map((task) => [task.name, task]));
    const worker = new Worker({ store: this.store, bus: this.bus, clock: this.clock, tasks, defaults: this.options.defaults ?? {}, options });
    this.#services.push(worker);
    return worker;
  }

  async work(options: WorkerOptions = {}): Promise<Worker> {
    const worker = this.worker(options);
    await worker.start();
    await this.clock.quiet();
    return worker;
  }

  async upkeep(options: MaintenanceOptions = {}): Promise<Maintenance> {
    const maintenance = new Maintenance({ store: this.store, bus: this.bus, clock: this.clock, options });
    this.#services.push(maintenance);
    await maintenance.start();
    await this.clock.quiet();
    return maintenance;
  }

  async job(id: JobId): Promise<JobRecord> {
    const record = await this.inner.jobs.get("everyone", id);
    if (record === undefined) throw new Error(`no job ${id}`);
    return record;
  }

  async state(id: JobId): Promise<string> {
    return (await this.job(id)).state;
  }

  history(id: JobId): Promise<readonly AttemptRecord[]> {
    return this.inner.jobs.history("everyone", id);
  }

  async outcomes(id: JobId): Promise<readonly string[]> {
    return (await this.history(id)).map(({ outcome }) => outcome);
  }

  heard<E extends EventName>(name: E): readonly Events[E][] {
    return this.#events.filter((entry) => entry.name === name).map(({ event }) => event as Events[E]);
  }

  /** Waits for a promise while time passes, as a stop does for its timers. */
  async whilePassing<T>(promise: Promise<T>): Promise<T> {
    let done = false;
    const ended = promise.finally(() => {
      done = true;
    });
    ended.catch(() => {});
    await this.clock.quiet();
    while (!done) {
      this.clock.leap(this.clock.nextIn() ?? 1);
      await this.clock.quiet();
    }
    return ended;
  }

  async close(): Promise<void> {
    for (const service of this.#services.reverse()) await this.whilePassing(service.stop());
    await this.inner.close();
  }
}

/** A promise and what settles it: the barrier of tests that force an order. */
export function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void; fail(error: unknown): void } {
  let open: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  opened.catch(() => {});
  return { opened, open: (value) => open(value), fail: (error) => fail(error) };
}
