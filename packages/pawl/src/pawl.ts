import type { Lane } from "./core/jobs/lane.js";
import type { AnyTask } from "./core/jobs/task.js";
import type { Finding } from "./core/observe/doctor.js";
import { EVENT_NAMES, type EventName, type Events } from "./core/observe/event.js";
import type { Duration } from "./core/values/duration.js";
import { isPawlError } from "./core/values/error.js";
import { checkDuration, checkFunction, checkKeys, checkObject, checkOneOf, checkPeriod, checkText, checkWhole } from "./core/values/option.js";
import { Maintenance, type MaintenanceOptions } from "./maintenance/maintenance.js";
import { Bus } from "./runtime/process/bus.js";
import { systemRandomBytes } from "./runtime/process/random.js";
import { systemClock } from "./runtime/time/clock.js";
import { createApiKeys, type LocalApiKeys, type PepperOptions } from "./scheduler/access/api-keys.js";
import { createAudit } from "./scheduler/access/audit.js";
import { checkMasterKeysPresent, createEncryption, type EncryptionOptions, openKeyStore } from "./scheduler/access/encryption.js";
import { StoredPurges, StoredTenants, type Tenants } from "./scheduler/access/tenants.js";
import { createSchedulerDeps, type Environment, type SchedulerDeps, type SchedulerOptions } from "./scheduler/deps.js";
import { jobIdOf } from "./scheduler/enqueue/read-options.js";
import { createReplies } from "./scheduler/jobs/replies.js";
import { StoredTasks, type Tasks } from "./scheduler/jobs/tasks.js";
import { type BreakersOperator, breakersOperator } from "./scheduler/limits/breakers.js";
import { type LimitsOperator, limitsOperator } from "./scheduler/limits/limits-view.js";
import { createQueues } from "./scheduler/limits/queues-tasks-tenants.js";
import { LocalScheduler } from "./scheduler/local.js";
import { backlogOf } from "./scheduler/observe/backlog.js";
import { allCounts, type CountsOptions, type StateCounts } from "./scheduler/observe/counts.js";
import { type DoctorOptions, runDoctor } from "./scheduler/observe/doctor.js";
import { ClusterEventRecorder } from "./scheduler/observe/event-recorder.js";
import { clusterEvents } from "./scheduler/observe/event-tail.js";
import { type Lanes, type LiveWorkers, liveLanes, liveWorkers, newestOf } from "./scheduler/observe/lanes-and-workers.js";
import { type SeriesOptions, type SeriesView, seriesOf } from "./scheduler/observe/series.js";
import { withTracingMiddleware } from "./scheduler/observe/tracing.js";
import { wholeList } from "./scheduler/page.js";
import type { Operator, PawlInfo, PolicyOperator, QueueView, Scheduler } from "./scheduler/scheduler.js";
import { declareSchedules } from "./scheduler/schedules/schedule-builder.js";
import { attachService } from "./service-of.js";
import type { KeyStore } from "./store/encrypted/key-store.js";
import { encryptedStore } from "./store/encrypted/store.js";
import type { Poll } from "./store/port/duties/duties.js";
import type { EngineStore, Store } from "./store/port/index.js";
import { announceChanges } from "./store/wrap/announce-changes.js";
import { closable } from "./store/wrap/closable.js";
import { isWhole, pairStores } from "./store/wrap/pair-stores.js";
import { timeCalls } from "./store/wrap/time-calls.js";
import type { LaneSlots } from "./worker/claim/lane-slots.js";
import type { WorkerOptions } from "./worker/options.js";
import { type Deliver, notifyPushers, Pusher } from "./worker/push/pusher.js";
import { Host, type HostOptions } from "./worker/remote/host.js";
import { LanePoll } from "./worker/remote/lane-poll.js";
import { Worker } from "./worker/worker.js";
import { type LocalWorkers, WorkerGroup } from "./worker/worker-group.js";

/** An open store: the scheduler, the operator's view, and what runs in this process. */
export interface Pawl extends Operator, AsyncDisposable {
  /** Starts a worker in this process, for the tasks given to `open`. */
  work(options?: WorkerOptions): Promise<Worker>;
  readonly workers: LiveWorkers & LocalWorkers;
  /**
   * Closes on SIGINT or SIGTERM, and answers when all is closed. A second signal ends the process at once (130, 143). Handlers that go
   * on after the close do not keep the process alive: a second later it exits with 70. If a worker is stuck, it closes by itself, and
   * exits with 75.
   */
  closeOnSignal(): Promise<void>;
  /** Lets workers finish (`drain`), stops maintenance, and closes the store. Again is the same. */
  close(): Promise<void>;
}

export interface PawlOptions extends SchedulerOptions {
  /** whether this process takes part in promoting, reaping and pruning (default: yes). Some process must. */
  readonly maintenance?: boolean | Omit<MaintenanceOptions, keyof KeepOptions>;
  readonly keep?: KeepOptions;
  /** what API keys are made with; without it there are none */
  readonly apiKeys?: PepperOptions;
  /** encrypts what jobs hold before it is stored: inputs, outputs, failures, progress, logs. See docs/protection.md */
  readonly encryption?: EncryptionOptions;
}

export interface KeepOptions {
  /** how long succeeded and cancelled jobs are kept */
  readonly jobs?: Duration;
  /** how long dead ones are */
  readonly dead?: Duration;
  /** how long the time series of counts are */
  readonly series?: Duration;
  /** sees finished jobs before they are let go; if it throws, they stay */
  readonly exportFinished?: MaintenanceOptions["exportFinished"];
}

/** Makes a call of the store for as long as it takes. */
export type RetryCall = <T>(attempt: () => Promise<T>) => Promise<T>;

export const SYSTEM: Environment = { clock: systemClock, randomBytes: systemRandomBytes };

/**
 * Puts the parts together on a store, which is theirs from here on: if this fails, it is closed. `persist` makes the calls
 * that starting needs, again where the store is away for a moment; all of them are safe to repeat.
 */
export async function startPawl(
  opened: EngineStore,
  options: PawlOptions = {},
  environment: Environment = SYSTEM,
  retryCall: RetryCall = (attempt) => attempt(),
): Promise<Pawl> {
  const store = isWhole(opened) ? opened : pairStores(opened);
  try {
    const bus = new Bus();
    const keyStore = options.encryption === undefined ? undefined : await openKeyStore(store, environment, options.encryption);
    const wrappedStore = closable(
      announceChanges(timeCalls(keyStore === undefined ? store : encryptedStore(store, keyStore), bus, environment.clock), bus),
    );
    const { checkOpen } = wrappedStore;
    const deps = { ...createSchedulerDeps(wrappedStore, bus, environment, options, keyStore !== undefined), checkOpen };
    const maintenanceOptions = maintenanceOptionsOf(options);
    const keys = await createApiKeys(wrappedStore, environment, options.apiKeys);
    const { app, schedules } = options;
    await retryCall(() => wrappedStore.tasks.publish(deps.registry.records()));
    if (schedules !== undefined) await retryCall(() => declareSchedules(deps, app, schedules));
    const { clock } = environment;
    const eventRecorder = new ClusterEventRecorder({
      store: wrappedStore,
      bus,
      clock,
      polled: maintenanceOptions !== undefined,
      hideFailures: keyStore !== undefined,
    });
    const onPoll = ({ watched }: Poll) => eventRecorder.setWatched(watched);
    const maintenance =
      maintenanceOptions === undefined
        ? undefined
        : new Maintenance({ store: wrappedStore, bus, clock, idSuffixes: deps.nextIdSuffix, options: maintenanceOptions, onPoll });
    if (isWhole(opened)) eventRecorder.start();
    await maintenance?.start();
    return new LocalPawl(wrappedStore, bus, environment, deps, maintenance, eventRecorder, keys, keyStore);
  } catch (error) {
    await store.close();
    throw error;
  }
}

class LocalPawl extends LocalScheduler implements Pawl {
  readonly queues: PolicyOperator<"queue", QueueView>;
  readonly tasks: Tasks;
  readonly tenants: Tenants;
  readonly breakers: BreakersOperator;
  readonly limits: LimitsOperator;
  readonly lanes: Lanes;
  readonly workers: LiveWorkers & LocalWorkers;
  readonly #workerGroup = new WorkerGroup(() => this.#end());
  #lanePoll: LanePoll | undefined;
  readonly #pushers = new Set<Pusher>();

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly surroundings: Environment,
    private readonly deps: SchedulerDeps,
    private readonly maintenance: Maintenance | undefined,
    private readonly eventRecorder: ClusterEventRecorder,
    apiKeys: LocalApiKeys,
    private readonly keyStore: KeyStore | undefined,
  ) {
    super(deps);
    this.queues = createQueues(store, Object.keys(deps.queues));
    this.breakers = breakersOperator(store);
    this.limits = limitsOperator(store);
    this.lanes = { list: (filter) => wholeList(() => liveLanes(store, filter)) };
    this.workers = {
      list: () => wholeList(() => liveWorkers(store)),
      get: async (name) => newestOf(await liveWorkers(store), name),
      local: () => this.#workerGroup.workers,
    };
    this.tasks = new StoredTasks(store, deps.registry, deps.registry.published.compile);
    const audit = createAudit(store);
    const { clock } = surroundings;
    const purges = new StoredPurges(store, clock);
    this.tenants = new StoredTenants(store, clock, purges, (tenant) => {
      const { limits, breakers } = this;
      return { limits, breakers, audit, scheduler: this.forTenant(tenant), keys: apiKeys.forTenant(tenant) };
    });
    attachService(this, {
      apiKeys,
      audit,
      purges,
      idempotency: createReplies(store),
      encryption: createEncryption(store, keyStore),
      events: clusterEvents({
        store,
        clock,
        onWatched: (watched) => eventRecorder.setWatched(watched),
        onError: (error) => bus.emit("duty.failed", { duty: "follow events", error }),
      }),
      forCaller: (caller, tenant) => this.#forCaller(caller, tenant),
      host: (worker) => this.#host(worker),
      push: (deliver, options) => this.#push(deliver, options),
      backlog: (options) => backlogOf(store, options),
      lanesOf: (jobs, options) => this.#lanesOf(jobs, options),
      unended: () => this.#workerGroup.unended(),
    });
  }

  override counts(of?: CountsOptions): Promise<StateCounts> {
    return allCounts(this.store, of);
  }

  series(of?: SeriesOptions): Promise<SeriesView> {
    return seriesOf(this.store, of);
  }

  doctor(options?: DoctorOptions): Promise<readonly Finding[]> {
    return runDoctor(this.store, options);
  }

  async info(): Promise<PawlInfo> {
    this.#workerGroup.checkNotClosed();
    return { ...this.store.engine, receivesWakeups: this.store.receivesWakeups(), tasks: [...this.deps.registry.all.keys()] };
  }

  wake(): void {
    this.#workerGroup.checkNotClosed();
    const { unannouncedLanes } = this.deps;
    if (unannouncedLanes.size > 0) this.store.sendWakeup({ kind: "ready", lanes: [...unannouncedLanes.values()] });
    unannouncedLanes.clear();
    this.store.sendWakeup({ kind: "lanes" });
    this.store.sendWakeup({ kind: "scheduled", dueIn: 0 });
    this.store.sendWakeup({ kind: "admit", dueIn: 0 });
  }

  on<E extends EventName>(name: E, listener: (event: Events[E]) => void): () => void {
    checkOneOf("event", name, EVENT_NAMES);
    checkFunction("listener", listener);
    this.#workerGroup.checkNotClosed();
    return this.bus.on(name, listener);
  }

  async work(options: WorkerOptions = {}): Promise<Worker> {
    this.#workerGroup.checkOpen();
    await this.#checkOpens();
    return this.#work(this.deps.registry.all, options);
  }

  #forCaller(caller: string, tenant: string | undefined): Scheduler {
    const scheduler = new LocalScheduler({ ...this.deps, caller: checkText("caller", caller) });
    return tenant === undefined ? scheduler : scheduler.forTenant(tenant);
  }

  async #push(deliver: Deliver, options: WorkerOptions = {}): Promise<Pusher> {
    this.#workerGroup.checkOpen();
    checkFunction("deliver", deliver);
    const { store, bus } = this;
    const pusher = new Pusher(
      {
        store,
        clock: this.surroundings.clock,
        deliver,
        work: (tasks, slots, own) => this.#work(tasks, own, slots),
        onError: (error) => bus.emit("duty.failed", { duty: "push", error }),
      },
      options,
    );
    this.#pushers.add(pusher);
    await pusher.start();
    return pusher;
  }

  #work(tasks: ReadonlyMap<string, AnyTask>, options: WorkerOptions, slots?: LaneSlots): Promise<Worker> {
    const { queues: defaults, tracing } = this.deps;
    const { bus } = this;
    const { clock } = this.surroundings;
    const store = notifyPushers(this.#pushers, this.store);
    const more = slots === undefined ? {} : { slots };
    return this.#workerGroup.work(
      options,
      (own) => new Worker({ store, bus, clock, tasks, defaults, options: withTracingMiddleware(own, tracing), ...more }),
    );
  }

  #host(worker: HostOptions): Host {
    this.#workerGroup.checkOpen();
    const { store, bus } = this;
    const { clock } = this.surroundings;
    const { registry, queues: defaults } = this.deps;
    this.#lanePoll ??= new LanePoll(store, clock);
    return new Host(
      {
        store,
        bus,
        clock,
        lanePoll: this.#lanePoll,
        defaults,
        checkOpen: () => this.#workerGroup.checkOpen(),
        taskOf: (name) => registry.get(name) ?? registry.published.find(name),
      },
      worker,
    );
  }

  #lanesOf(jobs: readonly string[], { tenant }: { readonly tenant?: string | undefined } = {}): Promise<ReadonlyMap<string, Lane>> {
    return this.store.jobs.lanes(
      tenant === undefined ? "everyone" : { tenant },
      jobs.flatMap((job) => jobIdOf(job) ?? []),
    );
  }

  closeOnSignal(): Promise<void> {
    return this.#workerGroup.closeOnSignal();
  }

  close(): Promise<void> {
    for (const pusher of this.#pushers) void pusher.stop();
    return this.#workerGroup.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** What it cannot know it finds out with every job. */
  async #checkOpens(): Promise<void> {
    try {
      await checkMasterKeysPresent(this.store, this.keyStore);
    } catch (error) {
      if (isPawlError(error, "encryption_missing") || isPawlError(error, "master_key_missing")) throw error;
    }
  }

  async #end(): Promise<void> {
    await this.deps.batcher.idle();
    this.deps.waiters.close();
    this.#lanePoll?.stop();
    await this.maintenance?.stop();
    await this.eventRecorder.stop();
    await this.store.close();
  }
}

const MAINTENANCE_KEYS = new Set(["pollInterval", "reapInterval", "leaseDuration", "pruneInterval", "batchSize"]);
const KEEP_KEYS = new Set(["jobs", "dead", "series", "exportFinished"]);

function maintenanceOptionsOf({ maintenance = true, keep = {} }: PawlOptions): MaintenanceOptions | undefined {
  checkKeys(checkObject("keep", keep), KEEP_KEYS, "keep.");
  const { jobs, dead, series, exportFinished } = keep;
  if (exportFinished !== undefined) checkFunction("keep.exportFinished", exportFinished);
  const kept: MaintenanceOptions = {
    ...(jobs === undefined ? {} : { jobs: checkPeriod("keep.jobs", jobs) }),
    ...(dead === undefined ? {} : { dead: checkPeriod("keep.dead", dead) }),
    ...(series === undefined ? {} : { series: checkPeriod("keep.series", series) }),
    ...(exportFinished === undefined ? {} : { exportFinished }),
  };
  if (typeof maintenance === "boolean") return maintenance ? kept : undefined;
  checkKeys(checkObject("maintenance", maintenance), MAINTENANCE_KEYS, "maintenance.");
  const { batchSize, ...paces } = maintenance;
  if (batchSize !== undefined) checkWhole("maintenance.batchSize", batchSize, 1, 100_000);
  for (const [name, pace] of Object.entries(paces)) if (pace !== undefined) checkDuration(`maintenance.${name}`, pace);
  return { ...maintenance, ...kept };
}
