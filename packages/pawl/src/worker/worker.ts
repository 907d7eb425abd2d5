import type { Duration } from "../core/duration.js";
import type { WorkerRef } from "../core/lease.js";
import { checkDuration, checkKeys, checkObject } from "../core/option.js";
import type { Bus } from "../runtime/bus.js";
import { newBootId } from "../runtime/identity.js";
import { Lifecycle, type Service } from "../runtime/service.js";
import { Signal, within } from "../runtime/wait.js";
import type { Renewer } from "../store/port-leases.js";
import { Conveyor, type ConveyorParts, LANDING } from "./conveyor.js";
import { loopRenewer } from "./leases.js";
import { type Settings, settingsOf, type WorkerOptions } from "./options.js";
import { quietly } from "./quietly.js";
import { Reports } from "./reports.js";
import { Serving, servesOf } from "./serving.js";
import { type RunningJob, runningJob, type WorkerStatus } from "./status.js";

export interface WorkerParts extends Pick<ConveyorParts, "store" | "clock" | "tasks" | "defaults" | "slots" | "claims"> {
  readonly bus: Bus;
  readonly options: WorkerOptions;
}

/** ms after its end in which handlers that mind their signal have ended */
const LAST_MOMENT = 1_000;

const STOP_KEYS: ReadonlySet<string> = new Set(["timeout"]);

/** Claims jobs and runs them: how that begins and ends. What happens to a job in between is the conveyor's. Start and stop follow `Service`. */
export class Worker implements Service, AsyncDisposable {
  readonly ref: WorkerRef;
  readonly #parts: WorkerParts;
  readonly #settings: Settings;
  readonly #lifecycle = new Lifecycle("this worker");
  readonly #conveyor: Conveyor;
  readonly #reports: Reports;
  readonly #serving: Serving;
  readonly #complain: (step: string, error: unknown) => void;
  #renewer: Renewer | undefined;
  #state: WorkerStatus["state"] = "new";
  readonly #kill = new Signal();
  readonly #end = new Signal();
  readonly #stuck = new Signal();

  constructor(parts: WorkerParts) {
    const { store, bus, clock, tasks, defaults, slots, claims, options } = parts;
    const settings = settingsOf(options, tasks);
    this.ref = { name: settings.name, boot: newBootId() };
    this.#parts = parts;
    this.#settings = settings;
    this.#reports = new Reports(bus, this.ref.name);
    this.#complain = quietly(clock, (step, error) => this.#reports.failed(step, error));
    this.#conveyor = new Conveyor({
      store,
      clock,
      tasks,
      defaults,
      ...(slots === undefined ? {} : { slots }),
      ...(claims === undefined ? {} : { claims }),
      worker: this.ref,
      settings,
      reports: this.#reports,
      onStuck: this.#stuck.give,
      onSlots: () => this.#serving.slotsChanged(this.#conveyor.runner.free === 0),
      onError: this.#complain,
    });
    this.#serving = new Serving({
      workers: store.workers,
      worker: this.ref,
      clock,
      serves: { ...servesOf(settings), ...(slots === undefined ? {} : { only: slots.refs }) },
      took: () => this.#conveyor.claimer.offers.took(),
      slots: () => this.#conveyor.slotUse(this.#state !== "working"),
      onError: (error) => this.#complain("say what is served", error),
    });
  }

  start(): Promise<void> {
    return this.#lifecycle.start(
      () => {
        const renewer = this.#renewerOf();
        this.#renewer = renewer;
        this.#conveyor.start(renewer);
        this.#state = "working";
        this.#reports.working();
        this.#serving.start();
        const { claimer } = this.#conveyor;
        const claim = () => void (this.#state === "working" && claimer.start());
        if (renewer.ready === undefined) claim();
        else {
          claimer.look?.();
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
  stop(options: { readonly timeout?: Duration } = {}): Promise<void> {
    checkKeys(checkObject("options", options), STOP_KEYS);
    const timeout = options.timeout === undefined ? this.#settings.drain : checkDuration("timeout", options.timeout);
    const stopping = this.#lifecycle.stop(() => Promise.race([this.#drain(timeout), this.#kill.given]));
    void stopping.then(() => this.#end.give());
    return stopping;
  }

  /** Resolves when it has stopped, whoever stopped it. */
  get stopped(): Promise<void> {
    return this.#end.given;
  }

  /** Resolves when the first of its handlers are so many that it is stuck: its process is to be replaced. */
  get stuck(): Promise<void> {
    return this.#stuck.given;
  }

  /** Handlers that go on after it has stopped. Those that were told to a moment ago are given a moment to end. */
  async unended(): Promise<number> {
    const { overruns } = this.#conveyor.runner;
    await within(this.#parts.clock, overruns.none(), LAST_MOMENT);
    return overruns.count;
  }

  /** ms that it lets handlers finish, unless it is told otherwise */
  get drains(): number {
    return this.#settings.drain;
  }

  /** Ends now: signals are aborted, jobs are given back without waiting for the store's answer. For a second signal. */
  kill(): void {
    if (this.#state === "stopped") return;
    this.#conveyor.abort();
    this.#kill.give();
    void this.#lifecycle.stop(() => Promise.resolve());
    void this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  status(): WorkerStatus {
    const { claimer, runner, settler, leases, capacity } = this.#conveyor;
    return {
      name: this.ref.name,
      boot: this.ref.boot,
      state: this.#state,
      concurrency: this.#settings.concurrency,
      running: runner.running.length,
      buffered: runner.held,
      free: runner.free,
      overrun: runner.overruns.count,
      stuck: runner.overruns.stuck,
      settling: settler.pending,
      leases,
      lanes: claimer.lanes,
      claiming: claimer.inFlight,
      amounts: capacity?.used ?? {},
    };
  }

  /** What runs now, for live views. */
  get running(): readonly RunningJob[] {
    const now = this.#parts.clock.monotonic();
    return this.#conveyor.runner.running.map((attempt) => runningJob(attempt, now));
  }

  /** The one it was given, the store's own, or a timer in this event loop. */
  #renewerOf(): Renewer {
    const { store, clock, options } = this.#parts;
    const { lease: duration, renewal: every } = this.#settings;
    return (
      options.renewer ??
      store.renewer?.(this.ref, { duration, every }) ??
      loopRenewer(store.leases, this.ref, clock, { duration, every, onError: (error) => this.#complain("renew", error) })
    );
  }

  async #drain(timeout: number): Promise<void> {
    this.#state = "draining";
    this.#reports.stopping(this.#conveyor.runner.running.length);
    this.#serving.draining();
    await this.#conveyor.drain(timeout);
    await within(this.#parts.clock, this.#signOff(), LANDING);
    await this.#close();
  }

  /** Says that it serves nothing any more, and what it saw last. */
  async #signOff(): Promise<void> {
    await Promise.all([this.#serving.stop(), this.#conveyor.breakers.stop()]);
  }

  async #close(): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    this.#conveyor.stop();
    void this.#signOff();
    this.#reports.stopped(this.#conveyor.released, this.#conveyor.runner.overruns.count);
    await this.#renewer?.stop();
    this.#end.give();
  }
}
