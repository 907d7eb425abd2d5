import type { WorkerRef } from "../core/jobs/lease.js";
import type { Duration } from "../core/values/duration.js";
import { checkDuration, checkKeys, checkObject } from "../core/values/option.js";
import type { Bus } from "../runtime/process/bus.js";
import { newInstanceId } from "../runtime/process/identity.js";
import { Lifecycle, type Service } from "../runtime/process/service.js";
import { Signal, within } from "../runtime/time/wait.js";
import type { Renewer } from "../store/port/settle/leases.js";
import { Announcer, servesOf } from "./claim/announce-worker.js";
import { settingsOf, type WorkerOptions, type WorkerSettings } from "./options.js";
import { SHUTDOWN_WAIT_MS, WorkerPipeline, type WorkerPipelineDeps } from "./pipeline.js";
import { WorkerEvents } from "./report-events.js";
import { loopRenewer } from "./settle/leases.js";
import { type RunningJob, runningJob, type WorkerStatus } from "./status.js";
import { throttleErrors } from "./throttle-errors.js";

export interface WorkerDeps extends Pick<WorkerPipelineDeps, "store" | "clock" | "tasks" | "defaults" | "slots" | "jobSource"> {
  readonly bus: Bus;
  readonly options: WorkerOptions;
}

/** ms after its end in which handlers that mind their signal have ended */
const HANDLER_END_WAIT_MS = 1_000;

const STOP_KEYS: ReadonlySet<string> = new Set(["grace"]);

/** Claims jobs and runs them: how that begins and ends. What happens to a job in between is the pipeline's. Start and stop follow `Service`. */
export class Worker implements Service, AsyncDisposable {
  readonly ref: WorkerRef;
  readonly #deps: WorkerDeps;
  readonly #settings: WorkerSettings;
  readonly #lifecycle = new Lifecycle("this worker");
  readonly #pipeline: WorkerPipeline;
  readonly #events: WorkerEvents;
  readonly #announcer: Announcer;
  readonly #reportError: (step: string, error: unknown) => void;
  #renewer: Renewer | undefined;
  #state: WorkerStatus["state"] = "new";
  readonly #kill = new Signal();
  readonly #end = new Signal();
  readonly #stuck = new Signal();

  constructor(deps: WorkerDeps) {
    const { store, bus, clock, tasks, defaults, slots, jobSource, options } = deps;
    const settings = settingsOf(options, tasks);
    this.ref = { name: settings.name, instance: newInstanceId() };
    this.#deps = deps;
    this.#settings = settings;
    this.#events = new WorkerEvents(bus, this.ref.name);
    this.#reportError = throttleErrors(clock, (step, error) => this.#events.failed(step, error));
    this.#pipeline = new WorkerPipeline({
      store,
      clock,
      tasks,
      defaults,
      ...(slots === undefined ? {} : { slots }),
      ...(jobSource === undefined ? {} : { jobSource }),
      worker: this.ref,
      settings,
      events: this.#events,
      onStuck: this.#stuck.resolve,
      onSlots: () => this.#announcer.slotsChanged(this.#pipeline.runner.free === 0),
      onError: this.#reportError,
    });
    this.#announcer = new Announcer({
      workers: store.workers,
      worker: this.ref,
      clock,
      serves: { ...servesOf(settings), ...(slots === undefined ? {} : { only: slots.refs }) },
      tenantDurations: () => this.#pipeline.claimer.tenantDurations(),
      slots: () => this.#pipeline.slotUse(this.#state !== "working"),
      onError: (error) => this.#reportError("say what is served", error),
    });
  }

  start(): Promise<void> {
    return this.#lifecycle.start(
      () => {
        const renewer = this.#renewerOf();
        this.#renewer = renewer;
        this.#pipeline.start(renewer);
        this.#state = "working";
        this.#events.working();
        this.#announcer.start();
        const { claimer } = this.#pipeline;
        const claim = () => void (this.#state === "working" && claimer.start());
        if (renewer.ready === undefined) claim();
        else {
          claimer.startPolling?.();
          void renewer.ready.then(claim);
        }
      },
      () => this.#close(),
    );
  }

  /**
   * Stops claiming, gives back what has not started, and lets handlers finish until the deadline; then aborts their
   * signals and gives their jobs back at once. No attempt is spent by that.
   */
  stop(options: { readonly grace?: Duration } = {}): Promise<void> {
    checkKeys(checkObject("options", options), STOP_KEYS);
    const grace = options.grace === undefined ? this.#settings.shutdownGrace : checkDuration("grace", options.grace);
    const stopping = this.#lifecycle.stop(() => Promise.race([this.#drain(grace), this.#kill.promise]));
    void stopping.then(() => this.#end.resolve());
    return stopping;
  }

  /** Resolves when it has stopped, whoever stopped it. */
  get stopped(): Promise<void> {
    return this.#end.promise;
  }

  /** Resolves when the first of its handlers are so many that it is stuck: its process is to be replaced. */
  get stuck(): Promise<void> {
    return this.#stuck.promise;
  }

  /** Handlers that go on after it has stopped. Those that were told to a moment ago are given a moment to end. */
  async unended(): Promise<number> {
    const { overruns } = this.#pipeline.runner;
    await within(this.#deps.clock, overruns.none(), HANDLER_END_WAIT_MS);
    return overruns.count;
  }

  /** ms that it lets handlers finish, unless it is told otherwise */
  get drains(): number {
    return this.#settings.shutdownGrace;
  }

  /** Ends now: signals are aborted, jobs are given back without waiting for the store's answer. For a second signal. */
  kill(): void {
    if (this.#state === "stopped") return;
    this.#pipeline.abort();
    this.#kill.resolve();
    void this.#lifecycle.stop(() => Promise.resolve());
    void this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  status(): WorkerStatus {
    const { claimer, runner, settler, leases, capacity } = this.#pipeline;
    return {
      name: this.ref.name,
      instance: this.ref.instance,
      state: this.#state,
      concurrency: this.#settings.concurrency,
      running: runner.running.length,
      buffered: runner.unstarted,
      free: runner.free,
      overrun: runner.overruns.count,
      stuck: runner.overruns.stuck,
      settling: settler.pending,
      leases,
      lanes: claimer.lanes,
      claiming: claimer.inFlight,
      resources: capacity?.used ?? {},
    };
  }

  /** What runs now, for live views. */
  get running(): readonly RunningJob[] {
    const now = this.#deps.clock.monotonic();
    return this.#pipeline.runner.running.map((attempt) => runningJob(attempt, now));
  }

  /** The one it was given, the store's own, or a timer in this event loop. */
  #renewerOf(): Renewer {
    const { store, clock, options } = this.#deps;
    const { leaseDuration: duration, renewInterval: every } = this.#settings;
    return (
      options.renewer ??
      store.renewer?.(this.ref, { duration, every }) ??
      loopRenewer(store.leases, this.ref, clock, { duration, every, onError: (error) => this.#reportError("renew", error) })
    );
  }

  async #drain(grace: number): Promise<void> {
    this.#state = "draining";
    this.#events.stopping(this.#pipeline.runner.running.length);
    this.#announcer.draining();
    await this.#pipeline.drain(grace);
    await within(this.#deps.clock, this.#signOff(), SHUTDOWN_WAIT_MS);
    await this.#close();
  }

  /** Says that it serves nothing any more, and what it saw last. */
  async #signOff(): Promise<void> {
    await Promise.all([this.#announcer.stop(), this.#pipeline.breakers.stop()]);
  }

  async #close(): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    this.#pipeline.stop();
    void this.#signOff();
    this.#events.stopped(this.#pipeline.released, this.#pipeline.runner.overruns.count);
    await this.#renewer?.stop();
    this.#end.resolve();
  }
}
