import type { WorkerRef } from "../core/jobs/lease.js";
import type { AnyTask } from "../core/jobs/task.js";
import type { Finding } from "../core/observe/doctor.js";
import { EVENT_NAMES, type EventName, type Events } from "../core/observe/event.js";
import { pawlError } from "../core/values/error.js";
import { checkFunction, checkOneOf } from "../core/values/option.js";
import { Bus } from "../runtime/process/bus.js";
import type { Clock } from "../runtime/time/clock.js";
import { retryUntilUp, type ServerAway } from "../runtime/time/retry-until-up.js";
import type { LocalApiKeys } from "../scheduler/access/api-keys.js";
import type { Audit } from "../scheduler/access/audit.js";
import { TaskRegistry } from "../scheduler/enqueue/task-registry.js";
import type { TaskDefinition } from "../scheduler/jobs/tasks.js";
import { type CountsOptions, countsAllStates, type StateCounts } from "../scheduler/observe/counts.js";
import type { DoctorOptions } from "../scheduler/observe/doctor.js";
import { checkLanesFilter, type Lanes, type LiveLaneView, type LiveWorkers, newestOf } from "../scheduler/observe/lanes-and-workers.js";
import { checkSeries, type SeriesOptions, type SeriesView } from "../scheduler/observe/series.js";
import { checkTracing, type Tracing, withTracingMiddleware } from "../scheduler/observe/tracing.js";
import type { QueueDefaults } from "../scheduler/options.js";
import { type Page, pagedList, revivedPage } from "../scheduler/page.js";
import type { PawlInfo, QueueView } from "../scheduler/scheduler.js";
import type { CodeSchedule } from "../scheduler/schedules/schedule.js";
import type { WorkerOptions } from "../worker/options.js";
import { Worker } from "../worker/worker.js";
import { type LocalWorkers, WorkerGroup } from "../worker/worker-group.js";
import { SERVICE_CAPABILITIES } from "./capabilities.js";
import { RemoteEnqueuer } from "./enqueue/enqueue.js";
import { RemoteScheduler } from "./scheduler.js";
import { HttpTransport, type ServiceOptions } from "./transport/http-transport.js";
import { withUnsupported } from "./unsupported.js";
import { RemoteEvents } from "./views/events.js";
import { RemoteAudit, RemoteKeys } from "./views/keys-and-audit.js";
import { RemoteLimits } from "./views/limits.js";
import { seriesView, workerView } from "./views/parse-views.js";
import { RemoteBreakers, RemoteNamed, RemoteTasks } from "./views/queues-tasks.js";
import { RemoteTenants } from "./views/tenants.js";
import { PullStore } from "./worker/pull-store.js";
import { Puller } from "./worker/puller.js";

export interface RemoteOptions extends ServiceOptions {
  readonly tasks?: readonly AnyTask[];
  readonly allowUnknownTasks?: boolean;
  readonly queueDefaults?: Readonly<Record<string, QueueDefaults>>;
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
  const { tasks, allowUnknownTasks, queueDefaults = {}, schedules, tracing, onWaiting, ...how } = options;
  if (tracing !== undefined) checkTracing(tracing);
  const transport = new HttpTransport(url, how, clock);
  const wait = { clock, onWaiting };
  try {
    const registry = new TaskRegistry(tasks, { find: (name) => ({ name, options: {} }), forget: () => {} }, allowUnknownTasks);
    const pawl = new RemotePawl(transport, registry, queueDefaults, tracing);
    await retryUntilUp(wait, () => pawl.publish());
    for (const { name, task, options: times } of schedules ?? []) await retryUntilUp(wait, () => pawl.schedules.put(name, task as string, times));
    return pawl;
  } catch (error) {
    transport.close();
    throw error;
  }
}

/** The scheduler and the operator's view of a service, and the workers of this process that pull their jobs from it. */
export class RemotePawl extends RemoteScheduler {
  readonly queues: RemoteNamed<"queue", QueueView>;
  readonly tasks: RemoteTasks;
  readonly tenants: RemoteTenants;
  readonly breakers: RemoteBreakers;
  readonly limits: RemoteLimits;
  readonly lanes: Lanes;
  readonly workers: LiveWorkers & LocalWorkers;
  /** The answer of `serviceOf`, whose other parts are refused. */
  readonly service: { readonly apiKeys: LocalApiKeys; readonly audit: Audit; unended(): Promise<number> };
  readonly #transport: HttpTransport;
  readonly #registry: TaskRegistry;
  readonly #enqueuer: RemoteEnqueuer;
  readonly #bus = new Bus();
  readonly #events: RemoteEvents;
  readonly #defaults: Readonly<Record<string, QueueDefaults>>;
  readonly #workerGroup = new WorkerGroup(() => this.#end());

  constructor(
    transport: HttpTransport,
    registry: TaskRegistry,
    defaults: Readonly<Record<string, QueueDefaults>>,
    private readonly tracing?: Tracing,
  ) {
    const enqueuer = new RemoteEnqueuer(transport, defaults);
    super({ transport, registry, enqueuer, ...(tracing === undefined ? {} : { tracing }) });
    this.#transport = transport;
    this.#registry = registry;
    this.#enqueuer = enqueuer;
    this.#defaults = defaults;
    this.#events = new RemoteEvents(transport, this.#bus);
    this.queues = new RemoteNamed(transport, "queue");
    this.tasks = new RemoteTasks(transport);
    this.tenants = new RemoteTenants(transport);
    this.breakers = new RemoteBreakers(transport);
    this.limits = new RemoteLimits(transport);
    this.lanes = {
      list: (filter) => pagedList(undefined, async () => (await transport.get("/v1/lanes", { ...checkLanesFilter(filter) })) as Page<LiveLaneView>),
    };
    const live = () => pagedList(undefined, async () => revivedPage(await transport.get("/v1/workers"), workerView));
    this.workers = { list: live, get: async (name) => newestOf((await live()).items, name), local: () => this.#workerGroup.workers };
    this.service = {
      apiKeys: withUnsupported<LocalApiKeys>(new RemoteKeys(transport), "serviceOf(pawl).apiKeys"),
      audit: withUnsupported<Audit>(new RemoteAudit(transport), "serviceOf(pawl).audit"),
      unended: () => this.#workerGroup.unended(),
    };
  }

  /** Makes the tasks of this code known, if the credential may: a worker says what it needs to with every claim. */
  async publish(): Promise<void> {
    for (const { name, defaults } of this.#registry.records()) {
      try {
        await this.tasks.put(name, defaults as TaskDefinition);
      } catch (error) {
        if ((error as { code?: unknown }).code !== "forbidden") throw error;
      }
    }
  }

  override async counts(of?: CountsOptions): Promise<StateCounts> {
    const counts = await super.counts(of);
    if (countsAllStates(counts)) return counts;
    throw pawlError("all_tenants_only", { what: "how many jobs have succeeded or were cancelled" });
  }

  async series(of: SeriesOptions = {}): Promise<SeriesView> {
    const { last, step, from, to, ...query } = checkSeries(of);
    const since = from === undefined ? { last: `${last}ms` } : { from: new Date(from) };
    const until = to === undefined ? {} : { to: new Date(to) };
    return seriesView(await this.#transport.get("/v1/series", { ...query, ...since, ...until, step: `${step}ms` }));
  }

  async doctor({ overdueAfter }: DoctorOptions = {}): Promise<readonly Finding[]> {
    const query = overdueAfter === undefined ? {} : { overdueAfter: typeof overdueAfter === "number" ? `${overdueAfter}ms` : overdueAfter };
    return ((await this.#transport.get("/v1/doctor", query)) as Page<Finding>).items;
  }

  async info(): Promise<PawlInfo> {
    const { engine, version, durability, schema, receivesWakeups } = (await this.#transport.get("/v1/info")) as PawlInfo;
    const capabilities = SERVICE_CAPABILITIES;
    return {
      engine,
      version,
      durability,
      schema,
      capabilities,
      receivesWakeups,
      place: this.#transport.url.origin,
      tasks: [...this.#registry.all.keys()],
    };
  }

  /** Nothing to do: the service wakes workers by itself, and no transaction of yours reaches it. */
  wake(): void {
    this.#workerGroup.checkNotClosed();
  }

  on<E extends EventName>(name: E, listener: (event: Events[E]) => void): () => void {
    checkOneOf("event", name, EVENT_NAMES);
    checkFunction("listener", listener);
    this.#workerGroup.checkNotClosed();
    return this.#events.on(name, listener);
  }

  work(options: WorkerOptions = {}): Promise<Worker> {
    return this.#workerGroup.work(options, (own) => this.#worker(own));
  }

  closeOnSignal(): Promise<void> {
    return this.#workerGroup.closeOnSignal();
  }

  close(): Promise<void> {
    return this.#workerGroup.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The worker of this library, as it is; its jobs come from the service, and its outcomes go there. */
  #worker(options: WorkerOptions): Worker {
    let ref: WorkerRef | undefined;
    const pull = new PullStore(this.#transport, () => ({
      name: ref?.name,
      instance: ref?.instance,
      ...(options.leaseDuration === undefined ? {} : { leaseDuration: options.leaseDuration }),
    }));
    const worker = new Worker({
      store: pull.asStore(),
      bus: this.#bus,
      clock: this.#transport.clock,
      tasks: this.#registry.all,
      defaults: this.#defaults,
      options: withTracingMiddleware(options, this.tracing),
      jobSource: (deps) => new Puller(deps, pull),
    });
    ref = worker.ref;
    return worker;
  }

  async #end(): Promise<void> {
    await this.#enqueuer.idle();
    this.#events.close();
    this.#transport.close();
  }
}
