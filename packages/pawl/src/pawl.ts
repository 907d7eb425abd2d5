import type { Finding } from "./core/doctor.js";
import type { Duration } from "./core/duration.js";
import { isPawlError } from "./core/error.js";
import { EVENT_NAMES, type EventName, type Events } from "./core/event.js";
import type { Lane } from "./core/lane.js";
import { checkDuration, checkFunction, checkKeys, checkObject, checkOneOf, checkPeriod, checkWhole } from "./core/option.js";
import { Maintenance, type MaintenanceOptions } from "./maintenance/maintenance.js";
import { Bus } from "./runtime/bus.js";
import { systemClock } from "./runtime/clock.js";
import { systemRandomBytes } from "./runtime/random.js";
import { type Audit, auditOf } from "./scheduler/audit.js";
import { type BreakersOperator, breakersOf } from "./scheduler/breakers.js";
import { type CheckupOptions, checkup } from "./scheduler/checkup.js";
import { allCounts, type CountsOf, type StateCounts } from "./scheduler/counts.js";
import { type Depths, type DepthsOf, depthsOf } from "./scheduler/depths.js";
import { checkOpens, type Encryption, type EncryptionOptions, encryptionOf, vaultOf } from "./scheduler/encryption.js";
import { type ClusterEvents, clusterEvents } from "./scheduler/follower.js";
import { idOf } from "./scheduler/given.js";
import { type KeyRing, type KeysOptions, keyRing } from "./scheduler/keys.js";
import { type LimitsOperator, limitsOperator } from "./scheduler/limits-view.js";
import { LocalScheduler } from "./scheduler/local.js";
import { queuesOf } from "./scheduler/named.js";
import { type SchedulerOptions, type SchedulerParts, type Surroundings, schedulerParts } from "./scheduler/parts.js";
import { type Replies, repliesOf } from "./scheduler/replies.js";
import { declareSchedules } from "./scheduler/schedule-maker.js";
import type { Info, Named, Operator, QueueView } from "./scheduler/scheduler.js";
import { type SeriesOf, type SeriesView, seriesOf } from "./scheduler/series.js";
import { KnownTasks, type Tasks } from "./scheduler/tasks.js";
import { Teller } from "./scheduler/teller.js";
import { type LocalTenants, StoredTenants } from "./scheduler/tenants.js";
import { tracedWork } from "./scheduler/tracing.js";
import { type LiveLaneView, type LiveWorkerView, liveLanes, liveWorkers, type UnservedLane, unserved } from "./scheduler/unserved.js";
import { closable } from "./store/closable.js";
import { observed } from "./store/observed.js";
import type { Store } from "./store/port.js";
import type { ExportedJob, Pulse } from "./store/port-duties.js";
import { sealedStore } from "./store/sealed/index.js";
import type { Vault } from "./store/sealed/vault.js";
import { telling } from "./store/telling.js";
import { Host, type HostOptions } from "./worker/host/host.js";
import { Looks } from "./worker/host/looks.js";
import { Household } from "./worker/household.js";
import type { LaneSlots } from "./worker/lane-slots.js";
import type { WorkerOptions, WorkOptions } from "./worker/options.js";
import { type Deliver, heardBy, Pusher } from "./worker/pusher.js";
import type { AnyTask } from "./worker/task.js";
import { Worker } from "./worker/worker.js";

/** An open store: the scheduler, the operator's view, and what runs in this process. */
export interface Pawl extends Operator, AsyncDisposable {
  /** API keys: what a service on top of Pawl lets its callers in by. */
  readonly keys: KeyRing;
  /** who did what, and who was not let */
  readonly audit: Audit;
  readonly replies: Replies;
  /** what happens in every process on the store, for services on top of Pawl; `on` tells of this process alone */
  readonly events: ClusterEvents;
  readonly tenants: LocalTenants;
  /** the keys that what jobs hold is sealed with; see docs/protection.md */
  readonly encryption: Encryption;
  /** Starts a worker in this process, for the tasks given to `open`. */
  work(options?: WorkOptions): Promise<Worker>;
  /**
   * Delivers the jobs of tasks that have a target, beside a worker of this process, by whose polls it hears of targets: what the
   * service pushes with.
   */
  push(deliver: Deliver, options?: WorkerOptions): Promise<Pusher>;
  /** Claims and settles here for a worker that runs elsewhere: what the service's pull protocol is made of. */
  host(worker: HostOptions): Host;
  /** The workers of this process that have not stopped. */
  localWorkers(): readonly Worker[];
  /** Of what tasks and queues jobs are, of one tenant or all; unknown ones are left out. For services that show some and not others. */
  lanesOf(jobs: readonly string[], of?: { readonly tenant?: string | undefined }): Promise<ReadonlyMap<string, Lane>>;
  /** What waits: how much, for what, how long, and of whom. For dashboards and alerts: it scans nothing. */
  depths(of?: DepthsOf): Promise<Depths>;
  /**
   * Waits for SIGINT or SIGTERM, then closes; a second signal ends the process at once. Handlers that go on after that do not keep
   * the process alive: a second later it exits with 70. If a worker is stuck, it closes by itself, and exits with 75.
   */
  untilSignal(): Promise<void>;
  /** Once it is closed: handlers that go on all the same, and keep the process from ending by itself. If there are any, it takes a second. */
  unended(): Promise<number>;
  /** Lets workers finish (`drain`), stops maintenance, and closes the store. Again is the same. */
  close(): Promise<void>;
}

export interface PawlOptions extends SchedulerOptions {
  /** whether this process takes part in promoting, reaping and pruning (default: yes). Some process must. */
  readonly maintenance?: boolean | Omit<MaintenanceOptions, keyof KeepOptions>;
  readonly keep?: KeepOptions;
  /** what API keys are made with; without it there are none */
  readonly keys?: KeysOptions;
  /** seals what jobs hold before it is stored: inputs, outputs, failures, progress, logs. See docs/protection.md */
  readonly encryption?: EncryptionOptions;
}

export interface KeepOptions {
  /** how long succeeded and cancelled jobs are kept */
  readonly finished?: Duration;
  /** how long dead ones are */
  readonly dead?: Duration;
  /** how long the time series of counts are */
  readonly series?: Duration;
  /** sees finished jobs before they are let go; if it throws, they stay */
  readonly exportFinished?: MaintenanceOptions["exportFinished"];
}

/** Makes a call of the store for as long as it takes. */
export type Persist = <T>(attempt: () => Promise<T>) => Promise<T>;

export const SYSTEM: Surroundings = { clock: systemClock, randomBytes: systemRandomBytes };

/**
 * Puts the parts together on a store, which is theirs from here on: if this fails, it is closed. `persist` makes the calls
 * that starting needs, again where the store is away for a moment; all of them are safe to repeat.
 */
export async function startPawl(
  store: Store,
  options: PawlOptions = {},
  surroundings: Surroundings = SYSTEM,
  persist: Persist = (attempt) => attempt(),
): Promise<Pawl> {
  try {
    const bus = new Bus();
    const vault = options.encryption === undefined ? undefined : await vaultOf(store, surroundings, options.encryption);
    const seen = closable(telling(observed(vault === undefined ? store : sealedStore(store, vault), bus, surroundings.clock), bus));
    const parts = schedulerParts(seen, bus, surroundings, options, vault !== undefined);
    const upkeep = upkeepOf(options);
    const keys = await keyRing(seen, surroundings, options.keys);
    const { app, schedules } = options;
    await persist(() => seen.tasks.publish(parts.registry.records()));
    if (schedules !== undefined) await persist(() => declareSchedules(parts, app, schedules));
    const { clock } = surroundings;
    const teller = new Teller({ store: seen, bus, clock, pulsed: upkeep !== undefined, discreet: vault !== undefined });
    const onPulse = ({ watched }: Pulse) => teller.saw(watched);
    const maintenance = upkeep === undefined ? undefined : new Maintenance({ store: seen, bus, clock, tails: parts.tails, options: upkeep, onPulse });
    teller.start();
    await maintenance?.start();
    return new LocalPawl(seen, bus, surroundings, parts, maintenance, teller, keys, vault);
  } catch (error) {
    await store.close();
    throw error;
  }
}

class LocalPawl extends LocalScheduler implements Pawl {
  readonly queues: Named<"queue", QueueView>;
  readonly tasks: Tasks;
  readonly tenants: LocalTenants;
  readonly breakers: BreakersOperator;
  readonly limits: LimitsOperator;
  readonly audit: Audit;
  readonly replies: Replies;
  readonly encryption: Encryption;
  readonly events: ClusterEvents;
  readonly #household = new Household(() => this.#end());
  #looks: Looks | undefined;
  readonly #pushers = new Set<Pusher>();

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly surroundings: Surroundings,
    private readonly parts: SchedulerParts,
    private readonly maintenance: Maintenance | undefined,
    private readonly teller: Teller,
    readonly keys: KeyRing,
    private readonly vault: Vault | undefined,
  ) {
    super(parts);
    this.queues = queuesOf(store, Object.keys(parts.queues));
    this.breakers = breakersOf(store);
    this.limits = limitsOperator(store);
    this.tasks = new KnownTasks(store, parts.registry, parts.registry.directory.compile);
    this.audit = auditOf(store);
    this.encryption = encryptionOf(store, vault);
    this.tenants = new StoredTenants(store, surroundings.clock, (tenant) => {
      const { limits, breakers, audit } = this;
      return { limits, breakers, audit, scheduler: this.as({ tenant }), keys: keys.as({ tenant }) };
    });
    this.replies = repliesOf(store);
    this.events = clusterEvents({
      store,
      clock: surroundings.clock,
      onWatched: (watched) => teller.saw(watched),
      onError: (error) => bus.emit("duty.failed", { duty: "follow events", error }),
    });
  }

  override counts(of?: CountsOf): Promise<StateCounts> {
    return allCounts(this.store, of);
  }

  series(of?: SeriesOf): Promise<SeriesView> {
    return seriesOf(this.store, of);
  }

  lanes(): Promise<readonly LiveLaneView[]> {
    return liveLanes(this.store);
  }

  unserved(): Promise<readonly UnservedLane[]> {
    return unserved(this.store);
  }

  checkup(options?: CheckupOptions): Promise<readonly Finding[]> {
    return checkup(this.store, options);
  }

  workers(): Promise<readonly LiveWorkerView[]> {
    return liveWorkers(this.store);
  }

  async info(): Promise<Info> {
    this.#household.checkNotClosed();
    return { ...this.store.engine, hearsOthers: this.store.hearsOthers(), tasks: [...this.parts.registry.all.keys()] };
  }

  restore(batch: readonly ExportedJob[]): Promise<number> {
    return this.store.duties.restore(batch);
  }

  wake(): void {
    this.#household.checkNotClosed();
    const { untold } = this.parts;
    if (untold.size > 0) this.store.hint({ kind: "ready", lanes: [...untold.values()] });
    untold.clear();
    this.store.hint({ kind: "lanes" });
    this.store.hint({ kind: "scheduled", dueIn: 0 });
    this.store.hint({ kind: "admit", dueIn: 0 });
  }

  on<E extends EventName>(name: E, listener: (event: Events[E]) => void): () => void {
    checkOneOf("event", name, EVENT_NAMES);
    checkFunction("listener", listener);
    this.#household.checkNotClosed();
    return this.bus.on(name, listener);
  }

  async work(options: WorkOptions = {}): Promise<Worker> {
    this.#household.checkOpen();
    await this.#checkOpens();
    return this.#work(this.parts.registry.all, options);
  }

  async push(deliver: Deliver, options: WorkerOptions = {}): Promise<Pusher> {
    this.#household.checkOpen();
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

  #work(tasks: ReadonlyMap<string, AnyTask>, options: WorkOptions, slots?: LaneSlots): Promise<Worker> {
    const { queues: defaults, tracing } = this.parts;
    const { bus } = this;
    const { clock } = this.surroundings;
    const store = heardBy(this.#pushers, this.store);
    const more = slots === undefined ? {} : { slots };
    return this.#household.work(options, (own) => new Worker({ store, bus, clock, tasks, defaults, options: tracedWork(own, tracing), ...more }));
  }

  host(worker: HostOptions): Host {
    this.#household.checkOpen();
    const { store, bus } = this;
    const { clock } = this.surroundings;
    const { registry, queues: defaults } = this.parts;
    this.#looks ??= new Looks(store, clock);
    return new Host(
      {
        store,
        bus,
        clock,
        looks: this.#looks,
        defaults,
        checkOpen: () => this.#household.checkOpen(),
        taskOf: (name) => registry.get(name) ?? registry.directory.find(name),
      },
      worker,
    );
  }

  localWorkers(): readonly Worker[] {
    return this.#household.workers;
  }

  lanesOf(jobs: readonly string[], { tenant }: { readonly tenant?: string | undefined } = {}): Promise<ReadonlyMap<string, Lane>> {
    return this.store.jobs.lanes(
      tenant === undefined ? "everyone" : { tenant },
      jobs.flatMap((job) => idOf(job) ?? []),
    );
  }

  depths(of?: DepthsOf): Promise<Depths> {
    return depthsOf(this.store, of);
  }

  untilSignal(): Promise<void> {
    return this.#household.untilSignal();
  }

  unended(): Promise<number> {
    return this.#household.unended();
  }

  close(): Promise<void> {
    for (const pusher of this.#pushers) void pusher.stop();
    return this.#household.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** What it cannot know it finds out with every job. */
  async #checkOpens(): Promise<void> {
    try {
      await checkOpens(this.store, this.vault);
    } catch (error) {
      if (isPawlError(error, "encryption_missing") || isPawlError(error, "master_key_missing")) throw error;
    }
  }

  async #end(): Promise<void> {
    await this.parts.batcher.idle();
    this.parts.waiters.close();
    this.#looks?.stop();
    await this.maintenance?.stop();
    await this.teller.stop();
    await this.store.close();
  }
}

const MAINTENANCE_KEYS = new Set(["pulse", "sweep", "lease", "prune", "batch"]);
const KEEP_KEYS = new Set(["finished", "dead", "series", "exportFinished"]);

function upkeepOf({ maintenance = true, keep = {} }: PawlOptions): MaintenanceOptions | undefined {
  checkKeys(checkObject("keep", keep), KEEP_KEYS, "keep.");
  const { finished, dead, series, exportFinished } = keep;
  if (exportFinished !== undefined) checkFunction("keep.exportFinished", exportFinished);
  const kept = {
    ...(finished === undefined ? {} : { finished: checkPeriod("keep.finished", finished) }),
    ...(dead === undefined ? {} : { dead: checkPeriod("keep.dead", dead) }),
    ...(series === undefined ? {} : { series: checkPeriod("keep.series", series) }),
    ...(exportFinished === undefined ? {} : { exportFinished }),
  };
  if (typeof maintenance === "boolean") return maintenance ? kept : undefined;
  checkKeys(checkObject("maintenance", maintenance), MAINTENANCE_KEYS, "maintenance.");
  const { batch, ...paces } = maintenance;
  if (batch !== undefined) checkWhole("maintenance.batch", batch, 1, 100_000);
  for (const [name, pace] of Object.entries(paces)) if (pace !== undefined) checkDuration(`maintenance.${name}`, pace);
  return { ...maintenance, ...kept };
}
