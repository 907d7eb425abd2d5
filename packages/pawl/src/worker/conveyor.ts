import { DEFAULTS } from "../core/defaults.js";
import type { WorkerRef } from "../core/lease.js";
import type { Outcome, Patch } from "../core/outcome.js";
import type { SlotUse } from "../core/slots.js";
import type { Clock } from "../runtime/clock.js";
import { within } from "../runtime/wait.js";
import type { Store } from "../store/port.js";
import type { Claimed, Renewer, Settled } from "../store/port-leases.js";
import type { Attempt } from "./attempt.js";
import { Breakers, breakerRules } from "./breakers.js";
import { type Capacity, capacityOf } from "./capacity.js";
import type { Cap } from "./caps.js";
import { ClaimRest } from "./claim-rest.js";
import { Claimer, type ClaimerParts, type Claims, type Hands } from "./claimer.js";
import type { HeldLease } from "./held-lease.js";
import { giveBackHoard } from "./hoard.js";
import { intake } from "./intake.js";
import { Intents } from "./intents.js";
import { Journal } from "./journal.js";
import type { LaneSlots } from "./lane-slots.js";
import { Leases } from "./leases.js";
import { type ContextHome, LiveContext } from "./live-context.js";
import { compose } from "./middleware.js";
import type { Settings } from "./options.js";
import { Outages } from "./outage.js";
import { Plans } from "./plan.js";
import type { Reports } from "./reports.js";
import { Reservations } from "./reservations.js";
import { Runner } from "./runner.js";
import { Settler } from "./settler.js";
import { slotUseOf } from "./slot-use.js";
import { Slots } from "./slots.js";
import type { AnyTask, TaskDefaults } from "./task.js";
import { Watch } from "./watch.js";

export interface ConveyorParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly tasks: ReadonlyMap<string, AnyTask>;
  /** per queue */
  readonly defaults: Readonly<Record<string, TaskDefaults>>;
  /** of one that serves some tasks of some tenants alone */
  readonly slots?: LaneSlots;
  /** what brings it jobs, in place of claims out of the store's lanes */
  readonly claims?: (parts: ClaimerParts) => Claims;
  readonly worker: WorkerRef;
  readonly settings: Settings;
  readonly reports: Reports;
  /** a slot was taken, or is free again */
  readonly onSlots: () => void;
  /** so many handlers are lost that its process is to be replaced */
  readonly onStuck: () => void;
  readonly onError: (step: string, error: unknown) => void;
}

/** ms it waits at its end for what was under way */
export const LANDING = 5_000;

/**
 * Passes jobs from one part of a worker to the next, in the order they meet them: claimer (what to take), leases (how
 * long it is ours), runner (slots, timeouts), settler (what became of it).
 */
export class Conveyor {
  readonly claimer: Claims;
  readonly runner: Runner;
  readonly settler: Settler;
  readonly breakers: Breakers;
  readonly capacity: Capacity | undefined;
  readonly #parts: ConveyorParts;
  readonly #plans: Plans;
  readonly #journal: Journal;
  readonly #rest: ClaimRest;
  readonly #intents: Intents;
  readonly #watch: Watch;
  #leases: Leases | undefined;
  #unhear: (() => void) | undefined;
  #fencing = false;
  #stopped = false;
  #released = 0;

  constructor(parts: ConveyorParts) {
    const { store, clock, tasks, defaults, settings, worker, reports, onError } = parts;
    this.#parts = parts;
    this.#plans = new Plans(tasks, defaults);
    this.#journal = new Journal({
      store,
      worker,
      clock,
      onError: (error) => onError("store log lines and progress", error),
      onLost: (lines, error) => reports.linesLost(lines, error),
    });
    this.settler = new Settler({
      store,
      worker,
      clock,
      fullAt: 10 * settings.claimBatch,
      onAnswer: ({ attempt, settlement }, answer) => this.#answered(attempt, settlement.patch, settlement.finishedAt - settlement.startedAt, answer),
      onGivenUp: ({ attempt, settlement }) => this.#answered(attempt, settlement.patch, 0, "stale"),
      onProgress: () => this.runner.pump(),
      onError: (error) => onError("settle", error),
    });
    const outagesOf = (attempt: Attempt) => {
      attempt.outages ??= new Outages(store.engine.place);
      return attempt.outages;
    };
    const home = { ...this.#home(), outagesOf };
    this.runner = new Runner({
      clock,
      concurrency: settings.concurrency,
      mostLost: settings.mostLost,
      invoke: compose(settings.middleware),
      contextOf: (attempt) => new LiveContext(attempt, home),
      outagesOf,
      isFull: () => this.settler.full,
      onStart: (attempt) => this.#started(attempt),
      onOutcome: (attempt, outcome, now) => this.#outcome(attempt, outcome, now),
      onFreed: (attempt, now, ran) => this.#freed(attempt, now, ran),
      onEnded: ({ job }) => this.claimer.offers.caps.ended(job.lane),
      isBarred: (attempt) => this.breakers.bars(attempt),
      onRoom: () => {
        this.claimer.want();
        this.#parts.onSlots();
      },
      onStuck: (stuck) => {
        if (!stuck) return reports.unstuck();
        reports.stuck(this.runner.overruns.count, settings.concurrency);
        parts.onStuck();
      },
      onOverdue: () => this.#fence(),
    });
    this.capacity = capacityOf(settings, tasks, clock);
    this.breakers = new Breakers({
      store: store.breakers,
      clock,
      rules: breakerRules(settings.tasks, tasks),
      onRoom: () => this.claimer.want(),
      onChange: (breaker, state) => reports.breaker(breaker, state),
      onError: (error) => onError("look after breakers", error),
    });
    this.#rest = new ClaimRest(clock, () => this.claimer.want());
    const claimerParts: ClaimerParts = {
      store,
      worker,
      clock,
      settings,
      plans: this.#plans,
      caps: this.#caps(),
      hands: this.#hands(),
      ...(this.#isPlain() ? { takesAny: () => this.breakers.areClosed } : {}),
      onClaimed: (claimed, sentAt, suspect) => this.#take(claimed, sentAt, suspect),
      onStalled: (idleFor) => reports.stalled(idleFor),
      onError,
    };
    this.claimer = parts.claims?.(claimerParts) ?? new Claimer(claimerParts);
    this.#intents = new Intents({
      leases: store.leases,
      worker,
      clock,
      running: () => this.runner.running,
      onIntent: (attempt, intent) => {
        if (intent !== "cancel" || attempt.cancelled) return;
        reports.cancelled(attempt);
        this.runner.cancel(attempt);
      },
      onError: (error) => onError("ask for cancellations", error),
    });
    this.#watch = new Watch({
      clock,
      isBusy: () => this.leases > 0,
      onTick: (now) => this.#tick(now),
      onBlocked: (lag) => reports.blocked(lag),
    });
  }

  /** What it says of its slots to the others. */
  slotUse(draining: boolean): SlotUse {
    const { clock, settings } = this.#parts;
    const { free, running, overruns } = this.runner;
    return slotUseOf(
      { total: settings.concurrency, free, draining, running, overruns, plans: this.#plans, shut: this.claimer.offers.shut() },
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
    const { store, settings, onError } = this.#parts;
    renewer.onTrouble?.((error) => onError("renew", error));
    this.#leases = new Leases(
      renewer,
      settings.lease,
      (lease, why, told) => this.#lost(lease, why, told),
      () => this.#rest.renewed(),
    );
    this.#unhear = store.onHint((hint) => {
      if (hint.kind === "intent") this.#intents.ask(0);
      else this.claimer.hear(hint);
      if (hint.kind === "lanes") this.breakers.hear();
    });
    this.breakers.start();
  }

  /** Takes nothing more and gives back what has not started; after `timeout` also what runs. Answers when all is settled. */
  async drain(timeout: number): Promise<void> {
    const { clock, settings } = this.#parts;
    const landed = this.claimer.stop();
    this.#released += this.runner.held;
    await within(clock, this.runner.drain(), timeout);
    this.#released += this.runner.releaseRunning();
    await within(clock, landed, LANDING);
    await within(clock, this.#journal.flush(), LANDING);
    // A call that never answers must not keep it for ever: by then its leases have run out.
    await within(clock, this.settler.close(), settings.lease);
  }

  /** The same at once: settlements are sent and not waited for. */
  abort(): void {
    void this.claimer.stop();
    this.#released += this.runner.held;
    void this.runner.drain();
    this.#released += this.runner.releaseRunning();
    void this.settler.close();
  }

  /** No timer and no listener is left. */
  stop(): void {
    this.#stopped = true;
    this.#unhear?.();
    this.runner.stop();
    this.#rest.stop();
    this.#watch.stop();
    this.#journal.stop();
  }

  /** Where contexts are at home: what they settle themselves, in a transaction, is told here. */
  #home(): Omit<ContextHome, "outagesOf"> {
    const { store, worker, clock } = this.#parts;
    return {
      store,
      worker,
      clock,
      journal: this.#journal,
      committed: (attempt, patch, now) => {
        attempt.phase = "over";
        if (patch.outcome === "succeeded") this.breakers.note(attempt, { kind: "succeeded" }, now);
        this.#answered(attempt, patch, now - attempt.startedAt, "settled");
      },
      stale: (attempt, patch) => {
        attempt.phase = "over";
        this.#answered(attempt, patch, 0, "stale");
      },
    };
  }

  #caps(): readonly Cap[] {
    const { slots, settings } = this.#parts;
    const { queueSlots, taskSlots, reserve, concurrency } = settings;
    return [
      ...(slots === undefined ? [] : [slots]),
      ...(queueSlots.size + taskSlots.size === 0 ? [] : [new Slots(queueSlots, taskSlots)]),
      ...(reserve.length === 0 ? [] : [new Reservations(concurrency, reserve)]),
      ...(this.capacity === undefined ? [] : [this.capacity]),
      this.breakers,
    ];
  }

  /** Whether its slots are all that bounds what it takes of tasks that need nothing, besides breakers. */
  #isPlain(): boolean {
    return this.#caps().every((cap) => cap === this.breakers || cap === this.capacity);
  }

  #hands(): Hands {
    const conveyor = this;
    return {
      get free() {
        return conveyor.#rest.resting ? 0 : conveyor.runner.free;
      },
      get held() {
        return conveyor.runner.held;
      },
      get ahead() {
        return conveyor.#rest.resting ? 0 : conveyor.runner.pace.ahead(conveyor.runner.slots);
      },
      get suspects() {
        return conveyor.#leases?.suspects ?? 0;
      },
    };
  }

  #take(claimed: Claimed, sentAt: number, suspect: boolean): void {
    const { clock, settings, reports } = this.#parts;
    const leases = this.#leases as Leases;
    const now = clock.monotonic();
    const lease = leases.add(claimed, sentAt, now, suspect);
    const { offers } = this.claimer;
    const longest = intake(claimed.jobs, lease, this.#plans, offers.caps, (lane) => offers.shareOf(lane));
    this.breakers.mark(lease.attempts, sentAt);
    if (lease.open === 0) {
      leases.forget(lease);
      return;
    }
    // Held jobs start a little later than now; one that starts later than this bound moves it when it does.
    leases.hold(lease, now + longest + settings.lease);
    this.runner.watch(lease.fenceAt);
    this.#watch.arm();
    reports.claimed(lease);
    this.runner.add(lease.attempts, suspect);
  }

  #started(attempt: Attempt): void {
    const { lease, endBy, share, startedAt } = attempt;
    const { settings, reports } = this.#parts;
    share.begin(startedAt);
    if (endBy > lease.latest) this.#leases?.hold(lease, endBy + settings.lease);
    reports.started(attempt);
    this.#parts.onSlots();
  }

  #outcome(attempt: Attempt, outcome: Outcome, now: number): void {
    const patch = attempt.decide(outcome, now, this.#parts.clock.random);
    this.breakers.note(attempt, outcome, now);
    if (patch.retryFault !== undefined) this.#retryFailed(attempt, patch.retryFault);
    // What it said goes first: its lines are stored under the lease that this settlement ends.
    const said = this.#journal.close(attempt);
    if (said === undefined) this.settler.add(attempt, patch, now);
    else void said.then(() => this.settler.add(attempt, patch, now));
  }

  /** The job goes on by another policy than its task's: its log says why, since its history cannot. */
  #retryFailed(attempt: Attempt, why: string): void {
    this.#journal.remark(attempt, "error", `the retry function of its task failed, and the default policy decided: ${why}`);
    this.#parts.reports.retryFailed(attempt, why);
  }

  #freed(attempt: Attempt, now: number, ran: boolean): void {
    const { job, plan, share, startedAt } = attempt;
    const { caps } = this.claimer.offers;
    plan.pace.inHand--;
    share.take(-1);
    if (ran) share.end(startedAt, now);
    else caps.ended(job.lane);
    this.breakers.over(attempt);
  }

  #answered(attempt: Attempt, patch: Patch, duration: number, answer: Settled): void {
    const { reports } = this.#parts;
    this.#leases?.closed(attempt.lease);
    if (attempt.notes !== undefined) attempt.notes.settled = true;
    this.claimer.settled(attempt.job.lane);
    if (answer === "stale") reports.stale(attempt, patch.outcome);
    else reports.settled(attempt, patch, duration);
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
        if (this.#leases === undefined || this.#stopped) return;
        this.runner.watch(this.#leases.fence(clock.monotonic()));
        this.runner.pump();
      }),
    );
  }

  #lost(lease: HeldLease, why: string, told: boolean): void {
    if (!told) this.#rest.lost(lease);
    this.#parts.reports.lost(lease, this.runner.abandon(lease, !told), why);
  }

  #tick(now: number): void {
    this.#intents.poll(now, DEFAULTS.worker.intentPoll * (this.#parts.store.hearsOthers() ? 2 : 1));
    giveBackHoard(this.runner, this.#leases?.all() ?? [], now);
  }
}
