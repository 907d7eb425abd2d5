import { type Lane, laneKey } from "../../core/lane.js";
import type { Clock } from "../../runtime/clock.js";
import { newToken } from "../../runtime/identity.js";
import type { Hint } from "../port.js";
import { textArray } from "./arrays.js";
import { type Db, hotStatement } from "./db.js";
import type { Subscription } from "./drivers/driver.js";
import type { Ride } from "./enqueue-one.js";

/** Its commit need not wait for the disk: what it says is no loss, and the cluster-wide lock it takes is held the shorter. */
const NOTIFY = hotStatement("enqueue", "notify", "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)::text");
/** The same for several messages. */
const NOTIFY_ALL = hotStatement(
  "enqueue",
  "notify_all",
  "select set_config('synchronous_commit', 'off', true), (select count(pg_notify($1, m)::text) from unnest($2::text[]) as m)::int as sent",
);

/** NOTIFY takes a cluster-wide lock at commit: at most one per process and this many ms. */
const NOTIFY_PACE = 5;
/** ms of silence before a wake-up rides with what it tells of */
const RIDE_AFTER = 10;
/** More lanes than this say no more than "look": for thousands at a time that is dearer than to be told of them. */
const MOST_LANES = 1_000;
/** bytes of a message, and of the lanes in one; NOTIFY takes less than 8,000 */
const LONGEST = 7_900;
const LONGEST_LANES = 7_500;
/** ms between proofs that LISTEN still hears; a pooler or a dead link is silent, not broken */
const CANARY_PACE = 10_000;
const CANARY_PATIENCE = 3_000;

interface Message {
  /** who sent it: a process does not listen to itself */
  readonly from: string;
  readonly hints: readonly Hint[];
  readonly canary?: number;
}

/** Who hears what is said to this process alone. */
export interface SeatListener {
  message(payload: string): void;
  /** anything may have been missed */
  up(): void;
}

/**
 * Wake-ups, here at once and elsewhere by NOTIFY: coalesced on the leading edge, outside everybody's transaction, and
 * never relied upon. All loops poll as well; while `hears()` they may do so less often.
 */
export class Hints {
  readonly #listeners = new Set<(hint: Hint) => void>();
  readonly #lanes = new Map<string, Lane>();
  /** those of which the front is meant */
  readonly #fronts = new Map<string, Lane>();
  #dueIn: number | undefined;
  #tickIn: number | undefined;
  #admitIn: number | undefined;
  #intent = false;
  #look = false;
  #watch = false;
  #events = false;
  #lastSent = Number.NEGATIVE_INFINITY;
  #timer: (() => void) | undefined;
  #subscription: Subscription | undefined;
  #canary = 0;
  #heard = 0;
  /** ever, by whatever connection */
  #hasHeard = false;
  /** who waits for a message of its own to arrive */
  readonly #proofs = new Set<() => void>();
  #canaryTimer: (() => void) | undefined;
  #closed = false;
  readonly #channel: string;
  /** Of jobs that are ready: those who look for none are not woken by each that comes. */
  readonly #workChannel: string;
  #looksForWork = false;
  /** Nobody can guess it, so nobody but the store's own statements, which read it, can say that a job is handed over. */
  readonly seatChannel: string;
  #seats: SeatListener | undefined;
  #listener: number | undefined;

  constructor(
    readonly db: Db,
    readonly clock: Clock,
    readonly self: string,
    /** false where nobody else can be: one process owns the store */
    readonly others: boolean,
  ) {
    this.#channel = db.schema;
    // A channel's name is at most 63 bytes. Two schemas that differ behind that wake each other for nothing.
    this.#workChannel = `${db.schema.slice(0, 58)}.work`;
    this.seatChannel = `${db.schema.slice(0, 20)}.${newToken()}`;
    if (others) this.#listen();
  }

  on(listener: (hint: Hint) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Sends itself a message, and waits for it: the one sure sign that LISTEN hears. */
  hearsItself(): Promise<boolean> {
    if (!this.others) return Promise.resolve(true);
    return new Promise((resolve) => {
      const answer = (heard: boolean) => {
        this.#proofs.delete(proof);
        giveUp();
        resolve(heard);
      };
      const proof = () => answer(true);
      const giveUp = this.clock.after(CANARY_PATIENCE, () => answer(false));
      this.#proofs.add(proof);
      // Before it listens there is nothing to prove; when it does, it probes by itself.
      if (this.#canary > 0) this.#probe();
    });
  }

  /** From now on somebody here looks for work. */
  hearWork(): void {
    if (this.#looksForWork) return;
    this.#looksForWork = true;
    this.#subscription?.also(this.#workChannel);
  }

  /** From now on somebody here waits for what is handed to it. */
  hearSeats(listener: SeatListener): void {
    if (this.#seats !== undefined) return;
    this.#seats = listener;
    // Known again once that channel is heard as well.
    this.#listener = undefined;
    this.#subscription?.also(this.seatChannel);
  }

  /** The server's process that speaks to this one, while it is known to be heard. */
  get listener(): number | undefined {
    return this.#heard > 0 && this.hears() ? this.#listener : undefined;
  }

  hears(): boolean {
    return !this.others || (this.#canary > 0 && this.#heard >= this.#canary - 1);
  }

  give(hint: Hint): void {
    this.tell(hint);
    if (!this.others || hint.kind === "finished") return;
    if (hint.kind === "ready") for (const lane of hint.lanes) (hint.front === true ? this.#fronts : this.#lanes).set(laneKey(lane), lane);
    else if (hint.kind === "scheduled") this.#dueIn = Math.min(this.#dueIn ?? hint.dueIn, hint.dueIn);
    else if (hint.kind === "tick") this.#tickIn = Math.min(this.#tickIn ?? hint.dueIn, hint.dueIn);
    else if (hint.kind === "admit") this.#admitIn = Math.min(this.#admitIn ?? hint.dueIn, hint.dueIn);
    else if (hint.kind === "intent") this.#intent = true;
    else if (hint.kind === "watch") this.#watch = true;
    else if (hint.kind === "events") this.#events = true;
    else this.#look = true;
    this.#sendSoon();
  }

  /**
   * The wake-up for these lanes, to be sent by a statement of our own together with what it is about: sooner by a round
   * trip. Only after a silence, since the lock of such a commit is held until the disk has it; undefined otherwise.
   */
  ride(lanes: readonly Lane[]): Ride | undefined {
    const now = this.clock.monotonic();
    if (!this.others || this.#closed || this.#timer !== undefined || now - this.#lastSent < RIDE_AFTER) return undefined;
    this.#lastSent = now;
    return { channel: this.#workChannel, payload: JSON.stringify({ from: this.self, hints: [{ kind: "ready", lanes }] } satisfies Message) };
  }

  /** Here only: the others were told by a ride. */
  tell(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.();
    this.#canaryTimer?.();
    this.#listeners.clear();
    await this.#subscription?.close();
  }

  #sendSoon(): void {
    if (this.#timer !== undefined || this.#closed) return;
    const wait = this.#lastSent + NOTIFY_PACE - this.clock.monotonic();
    if (wait <= 0) this.#send();
    else this.#timer = this.clock.after(wait, () => this.#send());
  }

  #send(): void {
    this.#timer = undefined;
    this.#lastSent = this.clock.monotonic();
    const hints: Hint[] = [];
    if (this.#look) hints.push({ kind: "lanes" });
    else if (this.#lanes.size + this.#fronts.size > MOST_LANES) this.#notify(this.#workChannel, [{ kind: "lanes" }]);
    else {
      if (this.#lanes.size > 0) this.#notifyOf([...this.#lanes.values()], {});
      if (this.#fronts.size > 0) this.#notifyOf([...this.#fronts.values()], { front: true });
    }
    if (this.#dueIn !== undefined) hints.push({ kind: "scheduled", dueIn: this.#dueIn });
    if (this.#tickIn !== undefined) hints.push({ kind: "tick", dueIn: this.#tickIn });
    if (this.#admitIn !== undefined) hints.push({ kind: "admit", dueIn: this.#admitIn });
    if (this.#intent) hints.push({ kind: "intent" });
    if (this.#watch) hints.push({ kind: "watch" });
    if (this.#events) hints.push({ kind: "events" });
    this.#lanes.clear();
    this.#fronts.clear();
    this.#dueIn = undefined;
    this.#tickIn = undefined;
    this.#admitIn = undefined;
    this.#intent = false;
    this.#look = false;
    this.#watch = false;
    this.#events = false;
    if (hints.length > 0) this.#notify(this.#channel, hints);
  }

  /** As many lanes to a message as fit. */
  #notifyOf(lanes: readonly Lane[], where: { readonly front?: true }): void {
    const parts = inParts(lanes);
    if (parts.length === 1) this.#notify(this.#workChannel, [{ kind: "ready", lanes, ...where }]);
    else {
      const messages = parts.map((part) => this.#message([{ kind: "ready", lanes: part, ...where }]));
      this.db.query(NOTIFY_ALL, [this.#workChannel, textArray(messages)]).catch(() => {});
    }
  }

  /** A hint that cannot be sent is a hint lost: the others poll. */
  #notify(channel: string, hints: readonly Hint[], canary?: number): void {
    this.db.query(NOTIFY, [channel, this.#message(hints, canary)]).catch(() => {});
  }

  #message(hints: readonly Hint[], canary?: number): string {
    const message = (hints: readonly Hint[]) =>
      JSON.stringify({ from: this.self, hints, ...(canary === undefined ? {} : { canary }) } satisfies Message);
    const whole = message(hints);
    return Buffer.byteLength(whole) > LONGEST ? message([{ kind: "lanes" }]) : whole;
  }

  #listen(): void {
    this.#subscription = this.db.driver.listen(this.#channel, {
      message: (payload, channel) => this.#receive(payload, channel),
      up: (listener) => {
        this.#listener = listener;
        this.tell({ kind: "lanes" });
        this.#probe();
        this.#seats?.up();
      },
      down: () => {
        this.#listener = undefined;
        this.#canary = 0;
        this.#heard = 0;
      },
    });
    if (this.#looksForWork) this.#subscription.also(this.#workChannel);
    if (this.#seats !== undefined) this.#subscription.also(this.seatChannel);
  }

  /** Whoever can connect can say anything here: what cannot be understood is passed over. */
  #receive(payload: string, channel: string): void {
    try {
      if (channel === this.seatChannel) this.#seats?.message(payload);
      else this.#understand(JSON.parse(payload) as Message);
    } catch {}
  }

  #understand(message: Message): void {
    if (message.from === this.self) {
      if (message.canary !== undefined) {
        this.#heard = Math.max(this.#heard, message.canary);
        this.#hasHeard = true;
        for (const proof of this.#proofs) proof();
      }
      return;
    }
    for (const hint of message.hints) this.tell(hint);
  }

  /** Sends itself a message now and then. If it does not come back, the connection is replaced. */
  #probe(): void {
    this.#canaryTimer?.();
    if (this.#closed) return;
    this.#canary++;
    this.#notify(this.#channel, [], this.#canary);
    const sent = this.#canary;
    this.#canaryTimer = this.clock.after(CANARY_PATIENCE, () => {
      if (this.#heard < sent && this.#hasHeard) this.relisten();
      else this.#canaryTimer = this.clock.after(CANARY_PACE - CANARY_PATIENCE, () => this.#probe());
    });
  }

  /** It heard once and does not any more. (One that never heard, behind a pooler, is left alone: polling serves.) */
  relisten(): void {
    const deaf = this.#subscription;
    this.#listener = undefined;
    this.#canary = 0;
    this.#heard = 0;
    deaf?.close().catch(() => {});
    if (!this.#closed) this.#listen();
  }
}

function inParts(lanes: readonly Lane[]): readonly (readonly Lane[])[] {
  const parts: Lane[][] = [];
  let left = 0;
  for (const lane of lanes) {
    const bytes = Buffer.byteLength(JSON.stringify(lane)) + 1;
    if (bytes > left) {
      parts.push([]);
      left = LONGEST_LANES;
    }
    parts.at(-1)?.push(lane);
    left -= bytes;
  }
  return parts;
}
