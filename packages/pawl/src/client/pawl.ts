import type { Finding } from "../core/doctor.js";
import { pawlError } from "../core/error.js";
import { EVENT_NAMES, type EventName, type Events } from "../core/event.js";
import type { WorkerRef } from "../core/lease.js";
import { checkFunction, checkOneOf } from "../core/option.js";
import { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { type ServerAway, untilUp } from "../runtime/until-up.js";
import type { Audit } from "../scheduler/audit.js";
import type { CheckupOptions } from "../scheduler/checkup.js";
import { type CountsOf, isWhole, type StateCounts } from "../scheduler/counts.js";
import type { KeyRing } from "../scheduler/keys.js";
import type { QueueDefaults } from "../scheduler/options.js";
import { Registry } from "../scheduler/registry.js";
import type { CodeSchedule } from "../scheduler/schedule.js";
import type { Info, QueueView } from "../scheduler/scheduler.js";
import { checkSeries, type SeriesOf, type SeriesView } from "../scheduler/series.js";
import type { TaskDefinition } from "../scheduler/tasks.js";
import type { LocalTenants } from "../scheduler/tenants.js";
import { checkTracing, type Tracing, tracedWork } from "../scheduler/tracing.js";
import type { LiveLaneView, LiveWorkerView, UnservedLane } from "../scheduler/unserved.js";
import { Household } from "../worker/household.js";
import type { WorkerOptions, WorkOptions } from "../worker/options.js";
import type { AnyTask } from "../worker/task.js";
import { Worker } from "../worker/worker.js";
import { RemoteAudit, RemoteKeys } from "./access.js";
import { RemoteEnqueuer } from "./enqueue.js";
import { RemoteEvents } from "./events.js";
import { RemoteLimits } from "./limits.js";
import { RemoteBreakers, RemoteNamed, RemoteTasks } from "./named.js";
import { PullStore } from "./pull-store.js";
import { Puller } from "./puller.js";
import { withRefused } from "./refusing.js";
import { RemoteScheduler } from "./scheduler.js";
import { RemoteTenants } from "./tenants.js";
import { seriesView, workerView } from "./views.js";
import { Wire, type WireOptions } from "./wire.js";

export interface RemoteOptions extends WireOptions {
  readonly tasks?: readonly AnyTask[];
  readonly anyTask?: boolean;
  readonly queues?: Readonly<Record<string, QueueDefaults>>;
  readonly schedules?: readonly CodeSchedule[];
  /** follows what this process enqueues and runs */
  readonly tracing?: Tracing;
  /** hears that the service is waited for */
  readonly onWaiting?: (what: ServerAway) => void;
}

/**
 * Opens a service: its store is elsewhere, and so is its upkeep. The tasks of this process are made known to it, as soon as
 * it is up: all that is said here is safe to repeat.
 */
export async function openRemote(url: URL, options: RemoteOptions, clock: Clock): Promise<RemotePawl> {
  const { tasks, anyTask, queues = {}, schedules, tracing, onWaiting, ...how } = options;
  if (tracing !== undefined) checkTracing(tracing);
  const wire = new Wire(url, how, clock);
  const wait = { clock, onWaiting };
  try {
    const registry = new Registry(tasks, { find: (name) => ({ name, options: {} }), forget: () => {} }, anyTask);
    const pawl = new RemotePawl(wire, registry, queues, tracing);
    await untilUp(wait, () => pawl.publish());
    for (const { name, task, options: times } of schedules ?? []) await untilUp(wait, () => pawl.schedules.put(name, task as string, times));
    return pawl;
  } catch (error) {
    wire.close();
    throw error;
  }
}

/** The scheduler and the operator's view of a service, and the workers of this process that pull their jobs from it. */
export class RemotePawl extends RemoteScheduler {
  readonly queues: RemoteNamed<"queue", QueueView>;
  readonly tasks: RemoteTasks;
  readonly tenants: LocalTenants;
  readonly breakers: RemoteBreakers;
  readonly limits: RemoteLimits;
  readonly keys: KeyRing;
  readonly audit: Audit;
  readonly #wire: Wire;
  readonly #registry: Registry;
  readonly #enqueuer: RemoteEnqueuer;
  readonly #bus = new Bus();
  readonly #events: RemoteEvents;
  readonly #defaults: Readonly<Record<string, QueueDefaults>>;
  readonly #household = new Household(() => this.#end());

  constructor(
    wire: Wire,
    registry: Registry,
    defaults: Readonly<Record<string, QueueDefaults>>,
    private readonly tracing?: Tracing,
  ) {
    const enqueuer = new RemoteEnqueuer(wire, defaults);
    super({ wire, registry, enqueuer, ...(tracing === undefined ? {} : { tracing }) });
    this.#wire = wire;
    this.#registry = registry;
    this.#enqueuer = enqueuer;
    this.#defaults = defaults;
    this.#events = new RemoteEvents(wire, this.#bus);
    this.queues = new RemoteNamed(wire, "queue");
    this.tasks = new RemoteTasks(wire);
    this.tenants = withRefused<LocalTenants>(new RemoteTenants(wire));
    this.breakers = new RemoteBreakers(wire);
    this.limits = new RemoteLimits(wire);
    this.keys = withRefused<KeyRing>(new RemoteKeys(wire), "pawl.keys");
    this.audit = withRefused<Audit>(new RemoteAudit(wire), "pawl.audit");
  }

  /** Makes the tasks of this code known, if the credential may: a worker says what it needs to with every claim. */
  async publish(): Promise<void> {
    for (const { name, defaults } of this.#registry.records()) {
      try {
        await this.tasks.define(name, defaults as TaskDefinition);
      } catch (error) {
        if ((error as { code?: unknown }).code !== "forbidden") throw error;
      }
    }
  }

  override async counts(of?: CountsOf): Promise<StateCounts> {
    const counts = await super.counts(of);
    if (isWhole(counts)) return counts;
    throw pawlError("not_by_tenant", { what: "how many jobs have succeeded or were cancelled" });
  }

  async series(of: SeriesOf = {}): Promise<SeriesView> {
    const { last, step, from, to, ...asked } = checkSeries(of);
    const since = from === undefined ? { last: `${last}ms` } : { from: new Date(from) };
    const until = to === undefined ? {} : { to: new Date(to) };
    return seriesView(await this.#wire.get("/v1/series", { ...asked, ...since, ...until, step: `${step}ms` }));
  }

  async unserved(): Promise<readonly UnservedLane[]> {
    return ((await this.#wire.get("/v1/unserved")) as { lanes: readonly UnservedLane[] }).lanes;
  }

  async lanes(): Promise<readonly LiveLaneView[]> {
    return ((await this.#wire.get("/v1/lanes")) as { lanes: readonly LiveLaneView[] }).lanes;
  }

  async checkup({ patience }: CheckupOptions = {}): Promise<readonly Finding[]> {
    const asked = patience === undefined ? {} : { patience: typeof patience === "number" ? `${patience}ms` : patience };
    return ((await this.#wire.get("/v1/checkup", asked)) as { findings: readonly Finding[] }).findings;
  }

  async workers(): Promise<readonly LiveWorkerView[]> {
    return ((await this.#wire.get("/v1/workers")) as { workers: readonly unknown[] }).workers.map(workerView);
  }

  async info(): Promise<Info> {
    const { engine, version, durability, schema, hearsOthers } = (await this.#wire.get("/v1/info")) as Info;
    return { engine, version, durability, schema, hearsOthers, place: this.#wire.url.origin, tasks: [...this.#registry.all.keys()] };
  }

  /** Nothing to do: the service wakes workers by itself, and no transaction of yours reaches it. */
  wake(): void {
    this.#household.checkNotClosed();
  }

  on<E extends EventName>(name: E, listener: (event: Events[E]) => void): () => void {
    checkOneOf("event", name, EVENT_NAMES);
    checkFunction("listener", listener);
    this.#household.checkNotClosed();
    return this.#events.on(name, listener);
  }

  work(options: WorkOptions = {}): Promise<Worker> {
    return this.#household.work(options, (own) => this.#worker(own));
  }

  localWorkers(): readonly Worker[] {
    return this.#household.workers;
  }

  untilSignal(): Promise<void> {
    return this.#household.untilSignal();
  }

  unended(): Promise<number> {
    return this.#household.unended();
  }

  close(): Promise<void> {
    return this.#household.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The worker of this library, as it is; its jobs come from the service, and its outcomes go there. */
  #worker(options: WorkerOptions): Worker {
    let ref: WorkerRef | undefined;
    const pull = new PullStore(this.#wire, () => ({
      name: ref?.name,
      boot: ref?.boot,
      ...(options.lease === undefined ? {} : { lease: options.lease }),
    }));
    const worker = new Worker({
      store: pull.asStore(),
      bus: this.#bus,
      clock: this.#wire.clock,
      tasks: this.#registry.all,
      defaults: this.#defaults,
      options: tracedWork(options, this.tracing),
      claims: (parts) => new Puller(parts, pull),
    });
    ref = worker.ref;
    return worker;
  }

  async #end(): Promise<void> {
    await this.#enqueuer.idle();
    this.#events.close();
    this.#wire.close();
  }
}
