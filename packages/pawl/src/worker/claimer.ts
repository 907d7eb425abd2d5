import type { Lane } from "../core/lane.js";
import type { WorkerRef } from "../core/lease.js";
import type { Offered } from "../core/offer.js";
import { Backoff } from "../runtime/backoff.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import type { Hint, Store } from "../store/port.js";
import type { Claimed, ClaimRequest, LimitedClaim } from "../store/port-leases.js";
import type { Cap } from "./caps.js";
import { Offers } from "./offers.js";
import type { Settings } from "./options.js";
import type { Plans } from "./plan.js";
import { type Sitter, sitterOf } from "./sitter.js";

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

/** What it needs of a store. */
export type ClaimStore = Pick<Store, "policies" | "hearsOthers" | "seats"> & {
  readonly leases: Pick<Store["leases"], "claim" | "claimLimited" | "claimSuspect">;
  readonly lanes: Pick<Store["lanes"], "live">;
};

/** Whoever brings a worker its jobs: the claimer, or one that asks a service for them. */
export interface Claims {
  readonly lanes: number;
  readonly inFlight: number;
  readonly offers: Pick<Offers, "caps" | "shareOf" | "shut" | "took">;
  /** Looks for work already, and takes none before it is started. */
  look?(): void;
  start(): void;
  stop(): Promise<void>;
  hear(hint: Hint): void;
  settled(lane: Lane): void;
  want(): void;
}

export interface ClaimerParts {
  readonly store: ClaimStore;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly settings: Settings;
  readonly plans: Plans;
  /** what bounds the jobs of lanes here */
  readonly caps: readonly Cap[];
  readonly hands: Hands;
  /** whether any job of its tasks would do now: nothing bounds them here but its slots */
  readonly takesAny?: () => boolean;
  readonly onClaimed: (claimed: Claimed, sentAt: number, suspect: boolean) => void;
  readonly onStalled: (idleFor: number) => void;
  readonly onError: (step: string, error: unknown) => void;
}

/** A claim that is not answered yet. */
interface Flight {
  readonly offered: readonly Offered[];
  readonly limit: number;
  /** by the limits of queues, tasks and tenants: one at a time, beside the others */
  readonly limited: boolean;
  readonly suspect: boolean;
  /** of a suspect's: those it may be of */
  readonly tasks?: readonly string[];
  /** takes jobs that may run at most once: nothing else may take the slots meant for them */
  readonly alone: boolean;
}

const MOST_FLIGHTS = 2;
/** As many lanes as make a claim of their own worth while. */
const MANY_LANES = 32;
const STALLED_AFTER = 30_000;
const WATCH_EVERY = 5_000;
/** Once it accepts connections again, claims resume within this. */
const LONGEST_REST = 1_500;

/**
 * Decides when to claim and how much: what can start soon and no more, out of the lanes that `Offers` knows to have work.
 * An idle worker asks the store once per poll and nothing else.
 */
export class Claimer implements Claims {
  readonly offers: Offers;
  readonly #flights = new Set<Flight>();
  readonly #backoff: Backoff;
  #asked = 0;
  #carefulPassedOver = false;
  #suspects = false;
  /** counts what is heard and asked, to tell which came first */
  #stamp = 0;
  #heard = 0;
  #sent = 0;
  /** whether the last claim showed that there may be more */
  #backlog = false;
  #looks = false;
  #open = false;
  #resting = false;
  #hungrySince: number | undefined;
  #sitter: Sitter | undefined;
  #hasLooked = false;
  #looksAfter = 0;
  #poll: Loop | undefined;
  #cancelWatch: (() => void) | undefined;
  #landed: (() => void)[] = [];

  constructor(private readonly parts: ClaimerParts) {
    const { clock, settings, plans, caps } = parts;
    this.offers = new Offers({ clock, settings, plans, caps, onOpen: () => this.want() });
    this.#backoff = new Backoff(clock, { min: 50, max: LONGEST_REST });
  }

  get lanes(): number {
    return this.offers.lanes;
  }

  get inFlight(): number {
    return this.#flights.size;
  }

  look(): void {
    const { clock, onError } = this.parts;
    this.#looks = true;
    this.#poll = loop({
      clock,
      step: () => this.#refresh(),
      onError: (error) => onError("look for work", error),
      backoff: { min: 50, max: LONGEST_REST },
      patience: STALLED_AFTER,
    });
  }

  start(): void {
    if (!this.#looks) this.look();
    this.#open = true;
    this.#sitter = sitterOf(this.parts);
    this.#watch();
    this.want();
  }

  /** No claim goes out from here on. Answers when those under way have come back. */
  stop(): Promise<void> {
    this.#looks = false;
    this.#open = false;
    void this.#poll?.stop();
    this.#cancelWatch?.();
    this.offers.stop();
    const stood = this.#sitter?.stop() ?? Promise.resolve();
    if (this.#flights.size === 0) return stood;
    return new Promise<void>((resolve) => this.#landed.push(resolve)).then(() => stood);
  }

  hear(hint: Hint): void {
    if (!this.#looks) return;
    if (hint.kind === "lanes" || hint.kind === "look") this.#poll?.wake();
    if (hint.kind !== "ready") return;
    this.#heard = ++this.#stamp;
    this.#sitter?.hear();
    this.offers.hear(hint.lanes, this.#stamp);
    this.want();
  }

  /** The store knows that a job of the lane is over: what it held of limits is free. */
  settled(lane: Lane): void {
    if (this.offers.settled(lane)) this.want();
  }

  /** Claims if it is worth it. Called whenever something changed, so it is cheap when nothing did. */
  want(): void {
    if (!this.#open || this.#resting) return;
    if (this.#suspects) this.#claimSuspect();
    while (this.#mayFly() && this.#claimSome());
    this.#sitter?.choose(this.#hasLooked && this.lanes === 0 && this.#flights.size === 0);
  }

  /** A second claim beside the first only where it should find something: a backlog, what was heard of since, or many lanes unasked. */
  #mayFly(): boolean {
    if (this.#flights.size === 0) return true;
    if (this.#flights.size >= MOST_FLIGHTS) return false;
    return this.#backlog || this.#heard > this.#sent || this.lanes - this.#lanesAsked >= MANY_LANES;
  }

  get #lanesAsked(): number {
    let count = 0;
    for (const { offered } of this.#flights) count += offered.length;
    return count;
  }

  get #limitedFlies(): boolean {
    for (const { limited } of this.#flights) if (limited) return true;
    return false;
  }

  #claimSome(): boolean {
    if (this.lanes === 0) return false;
    const { hands, settings } = this.parts;
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
    const offered = this.offers.next(limit, { careful: careful === "now", limited: !this.#limitedFlies });
    if (offered.length === 0) return false;
    const limited = offered.filter(({ lane }) => this.offers.isLimited(lane));
    const plain = limited.length === 0 ? offered : offered.filter(({ lane }) => !this.offers.isLimited(lane));
    if (plain.length > 0) this.#send(plain, careful === "now");
    if (limited.length > 0) this.#sendLimited(limited, careful === "now");
    return true;
  }

  /**
   * Jobs that run at most once are dead if their worker vanishes with them, started or not. So they are claimed into
   * free slots only, with empty hands and no other claim under way; after one claim without them, that moment is
   * waited for, so that a stream of others cannot keep them out for ever.
   */
  #mayBeCareful(pending: number): "now" | "no" | "wait" {
    for (const flight of this.#flights) if (flight.alone) return "wait";
    if (this.offers.careful === 0) return "no";
    if (pending === 0 && this.parts.hands.free > 0) {
      this.#carefulPassedOver = false;
      return "now";
    }
    if (this.#carefulPassedOver || this.offers.careful === this.lanes) return "wait";
    this.#carefulPassedOver = true;
    return "no";
  }

  #send(offered: readonly Offered[], alone: boolean): void {
    const stamp = this.#stamp++;
    this.#sent = stamp;
    const request = this.#requestFor(offered);
    const limit = sum(offered);
    this.#fly(
      { offered, limit, alone, limited: false, suspect: false },
      () => this.parts.store.leases.claim(request),
      (claimed) => {
        this.offers.brought(offered.length, limit, claimed?.jobs.length ?? 0);
        this.#backlog = isFull(claimed, limit) || this.offers.gave(offered, claimed, stamp);
      },
    );
  }

  #sendLimited(offered: readonly Offered[], alone: boolean): void {
    const stamp = this.#stamp++;
    const request = this.#requestFor(offered);
    const limit = sum(offered);
    let answer: LimitedClaim = { claimed: undefined, reached: [] };
    this.#fly(
      { offered, limit, alone, limited: true, suspect: false },
      async () => {
        answer = await this.parts.store.leases.claimLimited(request);
        return answer.claimed;
      },
      (claimed) => {
        this.offers.reached(answer.reached);
        if (!isFull(claimed, limit)) this.offers.gave(offered, claimed, stamp);
      },
    );
  }

  #requestFor(offered: readonly Offered[]): ClaimRequest {
    const { worker, settings } = this.parts;
    return { worker, quotas: offered, duration: settings.lease };
  }

  /** One at a time: if it takes this worker down again, it takes down nobody else's job with it, and is known by that. */
  #claimSuspect(): void {
    const { store, worker, settings, hands } = this.parts;
    if (hands.suspects > 0 || hands.free === 0 || this.#flights.size >= MOST_FLIGHTS) return;
    const { queues, bands, tenants, lease: duration } = settings;
    const { caps } = this.offers;
    const tasks = caps.admits(settings.tasks);
    if (tasks.length === 0) return;
    this.#suspects = false;
    caps.takeAny(tasks, 1);
    const some = { ...(bands === undefined ? {} : { bands }), ...(tenants === undefined ? {} : { tenants }) };
    this.#fly(
      { offered: [], limit: 1, alone: false, limited: false, suspect: true, tasks },
      () => store.leases.claimSuspect({ worker, queues, tasks, ...some, duration }),
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
    this.offers.landed(flight.offered);
    if (flight.tasks !== undefined) this.offers.caps.takeAny(flight.tasks, -1);
    if (this.#flights.size === 0) for (const resolve of this.#landed.splice(0)) resolve();
  }

  /** A look at thousands of lanes takes its time: while wake-ups ask for one after the other, claims have as much. */
  async #refresh(): Promise<number> {
    const { store, settings, clock } = this.parts;
    const began = clock.monotonic();
    if (began < this.#looksAfter) return this.#looksAfter - began;
    const since = this.#stamp++;
    const live = await store.lanes.live(settings.queues, settings.tasks);
    await this.offers.refresh(live, store.policies, since);
    this.#suspects = live.suspects;
    this.#hasLooked = true;
    this.want();
    const now = clock.monotonic();
    this.#looksAfter = now + (now - began);
    // Spread, so that many workers do not look all at once; never sooner than the poll, so that rest stays cheap.
    return settings.poll * (store.hearsOthers() ? 2 : 1) * (1 + 0.2 * clock.random());
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

function isFull(claimed: Claimed | undefined, limit: number): boolean {
  return claimed !== undefined && claimed.jobs.length >= limit;
}

function sum(offered: readonly Offered[]): number {
  let total = 0;
  for (const { quota } of offered) total += quota;
  return total;
}
