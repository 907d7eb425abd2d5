import type { Lane } from "../../core/jobs/lane.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { AnyTask } from "../../core/jobs/task.js";
import type { SlotUse } from "../../core/limits/slot-use.js";
import type { Share } from "../../core/sharing/fair-share.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store, Wakeup } from "../../store/port/index.js";
import type { Claimed } from "../../store/port/settle/leases.js";
import { Breakers, breakerRules } from "../breakers/breakers.js";
import { Announcer, servesOf } from "../claim/announce-worker.js";
import { capacityOf } from "../claim/capacity.js";
import { Claimer } from "../claim/claimer.js";
import { Reservations } from "../claim/reservations.js";
import { SlotLimits } from "../claim/slot-limits.js";
import { slotUseOf } from "../claim/slot-use.js";
import type { WorkerSettings } from "../options.js";
import type { WorkerEvents } from "../report-events.js";
import type { Attempt } from "../run/attempt.js";
import type { TaskPlans } from "../run/task-plan.js";
import { HeldLease } from "../settle/held-lease.js";
import { openAttempts } from "../settle/open-attempts.js";
import { HeldJobCounts } from "./held-job-counts.js";
import type { LanePoll } from "./lane-poll.js";
import type { HeldJobs } from "./reported-outcome.js";

export interface DispatchDeps {
  readonly store: Store;
  readonly lanePoll: LanePoll;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly settings: WorkerSettings;
  readonly tasks: ReadonlyMap<string, AnyTask>;
  readonly plans: TaskPlans;
  readonly events: WorkerEvents;
  /** suspects that the worker has: it gets one at a time */
  readonly suspects: () => number;
  /** how many were leased and are not over */
  readonly leasedJobs: () => number;
  /** what it runs, as far as this process leased it */
  readonly running: () => Iterable<Attempt>;
  /** jobs came that nobody waits for any more: they are to be given back */
  readonly onUndelivered: (leases: readonly HeldLease[]) => void;
  readonly onError: (step: string, error: unknown) => void;
}

/** What a worker asks for, and until when. */
export interface LongPoll {
  /** slots with nothing in them */
  readonly free: number;
  /** jobs at most, those included that it will not start at once */
  readonly limit: number;
  /** ms */
  readonly wait: number;
  readonly signal?: AbortSignal;
}

/** ms that jobs wait here for the worker to ask again, before somebody else may have them */
const UNDELIVERED_RETURN_MS = 1_000;
/** ms that an answer waits for claims beside the one that came first */
const GATHER_MS = 20;

/**
 * Claims for one worker elsewhere, by the very rules a worker here claims by; but only while it asks. One ask at a time:
 * another one takes the place of the one before, whose worker has given up on it.
 */
export class Dispatch {
  readonly heldJobCounts: HeldJobCounts;
  readonly #claimer: Claimer;
  readonly #breakers: Breakers;
  readonly #announcer: Announcer;
  #longPoll: (LongPoll & { readonly answer: (leases: readonly HeldLease[]) => void }) | undefined;
  #undelivered: HeldLease[] = [];
  #cancelGather: (() => void) | undefined;
  #cancelReturn: (() => void) | undefined;
  #open = true;
  readonly #unsubscribe: () => void;

  constructor(private readonly deps: DispatchDeps) {
    const { store, lanePoll, worker, clock, settings, tasks, plans, events, onError } = deps;
    const capacity = capacityOf(settings, tasks, clock);
    this.#breakers = new Breakers({
      store: store.breakers,
      clock,
      rules: breakerRules(settings.tasks, tasks),
      onRoom: () => this.#claimer.claimIfUseful(),
      onChange: (breaker, state) => events.breaker(breaker, state),
      onError: (error) => onError("look after breakers", error),
    });
    this.#claimer = new Claimer({
      store: { leases: store.leases, lanes: lanePoll, policies: store.policies, receivesWakeups: () => store.receivesWakeups() },
      worker,
      clock,
      settings,
      plans,
      limits: [
        ...(settings.queueSlots.size + settings.taskSlots.size === 0 ? [] : [new SlotLimits(settings.queueSlots, settings.taskSlots)]),
        ...(settings.reserve.length === 0 ? [] : [new Reservations(settings.concurrency, settings.reserve)]),
        ...(capacity === undefined ? [] : [capacity]),
        this.#breakers,
      ],
      load: this.#load(),
      onClaimed: (claimed, sentAt, suspect) => this.#onClaimed(claimed, sentAt, suspect),
      onStalled: (idleFor) => events.stalled(idleFor),
      onError,
    });
    this.heldJobCounts = new HeldJobCounts(this.#claimer.limits);
    this.#announcer = new Announcer({
      workers: store.workers,
      worker,
      clock,
      serves: servesOf(settings),
      tenantDurations: () => this.#claimer.tenantDurations(),
      slots: () => this.#slots(),
      onError: (error) => onError("say what is served", error),
    });
    this.#unsubscribe = store.onWakeup((wakeup) => this.#handleWakeup(wakeup));
    this.#announcer.start();
    this.#breakers.start();
    this.#claimer.start();
  }

  /** Leases with jobs to start, or none when the wait is over. */
  poll(request: LongPoll, heldJobs: readonly HeldJobs[] | undefined): Promise<readonly HeldLease[]> {
    this.#longPoll?.answer([]);
    if (heldJobs !== undefined) this.#setHeldJobs(heldJobs);
    return new Promise((resolve) => {
      const answerNothing = () => answer([]);
      const cancelWait = this.deps.clock.after(request.wait, answerNothing);
      const answer = (leases: readonly HeldLease[]) => {
        cancelWait();
        request.signal?.removeEventListener("abort", answerNothing);
        if (this.#longPoll?.answer === answer) this.#longPoll = undefined;
        resolve(leases);
      };
      this.#longPoll = { ...request, answer };
      request.signal?.addEventListener("abort", answerNothing, { once: true });
      if (request.signal?.aborted === true || !this.#open) answerNothing();
      else if (this.#undelivered.length > 0) this.#deliver();
      else this.#claimer.claimIfUseful();
    });
  }

  /** Whether a job that was claimed before its breaker opened is to be given back unstarted. */
  blocks(attempt: Attempt): boolean {
    return this.#breakers.blocks(attempt);
  }

  attemptStarted({ share, startedAt }: Attempt): void {
    share.begin(startedAt);
    this.#slotsChanged();
  }

  /** An attempt that was leased is over; `ran`: it was begun. */
  attemptOver(attempt: Attempt, ran: boolean): void {
    const { share, plan, startedAt, job } = attempt;
    plan.estimate.outstandingJobs--;
    share.take(-1);
    if (ran) share.end(startedAt, this.deps.clock.monotonic());
    this.heldJobCounts.removeJob(job.lane);
    this.#breakers.release(attempt);
    if (ran) this.#slotsChanged();
  }

  /** There may be room for what there was none for. */
  claimIfUseful(): void {
    if (this.#longPoll !== undefined) this.#claimer.claimIfUseful();
  }

  /** The store knows the end of it. */
  settled(attempt: Attempt, outcome: Parameters<Breakers["recordOutcome"]>[1], duration: number): void {
    attempt.plan.estimate.add(duration);
    this.#breakers.recordOutcome(attempt, outcome, this.deps.clock.monotonic());
    this.#claimer.jobSettled(attempt.job.lane);
  }

  shareOf = (lane: Lane): Share => this.#claimer.shareOf(lane);

  /** Takes no more, and gives back what came for nobody. */
  async stop(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#unsubscribe();
    this.#longPoll?.answer([]);
    await this.#claimer.stop();
    this.#cancelGather?.();
    this.#returnJobs();
    await Promise.all([this.#announcer.stop(), this.#breakers.stop()]);
  }

  #slotsChanged(): void {
    this.#announcer.slotsChanged(this.deps.leasedJobs() >= this.deps.settings.concurrency);
  }

  #load() {
    const dispatch = this;
    return {
      get free() {
        return dispatch.#longPoll?.free ?? 0;
      },
      get unstarted() {
        return dispatch.#undelivered.reduce((sum, { unsettled }) => sum + unsettled, 0);
      },
      get ahead() {
        const { limit = 0, free = 0 } = dispatch.#longPoll ?? {};
        return Math.max(0, limit - free);
      },
      get suspects() {
        return dispatch.deps.suspects() + dispatch.#undelivered.filter(({ suspect }) => suspect).length;
      },
    };
  }

  #slots(): SlotUse {
    const { clock, settings, running, plans } = this.deps;
    const attempts = [...running()].filter(({ phase }) => phase === "running");
    const total = settings.concurrency;
    return slotUseOf(
      { total, free: Math.max(0, total - attempts.length), draining: false, running: attempts, plans, shut: this.#claimer.fullLanes() },
      clock.monotonic(),
    );
  }

  #handleWakeup(wakeup: Wakeup): void {
    this.#claimer.handleWakeup(wakeup);
    if (wakeup.kind === "lanes") this.#breakers.handleChange();
  }

  /** What lies here was counted when it came; the worker knows nothing of it. */
  #setHeldJobs(heldJobs: readonly HeldJobs[]): void {
    const undelivered = this.#undelivered.flatMap(({ attempts }) => attempts.map(({ job }) => ({ lane: job.lane, count: 1 })));
    this.heldJobCounts.set([...heldJobs, ...undelivered]);
  }

  #onClaimed(claimed: Claimed, sentAt: number, suspect: boolean): void {
    const { clock, settings, plans } = this.deps;
    const now = clock.monotonic();
    const lease = new HeldLease(claimed, sentAt, now, settings.leaseDuration, suspect);
    const longest = openAttempts(claimed.jobs, lease, plans, this.heldJobCounts, this.shareOf);
    if (lease.unsettled === 0) return;
    lease.latest = now + longest + settings.leaseDuration;
    this.#breakers.markProbes(lease.attempts, sentAt);
    this.#undelivered.push(lease);
    if (this.#open) clock.soon(() => this.#gather());
    else this.#returnJobs();
  }

  /** Claims beside this one may be about to be answered: one answer for all of them saves the worker a round trip. */
  #gather(): void {
    if (this.#claimer.inFlight === 0) this.#deliver();
    else this.#cancelGather ??= this.deps.clock.after(GATHER_MS, () => this.#deliver());
  }

  #deliver(): void {
    this.#cancelGather?.();
    this.#cancelGather = undefined;
    if (this.#undelivered.length === 0) return;
    if (this.#longPoll === undefined) {
      this.#waitForPoll();
      return;
    }
    this.#cancelReturn?.();
    this.#cancelReturn = undefined;
    this.#longPoll.answer(this.#undelivered.splice(0));
  }

  #waitForPoll(): void {
    this.#cancelReturn ??= this.deps.clock.after(UNDELIVERED_RETURN_MS, () => this.#returnJobs());
  }

  #returnJobs(): void {
    this.#cancelReturn?.();
    this.#cancelReturn = undefined;
    if (this.#undelivered.length > 0) this.deps.onUndelivered(this.#undelivered.splice(0));
  }
}
