import type { Lane } from "../core/lane.js";
import { laneKey } from "../core/lane.js";
import type { WorkerRef } from "../core/lease.js";
import { offer, type Quota } from "../core/offer.js";
import { Backoff } from "../runtime/backoff.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import type { Claimed, Hint, Store } from "../store/port.js";
import { LaneBook } from "./lane-book.js";
import type { Settings } from "./options.js";
import type { Plans } from "./plan.js";
import type { Slots } from "./slots.js";

/** What the claimer asks of the jobs in hand. */
export interface Hands {
  /** slots with nothing in them */
  readonly free: number;
  /** jobs claimed and not started */
  readonly held: number;
  /** jobs beyond the free slots that could start soon */
  readonly ahead: number;
  readonly suspects: number;
}

export interface ClaimerParts {
  readonly store: Store;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly settings: Settings;
  readonly plans: Plans;
  readonly slots: Slots;
  readonly hands: Hands;
  readonly onClaimed: (claimed: Claimed, sentAt: number, suspect: boolean) => void;
  readonly onStalled: (idleFor: number) => void;
  readonly onError: (step: string, error: unknown) => void;
}

/** A claim that is not answered yet. */
interface Flight {
  readonly quotas: readonly Quota[];
  readonly limit: number;
  readonly suspect: boolean;
  /** takes jobs that may run at most once: nothing else may take the slots meant for them */
  readonly alone: boolean;
}

const MOST_FLIGHTS = 2;
const STALLED_AFTER = 30_000;
const WATCH_EVERY = 5_000;
/** Once it accepts connections again, claims resume within this. */
const LONGEST_REST = 1_500;

/**
 * Decides when to claim, how much, and out of which lanes. It claims what can start soon and no more, remembers the
 * lanes that had work, and forgets those that gave less than they were asked for until a hint or the poll names them
 * again: an idle worker asks the store once per poll and nothing else.
 */
export class Claimer {
  readonly #lanes = new LaneBook();
  /** Lanes of tasks that run at most once, claimed only into free slots. */
  readonly #careful = new LaneBook();
  readonly #flights = new Set<Flight>();
  readonly #backoff: Backoff;
  readonly #serves: (lane: Lane) => boolean;
  #asked = 0;
  #carefulPassedOver = false;
  #suspects = false;
  #turn: number;
  /** counts what is heard and asked, to tell which came first */
  #stamp = 0;
  #heard = 0;
  #sent = 0;
  /** whether the last claim got all it asked for */
  #backlog = false;
  #open = false;
  #resting = false;
  #hungrySince: number | undefined;
  #poll: Loop | undefined;
  #cancelWatch: (() => void) | undefined;
  #landed: (() => void)[] = [];

  constructor(private readonly parts: ClaimerParts) {
    const { settings, clock } = parts;
    const queues = settings.queues === undefined ? undefined : new Set(settings.queues);
    const tasks = new Set(settings.tasks);
    this.#serves = (lane) => tasks.has(lane.task) && (queues === undefined || queues.has(lane.queue));
    this.#backoff = new Backoff(clock, { min: 50, max: LONGEST_REST });
    this.#turn = Math.floor(clock.random() * 1_000_000);
  }

  get lanes(): number {
    return this.#lanes.size + this.#careful.size;
  }

  get inFlight(): number {
    return this.#flights.size;
  }

  start(): void {
    const { clock, onError } = this.parts;
    this.#open = true;
    this.#poll = loop({
      clock,
      step: () => this.#refresh(),
      onError: (error) => onError("look for work", error),
      backoff: { min: 50, max: LONGEST_REST },
      patience: STALLED_AFTER,
    });
    this.#watch();
  }

  /** No claim goes out from here on. Answers when those under way have come back. */
  stop(): Promise<void> {
    this.#open = false;
    void this.#poll?.stop();
    this.#cancelWatch?.();
    if (this.#flights.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#landed.push(resolve));
  }

  hear(hint: Hint): void {
    if (!this.#open) return;
    if (hint.kind === "lanes") this.#poll?.wake();
    if (hint.kind !== "ready") return;
    this.#heard = ++this.#stamp;
    for (const lane of hint.lanes) if (this.#serves(lane)) this.#bookOf(lane).add(lane, this.#stamp);
    this.want();
  }

  /** Claims if it is worth it. Called whenever something changed, so it is cheap when nothing did. */
  want(): void {
    if (!this.#open || this.#resting) return;
    if (this.#suspects) this.#claimSuspect();
    while (this.#mayFly() && this.#claimSome());
  }

  /** A second claim beside the first only where it should find something: a backlog, or what was heard of since. */
  #mayFly(): boolean {
    if (this.#flights.size === 0) return true;
    return this.#flights.size < MOST_FLIGHTS && (this.#backlog || this.#heard > this.#sent);
  }

  #claimSome(): boolean {
    if (this.lanes === 0) return false;
    const { hands, settings, plans, slots } = this.parts;
    const { free } = hands;
    const pending = hands.held + this.#asked;
    const ahead = Math.min(hands.ahead, MOST_FLIGHTS * settings.claimBatch);
    const size = Math.min(settings.claimBatch, free + ahead - pending);
    if (size <= 0) return false;
    // Every free slot is spoken for: what is left is a matter of batch size, so let a good one gather.
    if (pending >= free && size < Math.min(settings.claimBatch, ahead / MOST_FLIGHTS)) return false;
    const careful = this.#mayBeCareful(pending);
    if (careful === "wait") return false;
    const limit = careful === "now" ? Math.min(size, free) : size;
    const lanes = careful === "now" ? [...this.#careful.next(), ...this.#lanes.next()] : this.#lanes.next();
    const cap = (lane: Lane) => {
      const plan = plans.of(lane);
      if (plan === undefined) return 0;
      // By the pace of the task itself: quick jobs of one must not make room for slow ones of another.
      const soon = settings.concurrency + plan.pace.ahead(settings.concurrency) - plan.pace.inHand;
      return plan.counted ? Math.min(soon, slots.room(lane)) : soon;
    };
    const quotas = slots.reserve(offer(lanes, limit, this.#turn++, cap));
    if (quotas.length === 0) return false;
    this.#send(quotas, limit, careful === "now");
    return true;
  }

  /**
   * Jobs that run at most once are dead if their worker vanishes with them, started or not. So they are claimed into
   * free slots only, with empty hands and no other claim under way; after one claim without them, that moment is
   * waited for, so that a stream of others cannot keep them out for ever.
   */
  #mayBeCareful(pending: number): "now" | "no" | "wait" {
    for (const flight of this.#flights) if (flight.alone) return "wait";
    if (this.#careful.size === 0) return "no";
    if (pending === 0 && this.parts.hands.free > 0) {
      this.#carefulPassedOver = false;
      return "now";
    }
    if (this.#carefulPassedOver || this.#lanes.size === 0) return "wait";
    this.#carefulPassedOver = true;
    return "no";
  }

  #send(quotas: readonly Quota[], limit: number, alone: boolean): void {
    const { store, worker, settings } = this.parts;
    const stamp = this.#stamp++;
    this.#sent = stamp;
    this.#count(quotas, 1);
    this.#fly(
      { quotas, limit, alone, suspect: false },
      () => store.leases.claim({ worker, quotas, limit, duration: settings.lease }),
      (claimed) => {
        this.#backlog = claimed !== undefined && (claimed.jobs.length >= limit || claimed.more === true);
        if (!this.#backlog) this.#forgetEmpty(quotas, claimed, stamp);
      },
    );
  }

  /** One at a time: if it takes this worker down again, it takes down nobody else's job with it, and is known by that. */
  #claimSuspect(): void {
    const { store, worker, settings, hands } = this.parts;
    if (hands.suspects > 0 || hands.free === 0 || this.#flights.size >= MOST_FLIGHTS) return;
    const { queues, tasks, lease: duration } = settings;
    this.#suspects = false;
    this.#fly(
      { quotas: [], limit: 1, alone: false, suspect: true },
      () => store.leases.claimSuspect({ worker, queues, tasks, duration }),
      (claimed) => {
        this.#suspects = claimed !== undefined;
      },
    );
  }

  #fly(flight: Flight, claim: () => Promise<Claimed | undefined>, onAnswer: (claimed: Claimed | undefined) => void): void {
    const { clock, onClaimed, onError } = this.parts;
    const sentAt = clock.monotonic();
    this.#flights.add(flight);
    this.#asked += flight.limit;
    this.#hungrySince ??= sentAt;
    claim().then(
      (claimed) => {
        this.#hungrySince = undefined;
        this.#backoff.reset();
        this.#land(flight);
        onAnswer(claimed);
        if (claimed !== undefined) onClaimed(claimed, sentAt, flight.suspect);
        this.want();
      },
      (error: unknown) => {
        this.#land(flight);
        onError("claim", error);
        this.#rest();
      },
    );
  }

  /** Once per flight: one given up as stalled may still come in, and its jobs are as good as any others. */
  #land(flight: Flight): void {
    if (!this.#flights.delete(flight)) return;
    this.#asked -= flight.limit;
    this.parts.slots.unreserve(flight.quotas);
    this.#count(flight.quotas, -1);
    if (this.#flights.size === 0) for (const resolve of this.#landed.splice(0)) resolve();
  }

  #count(quotas: readonly Quota[], sign: 1 | -1): void {
    for (const { lane, quota } of quotas) {
      const plan = this.parts.plans.of(lane);
      if (plan !== undefined) plan.pace.inHand += sign * quota;
    }
  }

  /** A lane that gave less than its quota, in a claim that was not full, has nothing left. */
  #forgetEmpty(quotas: readonly Quota[], claimed: Claimed | undefined, stamp: number): void {
    const given = new Map<string, number>();
    for (const { lane } of claimed?.jobs ?? []) {
      const key = laneKey(lane);
      given.set(key, (given.get(key) ?? 0) + 1);
    }
    for (const { lane, quota } of quotas) if ((given.get(laneKey(lane)) ?? 0) < quota) this.#bookOf(lane).forget(lane, stamp);
  }

  async #refresh(): Promise<number> {
    const { store, settings, clock } = this.parts;
    const since = this.#stamp++;
    const { lanes, suspects } = await store.lanes.live(settings.queues, settings.tasks);
    const careful = lanes.filter((lane) => this.#bookOf(lane) === this.#careful);
    this.#careful.replace(careful, since);
    this.#lanes.replace(careful.length === 0 ? lanes : lanes.filter((lane) => this.#bookOf(lane) === this.#lanes), since);
    this.#suspects = suspects;
    this.want();
    // Spread, so that many workers do not look all at once; never sooner than the poll, so that rest stays cheap.
    return settings.poll * (store.hearsOthers() ? 2 : 1) * (1 + 0.2 * clock.random());
  }

  #bookOf(lane: Lane): LaneBook {
    return this.parts.plans.of(lane)?.atMostOnce ? this.#careful : this.#lanes;
  }

  #rest(): void {
    if (this.#resting) return;
    this.#resting = true;
    this.parts.clock.after(this.#backoff.next(), () => {
      this.#resting = false;
      this.want();
    });
  }

  /** Work is known, slots are free, and no claim has come back for long: whatever the reason, begin anew, and say so. */
  #watch(): void {
    const { clock, hands, onStalled } = this.parts;
    this.#cancelWatch = clock.after(WATCH_EVERY, () => {
      this.#watch();
      if (this.lanes === 0 || hands.free === 0) {
        this.#hungrySince = undefined;
        return;
      }
      const now = clock.monotonic();
      this.#hungrySince ??= now;
      if (now - this.#hungrySince >= STALLED_AFTER) {
        onStalled(now - this.#hungrySince);
        this.#hungrySince = undefined;
        for (const flight of [...this.#flights]) this.#land(flight);
        this.#resting = false;
        this.#poll?.wake();
      }
      this.want();
    });
  }
}
