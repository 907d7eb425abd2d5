import { DEFAULTS } from "../core/defaults.js";
import { type Duration, milliseconds } from "../core/duration.js";
import type { JobId } from "../core/id.js";
import type { Lane } from "../core/lane.js";
import type { WorkerRef } from "../core/lease.js";
import type { Outcome, Patch } from "../core/outcome.js";
import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { newBootId } from "../runtime/identity.js";
import { Lifecycle, type Service } from "../runtime/service.js";
import type { Claimed, Renewer, Store } from "../store/port.js";
import { Attempt } from "./attempt.js";
import { Claimer } from "./claimer.js";
import type { HeldLease } from "./held-lease.js";
import { Intents } from "./intents.js";
import { Journal } from "./journal.js";
import { Leases, loopRenewer } from "./leases.js";
import { type ContextHome, LiveContext } from "./live-context.js";
import { compose } from "./middleware.js";
import { type Settings, settingsOf, type WorkerOptions } from "./options.js";
import { type Plan, Plans } from "./plan.js";
import { quietly } from "./quietly.js";
import { Runner } from "./runner.js";
import { Settler } from "./settler.js";
import { Slots } from "./slots.js";
import type { AnyTask, TaskDefaults } from "./task.js";
import { Watch } from "./watch.js";

export type { WorkerOptions } from "./options.js";

export interface WorkerParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly tasks: ReadonlyMap<string, AnyTask>;
  /** per queue */
  readonly defaults: Readonly<Record<string, TaskDefaults>>;
  readonly options: WorkerOptions;
}

export interface WorkerStatus {
  readonly name: string;
  readonly boot: string;
  readonly state: "new" | "working" | "draining" | "stopped";
  readonly concurrency: number;
  /** handlers in slots */
  readonly running: number;
  /** jobs claimed and not started */
  readonly buffered: number;
  /** slots with nothing in them */
  readonly free: number;
  /** handlers that go on though their attempts are over */
  readonly overrun: number;
  /** outcomes the store has not confirmed */
  readonly settling: number;
  readonly leases: number;
  /** lanes known to have work */
  readonly lanes: number;
  readonly claiming: number;
}

export interface RunningJob {
  readonly job: JobId;
  readonly lane: Lane;
  readonly attempt: number;
  /** the store's clock */
  readonly startedAt: number;
  /** ms */
  readonly runningFor: number;
  readonly cancelled: boolean;
}

/** ms a job may lie here claimed and not started before it is given back to those who could start it */
const HOARDING = 1_000;
/** ms a stopping worker waits for claims that were under way */
const LANDING = 5_000;

/**
 * Claims jobs and runs them. The parts, in the order a job meets them: claimer (what to take), leases (how long it is
 * ours), runner (slots, timeouts), settler (what became of it). Start and stop follow `Service`.
 */
export class Worker implements Service, AsyncDisposable {
  readonly ref: WorkerRef;
  readonly #parts: WorkerParts;
  readonly #settings: Settings;
  readonly #lifecycle = new Lifecycle("this worker");
  readonly #plans: Plans;
  readonly #slots: Slots;
  readonly #runner: Runner;
  readonly #settler: Settler;
  readonly #journal: Journal;
  readonly #claimer: Claimer;
  readonly #intents: Intents;
  readonly #watch: Watch;
  readonly #complain: (step: string, error: unknown) => void;
  #leases: Leases | undefined;
  #renewer: Renewer | undefined;
  #unhear: (() => void) | undefined;
  #state: WorkerStatus["state"] = "new";
  #released = 0;
  #fencing = false;
  #intentsAskedAt = Number.NEGATIVE_INFINITY;
  readonly #kill = new Signal();
  readonly #end = new Signal();

  constructor(parts: WorkerParts) {
    const { store, bus, clock, tasks, defaults, options } = parts;
    const settings = settingsOf(options, tasks);
    const ref: WorkerRef = { name: settings.name, boot: newBootId() };
    this.ref = ref;
    this.#parts = parts;
    this.#settings = settings;
    this.#complain = quietly(clock, (step, error) => bus.emit("duty.failed", { duty: `worker: ${step}`, error }));
    this.#slots = new Slots(settings.queueSlots, settings.taskSlots);
    this.#plans = new Plans(tasks, defaults, (lane) => this.#slots.counts(lane));
    this.#journal = new Journal(store, ref, clock);
    this.#settler = new Settler({
      store,
      worker: ref,
      clock,
      fullAt: 10 * settings.claimBatch,
      onAnswer: ({ attempt, settlement }, answer) => this.#answered(attempt, settlement.patch, settlement.finishedAt - settlement.startedAt, answer),
      onGivenUp: ({ attempt, settlement }) => this.#answered(attempt, settlement.patch, 0, "stale"),
      onProgress: () => this.#runner.pump(),
      onError: (error) => this.#complain("settle", error),
    });
    const home: ContextHome = {
      store,
      worker: ref,
      clock,
      journal: this.#journal,
      committed: (attempt, patch, now) => {
        attempt.phase = "over";
        this.#answered(attempt, patch, now - attempt.startedAt, "settled");
      },
      stale: (attempt) => {
        attempt.phase = "over";
        this.#answered(attempt, { outcome: "succeeded", next: "succeeded", spent: 0, crashes: 0 }, 0, "stale");
      },
    };
    this.#runner = new Runner({
      clock,
      concurrency: settings.concurrency,
      invoke: compose(settings.middleware),
      contextOf: (attempt) => new LiveContext(attempt, home),
      isFull: () => this.#settler.full,
      onStart: (attempt) => this.#started(attempt),
      onOutcome: (attempt, outcome, now) => this.#outcome(attempt, outcome, now),
      onFreed: ({ job, plan }) => {
        if (plan.counted) this.#slots.add(job.lane, -1);
      },
      onRoom: () => this.#claimer.want(),
      onOverdue: () => this.#fence(),
    });
    this.#claimer = new Claimer({
      store,
      worker: ref,
      clock,
      settings,
      plans: this.#plans,
      slots: this.#slots,
      hands: this.#hands(),
      onClaimed: (claimed, sentAt, suspect) => this.#take(claimed, sentAt, suspect),
      onStalled: (idleFor) => bus.emit("worker.stalled", { worker: ref.name, idleFor }),
      onError: this.#complain,
    });
    this.#intents = new Intents({
      leases: store.leases,
      worker: ref,
      onIntent: (attempt, intent) => {
        if (intent !== "cancel" || attempt.cancelled) return;
        bus.emit("intent.received", { job: attempt.job.id, intent });
        this.#runner.cancel(attempt);
      },
      onError: (error) => this.#complain("ask for cancellations", error),
    });
    this.#watch = new Watch({
      clock,
      isBusy: () => (this.#leases?.size ?? 0) > 0,
      onTick: (now) => this.#tick(now),
      onBlocked: (lag) => bus.emit("attempt.blocked", { worker: ref.name, lag }),
    });
  }

  start(): Promise<void> {
    return this.#lifecycle.start(
      () => {
        const { store, bus, clock, options } = this.#parts;
        const { lease: duration, renewal: every } = this.#settings;
        this.#renewer =
          options.renewer ??
          store.renewer?.(this.ref, { duration, every }) ??
          loopRenewer(store.leases, this.ref, clock, { duration, every, onError: (error) => this.#complain("renew", error) });
        this.#leases = new Leases(this.#renewer, duration, (lease, why) => this.#lost(lease, why));
        this.#unhear = store.onHint((hint) => {
          if (hint.kind === "intent") this.#askIntents(0);
          else this.#claimer.hear(hint);
        });
        this.#state = "working";
        this.#claimer.start();
        bus.emit("worker.started", { worker: this.ref.name });
      },
      () => this.#close(),
    );
  }

  /**
   * Stops claiming, gives back what has not started, and lets handlers finish until the deadline; then aborts their
   * signals and gives their jobs back at once. No attempt is spent by that.
   */
  stop(options: { readonly timeout?: Duration } = {}): Promise<void> {
    const timeout = options.timeout === undefined ? this.#settings.drain : milliseconds(options.timeout);
    const stopping = this.#lifecycle.stop(() => Promise.race([this.#drain(timeout), this.#kill.given]));
    void stopping.then(() => this.#end.give());
    return stopping;
  }

  /** Resolves when it has stopped, whoever stopped it. */
  get stopped(): Promise<void> {
    return this.#end.given;
  }

  /** Ends now: signals are aborted, jobs are given back without waiting for the store's answer. For a second signal. */
  kill(): void {
    if (this.#state === "stopped") return;
    void this.#claimer.stop();
    this.#released += this.#runner.held;
    void this.#runner.drain();
    this.#released += this.#runner.releaseRunning();
    void this.#settler.close();
    this.#kill.give();
    void this.#lifecycle.stop(() => Promise.resolve());
    void this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  status(): WorkerStatus {
    const { concurrency } = this.#settings;
    return {
      name: this.ref.name,
      boot: this.ref.boot,
      state: this.#state,
      concurrency,
      running: this.#runner.running.length,
      buffered: this.#runner.held,
      free: this.#runner.free,
      overrun: this.#runner.overruns,
      settling: this.#settler.pending,
      leases: this.#leases?.size ?? 0,
      lanes: this.#claimer.lanes,
      claiming: this.#claimer.inFlight,
    };
  }

  /** What runs now, for live views. */
  get running(): readonly RunningJob[] {
    const now = this.#parts.clock.monotonic();
    return this.#runner.running.map((attempt) => ({
      job: attempt.job.id,
      lane: attempt.job.lane,
      attempt: attempt.number,
      startedAt: attempt.lease.storeTime(attempt.startedAt),
      runningFor: now - attempt.startedAt,
      cancelled: attempt.cancelled,
    }));
  }

  #hands() {
    const worker = this;
    return {
      get free() {
        return worker.#runner.free;
      },
      get held() {
        return worker.#runner.held;
      },
      get ahead() {
        return worker.#runner.pace.ahead(worker.#settings.concurrency);
      },
      get suspects() {
        return worker.#leases?.suspects ?? 0;
      },
    };
  }

  #take(claimed: Claimed, sentAt: number, suspect: boolean): void {
    const leases = this.#leases as Leases;
    const { bus, clock } = this.#parts;
    const now = clock.monotonic();
    const lease = leases.add(claimed, sentAt, now, suspect);
    let lane: Lane | undefined;
    let plan: Plan | undefined;
    let longest = 0;
    for (const job of claimed.jobs) {
      if (plan === undefined || lane === undefined || (job.lane !== lane && (job.lane.task !== lane.task || job.lane.queue !== lane.queue))) {
        plan = this.#plans.of(job.lane);
        lane = job.lane;
        // The store gave what it was not asked for. Its lease runs out, and the job goes to somebody who knows it.
        if (plan === undefined) continue;
      }
      if (plan.counted) this.#slots.add(job.lane, 1);
      const timeout = job.options?.timeout ?? plan.timeout;
      if (timeout > longest) longest = timeout;
      lease.attempts.push(new Attempt(job, plan, lease));
    }
    lease.open = lease.attempts.length;
    if (lease.open === 0) {
      leases.forget(lease);
      return;
    }
    // Held jobs start a little later than now; one that starts later than this bound moves it when it does.
    leases.hold(lease, now + longest + this.#settings.lease);
    this.#runner.watch(lease.fenceAt);
    this.#watch.arm();
    if (bus.hears("jobs.claimed")) bus.emit("jobs.claimed", { worker: this.ref.name, lease: lease.id, count: claimed.jobs.length });
    this.#runner.add(lease.attempts, suspect || lease.attempts[0]?.atMostOnce === true);
  }

  #started(attempt: Attempt): void {
    const { bus } = this.#parts;
    const { lease } = attempt;
    if (attempt.endBy > lease.latest) this.#leases?.hold(lease, attempt.endBy + this.#settings.lease);
    if (!bus.hears("attempt.started")) return;
    bus.emit("attempt.started", { job: attempt.job.id, lane: attempt.job.lane, attempt: attempt.number, worker: this.ref.name });
  }

  #outcome(attempt: Attempt, outcome: Outcome, now: number): void {
    const patch = attempt.decide(outcome, now, this.#parts.clock.random);
    // What it said goes first: its lines are stored under the lease that this settlement ends.
    const said = this.#journal.close(attempt);
    if (said === undefined) this.#settler.add(attempt, patch, now);
    else void said.then(() => this.#settler.add(attempt, patch, now));
  }

  #answered(attempt: Attempt, patch: Patch, duration: number, answer: "settled" | "stale"): void {
    const { bus } = this.#parts;
    this.#leases?.closed(attempt.lease);
    const { job } = attempt;
    if (answer === "stale") {
      bus.emit("attempt.stale", { job: job.id, worker: this.ref.name, outcome: patch.outcome });
      return;
    }
    if (!bus.hears("attempt.settled")) return;
    bus.emit("attempt.settled", {
      job: job.id,
      lane: job.lane,
      attempt: attempt.number,
      worker: this.ref.name,
      outcome: patch.outcome,
      next: patch.next,
      duration,
      ...(patch.failure === undefined ? {} : { failure: patch.failure }),
      ...(patch.delay === undefined ? {} : { delay: patch.delay }),
    });
  }

  /**
   * Lets go of leases that were not renewed. Two turns late on purpose: after a blocked event loop, timers come before
   * the messages of a renewer in another thread, which may have renewed them all the while.
   */
  #fence(): void {
    if (this.#fencing) return;
    this.#fencing = true;
    const { clock } = this.#parts;
    clock.soon(() =>
      clock.soon(() => {
        this.#fencing = false;
        if (this.#leases === undefined || this.#state === "stopped") return;
        this.#runner.watch(this.#leases.fence(clock.monotonic()));
        this.#runner.pump();
      }),
    );
  }

  #lost(lease: HeldLease, why: string): void {
    const jobs = this.#runner.abandon(lease);
    this.#parts.bus.emit("lease.lost", { worker: this.ref.name, lease: lease.id, jobs, why });
  }

  #tick(now: number): void {
    const every = DEFAULTS.worker.intentPoll * (this.#parts.store.hearsOthers() ? 2 : 1);
    if (now - this.#intentsAskedAt >= every - 1) this.#askIntents(every);
    this.#giveBackHoard(now);
  }

  #askIntents(runningFor: number): void {
    this.#intents.ask(() => {
      const now = this.#parts.clock.monotonic();
      this.#intentsAskedAt = now;
      const since = now - runningFor;
      const leases = new Set<HeldLease>();
      for (const { lease, startedAt, cancelled } of this.#runner.running) if (startedAt <= since && !cancelled) leases.add(lease);
      return [...leases];
    });
  }

  /** Handlers became slower than the claims were sized for: others may be able to start what waits here. */
  #giveBackHoard(now: number): void {
    if (this.#runner.held === 0 || this.#runner.free > 0) return;
    for (const lease of this.#leases?.all() ?? []) {
      if (now - lease.sentAt < HOARDING || !lease.attempts.some(({ phase }) => phase === "held")) continue;
      this.#runner.releaseHeld();
      return;
    }
  }

  async #drain(timeout: number): Promise<void> {
    const { bus, clock } = this.#parts;
    this.#state = "draining";
    bus.emit("worker.stopping", { worker: this.ref.name, running: this.#runner.running.length });
    const landed = this.#claimer.stop();
    this.#released += this.#runner.held;
    await within(clock, this.#runner.drain(), timeout);
    this.#released += this.#runner.releaseRunning();
    await within(clock, landed, LANDING);
    await this.#journal.flush();
    await this.#settler.close();
    await this.#close();
  }

  async #close(): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    this.#unhear?.();
    this.#runner.stop();
    this.#watch.stop();
    this.#journal.stop();
    this.#parts.bus.emit("worker.stopped", { worker: this.ref.name, released: this.#released });
    await this.#renewer?.stop();
    this.#end.give();
  }
}

/** Something that happens once. */
class Signal {
  give: () => void = () => {};
  readonly given = new Promise<void>((resolve) => {
    this.give = resolve;
  });
}

async function within(clock: Clock, done: Promise<void>, ms: number): Promise<void> {
  let cancel: (() => void) | undefined;
  await Promise.race([done, new Promise<void>((resolve) => (cancel = clock.after(ms, resolve)))]);
  cancel?.();
}
