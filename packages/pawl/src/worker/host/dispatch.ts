import type { WorkerRef } from "../../core/lease.js";
import type { SlotUse } from "../../core/slots.js";
import type { Clock } from "../../runtime/clock.js";
import type { Hint, Store } from "../../store/port.js";
import type { Claimed } from "../../store/port-leases.js";
import type { Attempt } from "../attempt.js";
import { Breakers, breakerRules } from "../breakers.js";
import { capacityOf } from "../capacity.js";
import { Claimer } from "../claimer.js";
import { HeldLease } from "../held-lease.js";
import { intake } from "../intake.js";
import type { Settings } from "../options.js";
import type { Plans } from "../plan.js";
import type { Reports } from "../reports.js";
import { Reservations } from "../reservations.js";
import { Serving, servesOf } from "../serving.js";
import { slotUseOf } from "../slot-use.js";
import { Slots } from "../slots.js";
import type { AnyTask } from "../task.js";
import { Held } from "./held.js";
import type { Looks } from "./looks.js";
import type { Holding } from "./told.js";

export interface DispatchParts {
  readonly store: Store;
  readonly looks: Looks;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly settings: Settings;
  readonly tasks: ReadonlyMap<string, AnyTask>;
  readonly plans: Plans;
  readonly reports: Reports;
  /** suspects in the worker's hand: it gets one at a time */
  readonly suspects: () => number;
  /** how many were handed out and are not over */
  readonly handed: () => number;
  /** what it runs, as far as this process handed it out */
  readonly running: () => Iterable<Attempt>;
  /** jobs came that nobody waits for any more: they are to be given back */
  readonly onUnasked: (leases: readonly HeldLease[]) => void;
  readonly onError: (step: string, error: unknown) => void;
}

/** What a worker asks for, and until when. */
export interface Ask {
  /** slots with nothing in them */
  readonly free: number;
  /** jobs at most, those included that it will not start at once */
  readonly limit: number;
  /** ms */
  readonly wait: number;
  readonly signal?: AbortSignal;
}

/** ms that jobs wait here for the worker to ask again, before somebody else may have them */
const UNASKED = 1_000;
/** ms that an answer waits for claims beside the one that came first */
const GATHER = 20;

/**
 * Claims for one worker elsewhere, by the very rules a worker here claims by; but only while it asks. One ask at a time:
 * another one takes the place of the one before, whose worker has given up on it.
 */
export class Dispatch {
  readonly held: Held;
  readonly #claimer: Claimer;
  readonly #breakers: Breakers;
  readonly #serving: Serving;
  #asking: (Ask & { readonly answer: (leases: readonly HeldLease[]) => void }) | undefined;
  #here: HeldLease[] = [];
  #cancelGather: (() => void) | undefined;
  #cancelUnasked: (() => void) | undefined;
  #open = true;
  readonly #unhear: () => void;

  constructor(private readonly parts: DispatchParts) {
    const { store, looks, worker, clock, settings, tasks, plans, reports, onError } = parts;
    const capacity = capacityOf(settings, tasks, clock);
    this.#breakers = new Breakers({
      store: store.breakers,
      clock,
      rules: breakerRules(settings.tasks, tasks),
      onRoom: () => this.#claimer.want(),
      onChange: (breaker, state) => reports.breaker(breaker, state),
      onError: (error) => onError("look after breakers", error),
    });
    this.#claimer = new Claimer({
      store: { leases: store.leases, lanes: looks, policies: store.policies, hearsOthers: () => store.hearsOthers() },
      worker,
      clock,
      settings,
      plans,
      caps: [
        ...(settings.queueSlots.size + settings.taskSlots.size === 0 ? [] : [new Slots(settings.queueSlots, settings.taskSlots)]),
        ...(settings.reserve.length === 0 ? [] : [new Reservations(settings.concurrency, settings.reserve)]),
        ...(capacity === undefined ? [] : [capacity]),
        this.#breakers,
      ],
      hands: this.#hands(),
      onClaimed: (claimed, sentAt, suspect) => this.#landed(claimed, sentAt, suspect),
      onStalled: (idleFor) => reports.stalled(idleFor),
      onError,
    });
    this.held = new Held(this.#claimer.offers.caps);
    this.#serving = new Serving({
      workers: store.workers,
      worker,
      clock,
      serves: servesOf(settings),
      took: () => this.#claimer.offers.took(),
      slots: () => this.#slots(),
      onError: (error) => onError("say what is served", error),
    });
    this.#unhear = store.onHint((hint) => this.#hear(hint));
    this.#serving.start();
    this.#breakers.start();
    this.#claimer.start();
  }

  /** Leases with jobs to start, or none when the wait is over. */
  ask(ask: Ask, holding: readonly Holding[] | undefined): Promise<readonly HeldLease[]> {
    this.#asking?.answer([]);
    if (holding !== undefined) this.#told(holding);
    return new Promise((resolve) => {
      const give = () => answer([]);
      const cancelWait = this.parts.clock.after(ask.wait, give);
      const answer = (leases: readonly HeldLease[]) => {
        cancelWait();
        ask.signal?.removeEventListener("abort", give);
        if (this.#asking?.answer === answer) this.#asking = undefined;
        resolve(leases);
      };
      this.#asking = { ...ask, answer };
      ask.signal?.addEventListener("abort", give, { once: true });
      if (ask.signal?.aborted === true || !this.#open) give();
      else if (this.#here.length > 0) this.#deliver();
      else this.#claimer.want();
    });
  }

  /** Whether a job that was claimed before its breaker opened is to be given back unstarted. */
  bars(attempt: Attempt): boolean {
    return this.#breakers.bars(attempt);
  }

  begun({ share, startedAt }: Attempt): void {
    share.begin(startedAt);
    this.#slotsChanged();
  }

  /** An attempt that was handed out is over; `ran`: it was begun. */
  over(attempt: Attempt, ran: boolean): void {
    const { share, plan, startedAt, job } = attempt;
    plan.pace.inHand--;
    share.take(-1);
    if (ran) share.end(startedAt, this.parts.clock.monotonic());
    this.held.over(job.lane);
    this.#breakers.over(attempt);
    if (ran) this.#slotsChanged();
  }

  /** There may be room for what there was none for. */
  room(): void {
    if (this.#asking !== undefined) this.#claimer.want();
  }

  /** The store knows the end of it. */
  settled(attempt: Attempt, outcome: Parameters<Breakers["note"]>[1], took: number): void {
    attempt.plan.pace.note(took);
    this.#breakers.note(attempt, outcome, this.parts.clock.monotonic());
    this.#claimer.settled(attempt.job.lane);
  }

  shareOf: Claimer["offers"]["shareOf"] = (lane) => this.#claimer.offers.shareOf(lane);

  /** Takes no more, and gives back what came for nobody. */
  async stop(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#unhear();
    this.#asking?.answer([]);
    await this.#claimer.stop();
    this.#cancelGather?.();
    this.#giveBack();
    await Promise.all([this.#serving.stop(), this.#breakers.stop()]);
  }

  #slotsChanged(): void {
    this.#serving.slotsChanged(this.parts.handed() >= this.parts.settings.concurrency);
  }

  #hands() {
    const dispatch = this;
    return {
      get free() {
        return dispatch.#asking?.free ?? 0;
      },
      get held() {
        return dispatch.#here.reduce((sum, { open }) => sum + open, 0);
      },
      get ahead() {
        const { limit = 0, free = 0 } = dispatch.#asking ?? {};
        return Math.max(0, limit - free);
      },
      get suspects() {
        return dispatch.parts.suspects() + dispatch.#here.filter(({ suspect }) => suspect).length;
      },
    };
  }

  #slots(): SlotUse {
    const { clock, settings, running, plans } = this.parts;
    const attempts = [...running()].filter(({ phase }) => phase === "running");
    const total = settings.concurrency;
    return slotUseOf(
      { total, free: Math.max(0, total - attempts.length), draining: false, running: attempts, plans, shut: this.#claimer.offers.shut() },
      clock.monotonic(),
    );
  }

  #hear(hint: Hint): void {
    this.#claimer.hear(hint);
    if (hint.kind === "lanes") this.#breakers.hear();
  }

  /** What lies here was counted when it came; the worker knows nothing of it. */
  #told(holding: readonly Holding[]): void {
    const here = this.#here.flatMap(({ attempts }) => attempts.map(({ job }) => ({ lane: job.lane, count: 1 })));
    this.held.told([...holding, ...here]);
  }

  #landed(claimed: Claimed, sentAt: number, suspect: boolean): void {
    const { clock, settings, plans } = this.parts;
    const now = clock.monotonic();
    const lease = new HeldLease(claimed, sentAt, now, settings.lease, suspect);
    const longest = intake(claimed.jobs, lease, plans, this.held, this.shareOf);
    if (lease.open === 0) return;
    lease.latest = now + longest + settings.lease;
    this.#breakers.mark(lease.attempts, sentAt);
    this.#here.push(lease);
    if (this.#open) clock.soon(() => this.#gather());
    else this.#giveBack();
  }

  /** Claims beside this one may be about to land: one answer for all of them saves the worker a round trip. */
  #gather(): void {
    if (this.#claimer.inFlight === 0) this.#deliver();
    else this.#cancelGather ??= this.parts.clock.after(GATHER, () => this.#deliver());
  }

  #deliver(): void {
    this.#cancelGather?.();
    this.#cancelGather = undefined;
    if (this.#here.length === 0) return;
    if (this.#asking === undefined) {
      this.#waitForAsk();
      return;
    }
    this.#cancelUnasked?.();
    this.#cancelUnasked = undefined;
    this.#asking.answer(this.#here.splice(0));
  }

  #waitForAsk(): void {
    this.#cancelUnasked ??= this.parts.clock.after(UNASKED, () => this.#giveBack());
  }

  #giveBack(): void {
    this.#cancelUnasked?.();
    this.#cancelUnasked = undefined;
    if (this.#here.length > 0) this.parts.onUnasked(this.#here.splice(0));
  }
}
