import type { WorkerRef } from "../core/jobs/lease.js";
import type { Outcome, Patch } from "../core/jobs/outcome.js";
import type { AnyTask, JobDefaults } from "../core/jobs/task.js";
import type { SlotUse } from "../core/limits/slot-use.js";
import { DEFAULTS } from "../core/values/defaults.js";
import type { Clock } from "../runtime/time/clock.js";
import { within } from "../runtime/time/wait.js";
import type { Store } from "../store/port/index.js";
import type { Claimed, Renewer, Settled } from "../store/port/settle/leases.js";
import { Breakers, breakerRules } from "./breakers/breakers.js";
import { ClaimBackoff } from "./claim/backoff-after-loss.js";
import { type Capacity, capacityOf } from "./claim/capacity.js";
import { Claimer, type ClaimerDeps, type ClaimerLoad, type JobSource } from "./claim/claimer.js";
import type { LaneSlots } from "./claim/lane-slots.js";
import { Reservations } from "./claim/reservations.js";
import { SlotLimits } from "./claim/slot-limits.js";
import { slotUseOf } from "./claim/slot-use.js";
import type { WorkerLimit } from "./claim/worker-limits.js";
import type { WorkerSettings } from "./options.js";
import type { WorkerEvents } from "./report-events.js";
import type { Attempt } from "./run/attempt.js";
import { IntentPoller } from "./run/intent-poller.js";
import { type ContextDeps, LiveContext } from "./run/live-context.js";
import { LogWriter } from "./run/log-writer.js";
import { LoopLagMonitor } from "./run/loop-lag.js";
import { compose } from "./run/middleware.js";
import { Outages } from "./run/outage.js";
import { returnUnstarted } from "./run/return-unstarted.js";
import { Runner } from "./run/runner.js";
import { TaskPlans } from "./run/task-plan.js";
import type { HeldLease } from "./settle/held-lease.js";
import { Leases } from "./settle/leases.js";
import { openAttempts } from "./settle/open-attempts.js";
import { Settler } from "./settle/settler.js";

export interface WorkerPipelineDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly tasks: ReadonlyMap<string, AnyTask>;
  /** per queue */
  readonly defaults: Readonly<Record<string, JobDefaults>>;
  /** of one that serves some tasks of some tenants alone */
  readonly slots?: LaneSlots;
  /** what brings it jobs, in place of claims out of the store's lanes */
  readonly jobSource?: (deps: ClaimerDeps) => JobSource;
  readonly worker: WorkerRef;
  readonly settings: WorkerSettings;
  readonly events: WorkerEvents;
  /** a slot was taken, or is free again */
  readonly onSlots: () => void;
  /** so many handlers are lost that its process is to be replaced */
  readonly onStuck: () => void;
  readonly onError: (step: string, error: unknown) => void;
}

/** ms it waits at its end for what was under way */
export const SHUTDOWN_WAIT_MS = 5_000;

/**
 * Passes jobs from one part of a worker to the next, in the order they meet them: claimer (what to take), leases (how
 * long it is ours), runner (slots, timeouts), settler (what became of it).
 */
export class WorkerPipeline {
  readonly claimer: JobSource;
  readonly runner: Runner;
  readonly settler: Settler;
  readonly breakers: Breakers;
  readonly capacity: Capacity | undefined;
  readonly #deps: WorkerPipelineDeps;
  readonly #plans: TaskPlans;
  readonly #logWriter: LogWriter;
  readonly #claimBackoff: ClaimBackoff;
  readonly #intents: IntentPoller;
  readonly #lagMonitor: LoopLagMonitor;
  #leases: Leases | undefined;
  #unsubscribe: (() => void) | undefined;
  #fencing = false;
  #stopped = false;
  #released = 0;

  constructor(deps: WorkerPipelineDeps) {
    const { store, clock, tasks, defaults, settings, worker, events, onError } = deps;
    this.#deps = deps;
    this.#plans = new TaskPlans(tasks, defaults);
    this.#logWriter = new LogWriter({
      store,
      worker,
      clock,
      onError: (error) => onError("store log lines and progress", error),
      onLost: (lines, error) => events.linesLost(lines, error),
    });
    this.settler = new Settler({
      store,
      worker,
      clock,
      fullAt: 10 * settings.maxJobsPerClaim,
      onAnswer: ({ attempt, settlement }, answer) => this.#onSettled(attempt, settlement.patch, settlement.finishedAt - settlement.startedAt, answer),
      onGivenUp: ({ attempt, settlement }) => this.#onSettled(attempt, settlement.patch, 0, "stale"),
      onProgress: () => this.runner.startNext(),
      onError: (error) => onError("settle", error),
    });
    const outagesOf = (attempt: Attempt) => {
      attempt.outages ??= new Outages(store.engine.place);
      return attempt.outages;
    };
    const contextDeps = { ...this.#contextDeps(), outagesOf };
    this.runner = new Runner({
      clock,
      concurrency: settings.concurrency,
      mostLost: settings.mostLost,
      invoke: compose(settings.middleware),
      contextOf: (attempt) => new LiveContext(attempt, contextDeps),
      outagesOf,
      isFull: () => this.settler.full,
      onStart: (attempt) => this.#onStarted(attempt),
      onOutcome: (attempt, outcome, now) => this.#handleOutcome(attempt, outcome, now),
      onFreed: (attempt, now, ran) => this.#onFreed(attempt, now, ran),
      onEnded: ({ job }) => this.claimer.limits.removeJobs(job.lane),
      isBlocked: (attempt) => this.breakers.blocks(attempt),
      onRoom: () => {
        this.claimer.claimIfUseful();
        this.#deps.onSlots();
      },
      onStuck: (stuck) => {
        if (!stuck) return events.unstuck();
        events.stuck(this.runner.overruns.count, settings.concurrency);
        deps.onStuck();
      },
      onOverdue: () => this.#fence(),
    });
    this.capacity = capacityOf(settings, tasks, clock);
    this.breakers = new Breakers({
      store: store.breakers,
      clock,
      rules: breakerRules(settings.tasks, tasks),
      onRoom: () => this.claimer.claimIfUseful(),
      onChange: (breaker, state) => events.breaker(breaker, state),
      onError: (error) => onError("look after breakers", error),
    });
    this.#claimBackoff = new ClaimBackoff(clock, () => this.claimer.claimIfUseful());
    const claimerParts: ClaimerDeps = {
      store,
      worker,
      clock,
      settings,
      plans: this.#plans,
      limits: this.#limits(),
      load: this.#load(),
      ...(this.#isPlain() ? { takesAny: () => this.breakers.areClosed } : {}),
      onClaimed: (claimed, sentAt, suspect) => this.#addClaimed(claimed, sentAt, suspect),
      onStalled: (idleFor) => events.stalled(idleFor),
      onError,
    };
    this.claimer = deps.jobSource?.(claimerParts) ?? new Claimer(claimerParts);
    this.#intents = new IntentPoller({
      leases: store.leases,
      worker,
      clock,
      running: () => this.runner.running,
      onIntent: (attempt, intent) => {
        if (intent !== "cancel" || attempt.cancelled) return;
        events.cancelled(attempt);
        this.runner.cancel(attempt);
      },
      onError: (error) => onError("ask for cancellations", error),
    });
    this.#lagMonitor = new LoopLagMonitor({
      clock,
      isBusy: () => this.leases > 0,
      onTick: (now) => this.#tick(now),
      onBlocked: (lag) => events.blocked(lag),
    });
  }

  /** What it says of its slots to the others. */
  slotUse(draining: boolean): SlotUse {
    const { clock, settings } = this.#deps;
    const { free, running, overruns } = this.runner;
    return slotUseOf(
      { total: settings.concurrency, free, draining, running, overruns, plans: this.#plans, shut: this.claimer.fullLanes() },
      clock.monotonic(),
    );
  }

  get leases(): number {
    return this.#leases?.size ?? 0;
  }

  /** jobs that were given back because it ends */
  get released(): number {
    return this.#released;
  }

  /** Hears what happens, and can hold leases. It claims once its claimer is started. */
  start(renewer: Renewer): void {
    const { store, settings, onError } = this.#deps;
    renewer.onTrouble?.((error) => onError("renew", error));
    this.#leases = new Leases(
      renewer,
      settings.leaseDuration,
      (lease, why, byStore) => this.#onLeaseLost(lease, why, byStore),
      () => this.#claimBackoff.leaseRenewed(),
    );
    this.#unsubscribe = store.onWakeup((wakeup) => {
      if (wakeup.kind === "intent") this.#intents.check(0);
      else this.claimer.handleWakeup(wakeup);
      if (wakeup.kind === "lanes") this.breakers.handleChange();
    });
    this.breakers.start();
  }

  /** Takes nothing more and gives back what has not started; after `grace` also what runs. Answers when all is settled. */
  async drain(grace: number): Promise<void> {
    const { clock, settings } = this.#deps;
    const claimsDone = this.claimer.stop();
    this.#released += this.runner.unstarted;
    await within(clock, this.runner.drain(), grace);
    this.#released += this.runner.releaseRunning();
    await within(clock, claimsDone, SHUTDOWN_WAIT_MS);
    await within(clock, this.#logWriter.flush(), SHUTDOWN_WAIT_MS);
    // A call that never answers must not keep it for ever: by then its leases have run out.
    await within(clock, this.settler.close(), settings.leaseDuration);
  }

  /** The same at once: settlements are sent and not waited for. */
  abort(): void {
    void this.claimer.stop();
    this.#released += this.runner.unstarted;
    void this.runner.drain();
    this.#released += this.runner.releaseRunning();
    void this.settler.close();
  }

  /** No timer and no listener is left. */
  stop(): void {
    this.#stopped = true;
    this.#unsubscribe?.();
    this.runner.stop();
    this.#claimBackoff.stop();
    this.#lagMonitor.stop();
    this.#logWriter.stop();
  }

  /** Where contexts are at home: what they settle themselves, in a transaction, is told here. */
  #contextDeps(): Omit<ContextDeps, "outagesOf"> {
    const { store, worker, clock } = this.#deps;
    return {
      store,
      worker,
      clock,
      logWriter: this.#logWriter,
      committed: (attempt, patch, now) => {
        attempt.phase = "over";
        if (patch.outcome === "succeeded") this.breakers.recordOutcome(attempt, { kind: "succeeded" }, now);
        this.#onSettled(attempt, patch, now - attempt.startedAt, "settled");
      },
      stale: (attempt, patch) => {
        attempt.phase = "over";
        this.#onSettled(attempt, patch, 0, "stale");
      },
    };
  }

  #limits(): readonly WorkerLimit[] {
    const { slots, settings } = this.#deps;
    const { queueSlots, taskSlots, reserve, concurrency } = settings;
    return [
      ...(slots === undefined ? [] : [slots]),
      ...(queueSlots.size + taskSlots.size === 0 ? [] : [new SlotLimits(queueSlots, taskSlots)]),
      ...(reserve.length === 0 ? [] : [new Reservations(concurrency, reserve)]),
      ...(this.capacity === undefined ? [] : [this.capacity]),
      this.breakers,
    ];
  }

  /** Whether its slots are all that bounds what it takes of tasks that need nothing, besides breakers. */
  #isPlain(): boolean {
    return this.#limits().every((limit) => limit === this.breakers || limit === this.capacity);
  }

  #load(): ClaimerLoad {
    const pipeline = this;
    return {
      get free() {
        return pipeline.#claimBackoff.active ? 0 : pipeline.runner.free;
      },
      get unstarted() {
        return pipeline.runner.unstarted;
      },
      get ahead() {
        return pipeline.#claimBackoff.active ? 0 : pipeline.runner.estimate.ahead(pipeline.runner.slots);
      },
      get suspects() {
        return pipeline.#leases?.suspects ?? 0;
      },
    };
  }

  #addClaimed(claimed: Claimed, sentAt: number, suspect: boolean): void {
    const { clock, settings, events } = this.#deps;
    const leases = this.#leases as Leases;
    const now = clock.monotonic();
    const lease = leases.add(claimed, sentAt, now, suspect);
    const { claimer } = this;
    const longest = openAttempts(claimed.jobs, lease, this.#plans, claimer.limits, (lane) => claimer.shareOf(lane));
    this.breakers.markProbes(lease.attempts, sentAt);
    if (lease.unsettled === 0) {
      leases.forget(lease);
      return;
    }
    // Held jobs start a little later than now; one that starts later than this bound moves it when it does.
    leases.hold(lease, now + longest + settings.leaseDuration);
    this.runner.checkAt(lease.fenceAt);
    this.#lagMonitor.arm();
    events.claimed(lease);
    this.runner.add(lease.attempts, suspect);
  }

  #onStarted(attempt: Attempt): void {
    const { lease, endBy, share, startedAt } = attempt;
    const { settings, events } = this.#deps;
    share.begin(startedAt);
    if (endBy > lease.latest) this.#leases?.hold(lease, endBy + settings.leaseDuration);
    events.started(attempt);
  }

  #handleOutcome(attempt: Attempt, outcome: Outcome, now: number): void {
    const patch = attempt.decide(outcome, now, this.#deps.clock.random);
    this.breakers.recordOutcome(attempt, outcome, now);
    if (patch.retryFault !== undefined) this.#retryFailed(attempt, patch.retryFault);
    // What it said goes first: its lines are stored under the lease that this settlement ends.
    const logClosed = this.#logWriter.close(attempt);
    if (logClosed === undefined) this.settler.add(attempt, patch, now);
    else void logClosed.then(() => this.settler.add(attempt, patch, now));
  }

  /** The job goes on by another policy than its task's: its log says why, since its history cannot. */
  #retryFailed(attempt: Attempt, why: string): void {
    this.#logWriter.addOwnLine(attempt, "error", `the retry function of its task failed, and the default policy decided: ${why}`);
    this.#deps.events.retryFailed(attempt, why);
  }

  #onFreed(attempt: Attempt, now: number, ran: boolean): void {
    const { job, plan, share, startedAt } = attempt;
    const { limits } = this.claimer;
    plan.estimate.outstandingJobs--;
    share.take(-1);
    if (ran) share.end(startedAt, now);
    else limits.removeJobs(job.lane);
    this.breakers.release(attempt);
  }

  #onSettled(attempt: Attempt, patch: Patch, duration: number, answer: Settled): void {
    const { events } = this.#deps;
    this.#leases?.jobSettled(attempt.lease);
    if (attempt.log !== undefined) attempt.log.settled = true;
    this.claimer.jobSettled(attempt.job.lane);
    if (answer === "stale") events.stale(attempt, patch.outcome);
    else events.settled(attempt, patch, duration);
  }

  /**
   * Lets go of leases that were not renewed. Two turns late on purpose: after a blocked event loop, timers come before
   * the messages of a renewer in another thread, which may have renewed them all the while.
   */
  #fence(): void {
    if (this.#fencing) return;
    this.#fencing = true;
    const { clock } = this.#deps;
    clock.soon(() =>
      clock.soon(() => {
        this.#fencing = false;
        if (this.#leases === undefined || this.#stopped) return;
        this.runner.checkAt(this.#leases.fence(clock.monotonic()));
        this.runner.startNext();
      }),
    );
  }

  #onLeaseLost(lease: HeldLease, why: string, byStore: boolean): void {
    if (!byStore) this.#claimBackoff.leaseLost(lease);
    this.#deps.events.lost(lease, this.runner.abandon(lease, !byStore), why);
  }

  #tick(now: number): void {
    this.#intents.poll(now, DEFAULTS.worker.intentPoll * (this.#deps.store.receivesWakeups() ? 2 : 1));
    returnUnstarted(this.runner, this.#leases?.all() ?? [], now);
  }
}
