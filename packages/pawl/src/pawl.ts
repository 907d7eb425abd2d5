import type { Duration } from "./core/duration.js";
import { pawlError } from "./core/error.js";
import { EVENT_NAMES, type EventName, type Events } from "./core/event.js";
import { checkBoolean, checkDuration, checkFunction, checkKeys, checkObject, checkOneOf, checkPeriod, checkWhole } from "./core/option.js";
import { Maintenance, type MaintenanceOptions } from "./maintenance/maintenance.js";
import { keepAlive } from "./runtime/alive.js";
import { Bus } from "./runtime/bus.js";
import { systemClock } from "./runtime/clock.js";
import { systemRandomBytes } from "./runtime/random.js";
import { exitOn, onStopSignal } from "./runtime/signals.js";
import { type BreakersOperator, breakersOf } from "./scheduler/breakers.js";
import { LocalScheduler } from "./scheduler/local.js";
import { queuesOf, sum, tasksOf, tenantsOf } from "./scheduler/named.js";
import { type SchedulerOptions, type SchedulerParts, type Surroundings, schedulerParts } from "./scheduler/parts.js";
import type { Info, Named, Operator, QueueView, StateCounts, TaskView, TenantView } from "./scheduler/scheduler.js";
import { declareSchedules } from "./scheduler/schedules.js";
import { type LiveWorkerView, liveWorkers, type UnservedLane, unserved } from "./scheduler/unserved.js";
import { observed } from "./store/observed.js";
import type { ExportedJob, Store } from "./store/port.js";
import type { WorkerOptions } from "./worker/options.js";
import { Worker } from "./worker/worker.js";

/** An open store: the scheduler, the operator's view, and what runs in this process. */
export interface Pawl extends Operator, AsyncDisposable {
  /** Starts a worker in this process, for the tasks given to `open`. */
  work(options?: WorkOptions): Promise<Worker>;
  /** Waits for SIGINT or SIGTERM, then closes; a second signal ends the process at once. */
  untilSignal(): Promise<void>;
  /** Lets workers finish (`drain`), stops maintenance, and closes the store. Again is the same. */
  close(): Promise<void>;
}

export interface WorkOptions extends WorkerOptions {
  /** on SIGINT or SIGTERM close everything gracefully, on a second one exit at once */
  readonly signals?: boolean;
}

export interface PawlOptions extends SchedulerOptions {
  /** whether this process takes part in promoting, reaping and pruning (default: yes). Some process must. */
  readonly maintenance?: boolean | Omit<MaintenanceOptions, keyof KeepOptions>;
  readonly keep?: KeepOptions;
}

export interface KeepOptions {
  /** how long succeeded and cancelled jobs are kept */
  readonly finished?: Duration;
  /** how long dead ones are */
  readonly dead?: Duration;
  /** sees finished jobs before they are let go; if it throws, they stay */
  readonly exportFinished?: MaintenanceOptions["exportFinished"];
}

const SYSTEM: Surroundings = { clock: systemClock, randomBytes: systemRandomBytes };

/** Puts the parts together on a store, which is theirs from here on: if this fails, it is closed. */
export async function startPawl(store: Store, options: PawlOptions = {}, surroundings: Surroundings = SYSTEM): Promise<Pawl> {
  try {
    const bus = new Bus();
    const seen = observed(store, bus, surroundings.clock);
    const parts = schedulerParts(seen, bus, surroundings, options);
    const upkeep = upkeepOf(options);
    await seen.tasks.publish(parts.registry.records());
    if (options.schedules !== undefined) await declareSchedules(parts, options.app, options.schedules);
    const maintenance =
      upkeep === undefined ? undefined : new Maintenance({ store: seen, bus, clock: surroundings.clock, tails: parts.tails, options: upkeep });
    await maintenance?.start();
    return new LocalPawl(seen, bus, surroundings, parts, maintenance);
  } catch (error) {
    await store.close();
    throw error;
  }
}

class LocalPawl extends LocalScheduler implements Pawl {
  readonly queues: Named<"queue", QueueView>;
  readonly tasks: Named<"task", TaskView>;
  readonly tenants: Named<"tenant", TenantView>;
  readonly breakers: BreakersOperator;
  readonly #workers = new Set<Worker>();
  readonly #atEnd: (() => void)[] = [];
  #closing: Promise<void> | undefined;

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly surroundings: Surroundings,
    private readonly parts: SchedulerParts,
    private readonly maintenance: Maintenance | undefined,
  ) {
    super(parts);
    this.queues = queuesOf(store, Object.keys(parts.queues));
    this.breakers = breakersOf(store);
    this.tasks = tasksOf(store, parts.registry);
    this.tenants = tenantsOf(store);
  }

  async counts(of: { readonly queue?: string; readonly task?: string } = {}): Promise<StateCounts> {
    checkKeys(checkObject("of", of), COUNT_KEYS);
    const rows = await this.store.records.counts();
    return sum(rows.filter(({ queue, task }) => (of.queue ?? queue) === queue && (of.task ?? task) === task));
  }

  unserved(): Promise<readonly UnservedLane[]> {
    return unserved(this.store);
  }

  workers(): Promise<readonly LiveWorkerView[]> {
    return liveWorkers(this.store);
  }

  async info(): Promise<Info> {
    return { ...this.store.engine, hearsOthers: this.store.hearsOthers(), tasks: [...this.parts.registry.all.keys()] };
  }

  restore(batch: readonly ExportedJob[]): Promise<number> {
    return this.store.duties.restore(batch);
  }

  wake(): void {
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
    return this.bus.on(name, listener);
  }

  async work(given: WorkOptions = {}): Promise<Worker> {
    checkKeys(checkObject("options", given), WORK_KEYS);
    const { signals = false, ...options } = given;
    checkBoolean("signals", signals);
    if (this.#closing !== undefined) throw pawlError("closed", { what: "pawl" });
    const { registry, queues: defaults } = this.parts;
    const worker = new Worker({ store: this.store, bus: this.bus, clock: this.surroundings.clock, tasks: registry.all, defaults, options });
    this.#workers.add(worker);
    const release = keepAlive();
    void worker.stopped.finally(() => {
      release();
      this.#workers.delete(worker);
    });
    await worker.start();
    if (signals) void this.untilSignal();
    return worker;
  }

  untilSignal(): Promise<void> {
    return new Promise((resolve) => {
      const stop = onStopSignal((signal, count) => {
        if (count === 1) void this.close();
        else {
          for (const worker of this.#workers) worker.kill();
          exitOn(signal);
        }
      });
      // However it comes to its end, the signals of the process are its own again.
      this.#atEnd.push(stop, resolve);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#end().finally(() => {
      for (const call of this.#atEnd) call();
    });
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Handlers may still enqueue while they finish, so what they need goes last. */
  async #end(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await this.parts.batcher.idle();
    this.parts.waiters.close();
    await this.maintenance?.stop();
    await this.store.close();
  }
}

const COUNT_KEYS = new Set(["queue", "task"]);
const MAINTENANCE_KEYS = new Set(["pulse", "sweep", "lease", "prune", "batch"]);
const KEEP_KEYS = new Set(["finished", "dead", "exportFinished"]);
const WORK_KEYS = new Set(
  Object.keys({
    concurrency: true,
    queues: true,
    tasks: true,
    bands: true,
    tenants: true,
    tags: true,
    amounts: true,
    reserve: true,
    slots: true,
    name: true,
    lease: true,
    renewal: true,
    drain: true,
    claimBatch: true,
    middleware: true,
    poll: true,
    renewer: true,
    signals: true,
  } satisfies Record<keyof WorkOptions, true>),
);

function upkeepOf({ maintenance = true, keep = {} }: PawlOptions): MaintenanceOptions | undefined {
  checkKeys(checkObject("keep", keep), KEEP_KEYS, "keep.");
  const { finished, dead, exportFinished } = keep;
  if (exportFinished !== undefined) checkFunction("keep.exportFinished", exportFinished);
  const kept = {
    ...(finished === undefined ? {} : { finished: checkPeriod("keep.finished", finished) }),
    ...(dead === undefined ? {} : { dead: checkPeriod("keep.dead", dead) }),
    ...(exportFinished === undefined ? {} : { exportFinished }),
  };
  if (typeof maintenance === "boolean") return maintenance ? kept : undefined;
  checkKeys(checkObject("maintenance", maintenance), MAINTENANCE_KEYS, "maintenance.");
  const { batch, ...paces } = maintenance;
  if (batch !== undefined) checkWhole("maintenance.batch", batch, 1, 100_000);
  for (const [name, pace] of Object.entries(paces)) if (pace !== undefined) checkDuration(`maintenance.${name}`, pace);
  return { ...maintenance, ...kept };
}
