import { DEFAULTS } from "../core/defaults.js";
import type { Duration } from "../core/duration.js";
import type { WorkerRef } from "../core/lease.js";
import { checkDuration, checkKeys, checkObject } from "../core/option.js";
import type { Outcome, Patch } from "../core/outcome.js";
import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { newBootId } from "../runtime/identity.js";
import { Lifecycle, type Service } from "../runtime/service.js";
import { Signal, within } from "../runtime/wait.js";
import type { Claimed, Renewer, Settled, Store } from "../store/port.js";
import type { Attempt } from "./attempt.js";
import { Breakers, breakerRules } from "./breakers.js";
import { type Capacity, capacityOf } from "./capacity.js";
import { ClaimRest } from "./claim-rest.js";
import { Claimer, type ClaimerParts, type Claims } from "./claimer.js";
import type { HeldLease } from "./held-lease.js";
import { intake } from "./intake.js";
import { Intents } from "./intents.js";
import { Journal } from "./journal.js";
import { Leases, loopRenewer } from "./leases.js";
import { type ContextHome, LiveContext } from "./live-context.js";
import { compose } from "./middleware.js";
import { type Settings, settingsOf, type WorkerOptions } from "./options.js";
import { Plans } from "./plan.js";
import { quietly } from "./quietly.js";
import { Reports } from "./reports.js";
import { Reservations } from "./reservations.js";
import { Runner } from "./runner.js";
import { Serving, servesOf } from "./serving.js";
import { Settler } from "./settler.js";
import { Slots } from "./slots.js";
import { type RunningJob, runningJob, type WorkerStatus } from "./status.js";
import type { AnyTask, TaskDefaults } from "./task.js";
import { Watch } from "./watch.js";

export type { WorkerOptions } from "./options.js";
export type { RunningJob, WorkerStatus } from "./status.js";

export interface WorkerParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly tasks: ReadonlyMap<string, AnyTask>;
  /** per queue */
  readonly defaults: Readonly<Record<string, TaskDefaults>>;
  readonly options: WorkerOptions;
  /** what brings it jobs, in place of claims out of the store's lanes */
  readonly claims?: (parts: ClaimerParts) => Claims;
}

const STOP_KEYS: ReadonlySet<string> = new Set(["timeout"]);
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
  readonly #runner: Runner;
  readonly #settler: Settler;
  readonly #journal: Journal;
  readonly #claimer: Claims;
  readonly #rest: ClaimRest;
  readonly #intents: Intents;
  readonly #watch: Watch;
  readonly #reports: Reports;
  readonly #capacity: Capacity | undefined;
  readonly #breakers: Breakers;
  readonly #serving: Serving;
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
    this.#reports = new Reports(bus, ref.name);
    this.#complain = quietly(clock, (step, error) => this.#reports.failed(step, error));
    this.#plans = new Plans(tasks, defaults);
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
        if (patch.outcome === "succeeded") this.#breakers.note(attempt, { kind: "succeeded" }, now);
        this.#answered(attempt, patch, now - attempt.startedAt, "settled");
      },
      stale: (attempt, patch) => {
        attempt.phase = "over";
        this.#answered(attempt, patch, 0, "stale");
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
      onFreed: (attempt, now, ran) => {
        const { job, plan, share, startedAt } = attempt;
        const { caps } = this.#claimer.offers;
        plan.pace.inHand--;
        share.take(-1);
        if (ran) share.end(startedAt, now);
        else caps.ended(job.lane);
        caps.freed(job.lane);
        this.#breakers.over(attempt);
      },
      onEnded: ({ job }) => this.#claimer.offers.caps.ended(job.lane),
      isBarred: (attempt) => this.#breakers.bars(attempt),
      onRoom: () => this.#claimer.want(),
      onOverdue: () => this.#fence(),
    });
    this.#capacity = capacityOf(settings, tasks, clock);
    this.#breakers = new Breakers({
      store: store.breakers,
      clock,
      rules: breakerRules(settings.tasks, tasks),
      onRoom: () => this.#claimer.want(),
      onChange: (breaker, state) => this.#reports.breaker(breaker, state),
      onError: (error) => this.#complain("look after breakers", error),
    });
    this.#serving = new Serving({
      workers: store.workers,
      worker: ref,
      clock,
      serves: servesOf(settings),
      onError: (error) => this.#complain("say what is served", error),
    });
    this.#rest = new ClaimRest(clock, () => this.#claimer.want());
    const claimerParts: ClaimerParts = {
      store,
      worker: ref,
      clock,
      settings,
      plans: this.#plans,
      caps: [
        ...(settings.queueSlots.size + settings.taskSlots.size === 0 ? [] : [new Slots(settings.queueSlots, settings.taskSlots)]),
        ...(settings.reserve.length === 0 ? [] : [new Reservations(settings.concurrency, settings.reserve)]),
        ...(this.#capacity === undefined ? [] : [this.#capacity]),
        this.#breakers,
      ],
      hands: this.#hands(),
      onClaimed: (claimed, sentAt, suspect) => this.#take(claimed, sentAt, suspect),
      onStalled: (idleFor) => this.#reports.stalled(idleFor),
      onError: this.#complain,
    };
    this.#claimer = parts.claims?.(claimerParts) ?? new Claimer(claimerParts);
    this.#intents = new Intents({
      leases: store.leases,
      worker: ref,
      onIntent: (attempt, intent) => {
        if (intent !== "cancel" || attempt.cancelled) return;
        this.#reports.cancelled(attempt);
        this.#runner.cancel(attempt);
      },
      onError: (error) => this.#complain("ask for cancellations", error),
    });
    this.#watch = new Watch({
      clock,
      isBusy: () => (this.#leases?.size ?? 0) > 0,
      onTick: (now) => this.#tick(now),
      onBlocked: (lag) => this.#reports.blocked(lag),
    });
  }

  start(): Promise<void> {
    return this.#lifecycle.start(
      () => {
        const { store, clock, options } = this.#parts;
        const { lease: duration, renewal: every } = this.#settings;
        this.#renewer =
          options.renewer ??
          store.renewer?.(this.ref, { duration, every }) ??
          loopRenewer(store.leases, this.ref, clock, { duration, every, onError: (error) => this.#complain("renew", error) });
        this.#renewer.onTrouble?.((error) => this.#complain("renew", error));
        this.#leases = new Leases(
          this.#renewer,
          duration,
          (lease, why, told) => this.#lost(lease, why, told),
          () => this.#rest.renewed(),
        );
        this.#unhear = store.onHint((hint) => {
          if (hint.kind === "intent") this.#askIntents(0);
          else this.#claimer.hear(hint);
          if (hint.kind === "lanes") this.#breakers.hear();
        });
        this.#state = "working";
        this.#reports.working();
        this.#serving.start();
        this.#breakers.start();
        const claim = () => void (this.#state === "working" && this.#claimer.start());
        if (this.#renewer.ready === undefined) claim();
        else void this.#renewer.ready.then(claim);
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
      amounts: this.#capacity?.used ?? {},
    };
  }

  /** What runs now, for live views. */
  get running(): readonly RunningJob[] {
    const now = this.#parts.clock.monotonic();
    return this.#runner.running.map((attempt) => runningJob(attempt, now));
  }

  #hands() {
    const worker = this;
    return {
      get free() {
        return worker.#rest.resting ? 0 : worker.#runner.free;
      },
      get held() {
        return worker.#runner.held;
      },
      get ahead() {
        return worker.#rest.resting ? 0 : worker.#runner.pace.ahead(worker.#settings.concurrency);
      },
      get suspects() {
        return worker.#leases?.suspects ?? 0;
      },
    };
  }

  #take(claimed: Claimed, sentAt: number, suspect: boolean): void {
    const leases = this.#leases as Leases;
    const now = this.#parts.clock.monotonic();
    const lease = leases.add(claimed, sentAt, now, suspect);
    const { offers } = this.#claimer;
    const longest = intake(claimed.jobs, lease, this.#plans, offers.caps, (lane) => offers.shareOf(lane));
    this.#breakers.mark(lease.attempts, sentAt);
    if (lease.open === 0) {
      leases.forget(lease);
      return;
    }
    // Held jobs start a little later than now; one that starts later than this bound moves it when it does.
    leases.hold(lease, now + longest + this.#settings.lease);
    this.#runner.watch(lease.fenceAt);
    this.#watch.arm();
    this.#reports.claimed(lease);
    this.#runner.add(lease.attempts, suspect);
  }

  #started(attempt: Attempt): void {
    const { lease, endBy, share, startedAt } = attempt;
    share.begin(startedAt);
    if (endBy > lease.latest) this.#leases?.hold(lease, endBy + this.#settings.lease);
    this.#reports.started(attempt);
  }

  #outcome(attempt: Attempt, outcome: Outcome, now: number): void {
    const patch = attempt.decide(outcome, now, this.#parts.clock.random);
    this.#breakers.note(attempt, outcome, now);
    // What it said goes first: its lines are stored under the lease that this settlement ends.
    const said = this.#journal.close(attempt);
    if (said === undefined) this.#settler.add(attempt, patch, now);
    else void said.then(() => this.#settler.add(attempt, patch, now));
  }

  #answered(attempt: Attempt, patch: Patch, duration: number, answer: Settled): void {
    this.#leases?.closed(attempt.lease);
    this.#claimer.settled(attempt.job.lane);
    if (answer === "stale") this.#reports.stale(attempt, patch.outcome);
    else this.#reports.settled(attempt, patch, duration);
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

  #lost(lease: HeldLease, why: string, told: boolean): void {
    if (!told) this.#rest.lost(lease);
    this.#reports.lost(lease, this.#runner.abandon(lease, !told), why);
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
      this.#runner.slowDown(now);
      this.#runner.releaseHeld();
      return;
    }
  }

  async #drain(timeout: number): Promise<void> {
    const { clock } = this.#parts;
    this.#state = "draining";
    this.#reports.stopping(this.#runner.running.length);
    const landed = this.#claimer.stop();
    this.#released += this.#runner.held;
    await within(clock, this.#runner.drain(), timeout);
    this.#released += this.#runner.releaseRunning();
    await within(clock, landed, LANDING);
    await within(clock, this.#journal.flush(), LANDING);
    // A call that never answers must not keep it for ever: by then its leases have run out.
    await within(clock, this.#settler.close(), this.#settings.lease);
    await within(clock, this.#signOff(), LANDING);
    await this.#close();
  }

  /** Says that it serves nothing any more, and what it saw last. */
  async #signOff(): Promise<void> {
    await Promise.all([this.#serving.stop(), this.#breakers.stop()]);
  }

  async #close(): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    this.#unhear?.();
    this.#runner.stop();
    this.#rest.stop();
    this.#watch.stop();
    void this.#signOff();
    this.#journal.stop();
    this.#reports.stopped(this.#released);
    await this.#renewer?.stop();
    this.#end.give();
  }
}
