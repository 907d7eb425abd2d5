import { type Lane, laneKey } from "../../../core/jobs/lane.js";
import { newToken } from "../../../runtime/process/identity.js";
import type { Clock } from "../../../runtime/time/clock.js";
import type { Wakeup } from "../../port/index.js";
import { textArray } from "../connection/arrays.js";
import { type Db, hotStatement } from "../connection/db.js";
import type { Subscription } from "../drivers/driver.js";
import type { InlineNotify } from "../enqueue/enqueue-one.js";

/** Its commit need not wait for the disk: what it says is no loss, and the cluster-wide lock it takes is held the shorter. */
const NOTIFY = hotStatement("enqueue", "notify", "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)::text");
/** The same for several messages. */
const NOTIFY_ALL = hotStatement(
  "enqueue",
  "notify_all",
  "select set_config('synchronous_commit', 'off', true), (select count(pg_notify($1, m)::text) from unnest($2::text[]) as m)::int as sent",
);

/** NOTIFY takes a cluster-wide lock at commit: at most one per process and this many ms. */
const NOTIFY_INTERVAL_MS = 5;
/** ms of silence before a wakeup is sent by the statement that it is about */
const INLINE_NOTIFY_AFTER_MS = 10;
/** More lanes than this say no more than "look": for thousands at a time that is dearer than to be told of them. */
const MAX_LANES = 1_000;
/** bytes of a message, and of the lanes in one; NOTIFY takes less than 8,000 */
const MAX_MESSAGE_BYTES = 7_900;
const MAX_LANES_BYTES = 7_500;
/** ms between proofs that LISTEN still hears; a pooler or a dead link is silent, not broken */
const LISTEN_CHECK_INTERVAL_MS = 10_000;
const LISTEN_CHECK_TIMEOUT_MS = 3_000;

interface Message {
  /** who sent it: a process does not listen to itself */
  readonly from: string;
  readonly wakeups: readonly Wakeup[];
  readonly listenCheck?: number;
}

/** Who hears what is said to this process alone. */
export interface HandoffListener {
  message(payload: string): void;
  /** anything may have been missed */
  up(): void;
}

/**
 * Wakeups, here at once and elsewhere by NOTIFY: coalesced on the leading edge, outside everybody's transaction, and
 * never relied upon. All loops poll as well; while `receives()` they may do so less often.
 */
export class Wakeups {
  readonly #listeners = new Set<(wakeup: Wakeup) => void>();
  readonly #lanes = new Map<string, Lane>();
  /** those of which the admitted section is meant */
  readonly #admittedSections = new Map<string, Lane>();
  #dueIn: number | undefined;
  #tickIn: number | undefined;
  #admitIn: number | undefined;
  #intent = false;
  #lanesChanged = false;
  #watch = false;
  #events = false;
  #lastSent = Number.NEGATIVE_INFINITY;
  #timer: (() => void) | undefined;
  #subscription: Subscription | undefined;
  #listenCheck = 0;
  #lastReceived = 0;
  /** ever, by whatever connection */
  #hasReceived = false;
  /** who waits for a message of its own to arrive */
  readonly #checks = new Set<() => void>();
  #listenCheckTimer: (() => void) | undefined;
  #closed = false;
  readonly #channel: string;
  /** Of jobs that are ready: those who look for none are not woken by each that comes. */
  readonly #workChannel: string;
  #findsWork = false;
  /** Nobody can guess it, so nobody but the store's own statements, which read it, can say that a job is handed over. */
  readonly handoffChannel: string;
  #handoffs: HandoffListener | undefined;
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
    this.handoffChannel = `${db.schema.slice(0, 20)}.${newToken()}`;
    if (others) this.#listen();
  }

  on(listener: (wakeup: Wakeup) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Sends itself a message, and waits for it: the one sure sign that LISTEN hears. */
  receivesItself(): Promise<boolean> {
    if (!this.others) return Promise.resolve(true);
    return new Promise((resolve) => {
      const answer = (received: boolean) => {
        this.#checks.delete(onReceived);
        stopTimer();
        resolve(received);
      };
      const onReceived = () => answer(true);
      const stopTimer = this.clock.after(LISTEN_CHECK_TIMEOUT_MS, () => answer(false));
      this.#checks.add(onReceived);
      // Before it listens there is nothing to prove; when it does, it probes by itself.
      if (this.#listenCheck > 0) this.#checkListen();
    });
  }

  /** From now on somebody here looks for work. */
  listenForWork(): void {
    if (this.#findsWork) return;
    this.#findsWork = true;
    this.#subscription?.also(this.#workChannel);
  }

  /** From now on somebody here waits for what is handed to it. */
  listenForHandoffs(listener: HandoffListener): void {
    if (this.#handoffs !== undefined) return;
    this.#handoffs = listener;
    // Known again once that channel is heard as well.
    this.#listener = undefined;
    this.#subscription?.also(this.handoffChannel);
  }

  /** The server's process that speaks to this one, while it is known to be heard. */
  get listener(): number | undefined {
    return this.#lastReceived > 0 && this.receives() ? this.#listener : undefined;
  }

  receives(): boolean {
    return !this.others || (this.#listenCheck > 0 && this.#lastReceived >= this.#listenCheck - 1);
  }

  send(wakeup: Wakeup): void {
    this.notifyHere(wakeup);
    if (!this.others || wakeup.kind === "finished") return;
    if (wakeup.kind === "ready")
      for (const lane of wakeup.lanes) (wakeup.admittedSection === true ? this.#admittedSections : this.#lanes).set(laneKey(lane), lane);
    else if (wakeup.kind === "scheduled") this.#dueIn = Math.min(this.#dueIn ?? wakeup.dueIn, wakeup.dueIn);
    else if (wakeup.kind === "tick") this.#tickIn = Math.min(this.#tickIn ?? wakeup.dueIn, wakeup.dueIn);
    else if (wakeup.kind === "admit") this.#admitIn = Math.min(this.#admitIn ?? wakeup.dueIn, wakeup.dueIn);
    else if (wakeup.kind === "intent") this.#intent = true;
    else if (wakeup.kind === "watch") this.#watch = true;
    else if (wakeup.kind === "events") this.#events = true;
    else this.#lanesChanged = true;
    this.#sendSoon();
  }

  /**
   * The wakeup for these lanes, to be sent by a statement of our own together with what it is about: sooner by a round
   * trip. Only after a silence, since the lock of such a commit is held until the disk has it; undefined otherwise.
   */
  inlineNotify(lanes: readonly Lane[]): InlineNotify | undefined {
    const now = this.clock.monotonic();
    if (!this.others || this.#closed || this.#timer !== undefined || now - this.#lastSent < INLINE_NOTIFY_AFTER_MS) return undefined;
    this.#lastSent = now;
    return { channel: this.#workChannel, payload: JSON.stringify({ from: this.self, wakeups: [{ kind: "ready", lanes }] } satisfies Message) };
  }

  /** Here only: the others were notified inline. */
  notifyHere(wakeup: Wakeup): void {
    for (const listener of this.#listeners) listener(wakeup);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.();
    this.#listenCheckTimer?.();
    this.#listeners.clear();
    await this.#subscription?.close();
  }

  #sendSoon(): void {
    if (this.#timer !== undefined || this.#closed) return;
    const wait = this.#lastSent + NOTIFY_INTERVAL_MS - this.clock.monotonic();
    if (wait <= 0) this.#send();
    else this.#timer = this.clock.after(wait, () => this.#send());
  }

  #send(): void {
    this.#timer = undefined;
    this.#lastSent = this.clock.monotonic();
    const wakeups: Wakeup[] = [];
    if (this.#lanesChanged) wakeups.push({ kind: "lanes" });
    else if (this.#lanes.size + this.#admittedSections.size > MAX_LANES) this.#notify(this.#workChannel, [{ kind: "lanes" }]);
    else {
      if (this.#lanes.size > 0) this.#notifyOf([...this.#lanes.values()], {});
      if (this.#admittedSections.size > 0) this.#notifyOf([...this.#admittedSections.values()], { admittedSection: true });
    }
    if (this.#dueIn !== undefined) wakeups.push({ kind: "scheduled", dueIn: this.#dueIn });
    if (this.#tickIn !== undefined) wakeups.push({ kind: "tick", dueIn: this.#tickIn });
    if (this.#admitIn !== undefined) wakeups.push({ kind: "admit", dueIn: this.#admitIn });
    if (this.#intent) wakeups.push({ kind: "intent" });
    if (this.#watch) wakeups.push({ kind: "watch" });
    if (this.#events) wakeups.push({ kind: "events" });
    this.#lanes.clear();
    this.#admittedSections.clear();
    this.#dueIn = undefined;
    this.#tickIn = undefined;
    this.#admitIn = undefined;
    this.#intent = false;
    this.#lanesChanged = false;
    this.#watch = false;
    this.#events = false;
    if (wakeups.length > 0) this.#notify(this.#channel, wakeups);
  }

  /** As many lanes to a message as fit. */
  #notifyOf(lanes: readonly Lane[], where: { readonly admittedSection?: true }): void {
    const groups = inMessages(lanes);
    if (groups.length === 1) this.#notify(this.#workChannel, [{ kind: "ready", lanes, ...where }]);
    else {
      const messages = groups.map((group) => this.#message([{ kind: "ready", lanes: group, ...where }]));
      this.db.query(NOTIFY_ALL, [this.#workChannel, textArray(messages)]).catch(() => {});
    }
  }

  /** A wakeup that cannot be sent is a wakeup lost: the others poll. */
  #notify(channel: string, wakeups: readonly Wakeup[], listenCheck?: number): void {
    this.db.query(NOTIFY, [channel, this.#message(wakeups, listenCheck)]).catch(() => {});
  }

  #message(wakeups: readonly Wakeup[], listenCheck?: number): string {
    const message = (wakeups: readonly Wakeup[]) =>
      JSON.stringify({ from: this.self, wakeups, ...(listenCheck === undefined ? {} : { listenCheck }) } satisfies Message);
    const whole = message(wakeups);
    return Buffer.byteLength(whole) > MAX_MESSAGE_BYTES ? message([{ kind: "lanes" }]) : whole;
  }

  #listen(): void {
    this.#subscription = this.db.driver.listen(this.#channel, {
      message: (payload, channel) => this.#receive(payload, channel),
      up: (listener) => {
        this.#listener = listener;
        this.notifyHere({ kind: "lanes" });
        this.#checkListen();
        this.#handoffs?.up();
      },
      down: () => {
        this.#listener = undefined;
        this.#listenCheck = 0;
        this.#lastReceived = 0;
      },
    });
    if (this.#findsWork) this.#subscription.also(this.#workChannel);
    if (this.#handoffs !== undefined) this.#subscription.also(this.handoffChannel);
  }

  /** Whoever can connect can say anything here: what cannot be understood is passed over. */
  #receive(payload: string, channel: string): void {
    try {
      if (channel === this.handoffChannel) this.#handoffs?.message(payload);
      else this.#onMessage(JSON.parse(payload) as Message);
    } catch {}
  }

  #onMessage(message: Message): void {
    if (message.from === this.self) {
      if (message.listenCheck !== undefined) {
        this.#lastReceived = Math.max(this.#lastReceived, message.listenCheck);
        this.#hasReceived = true;
        for (const onReceived of this.#checks) onReceived();
      }
      return;
    }
    for (const wakeup of message.wakeups) this.notifyHere(wakeup);
  }

  /** Sends itself a message now and then. If it does not come back, the connection is replaced. */
  #checkListen(): void {
    this.#listenCheckTimer?.();
    if (this.#closed) return;
    this.#listenCheck++;
    this.#notify(this.#channel, [], this.#listenCheck);
    const sent = this.#listenCheck;
    this.#listenCheckTimer = this.clock.after(LISTEN_CHECK_TIMEOUT_MS, () => {
      if (this.#lastReceived < sent && this.#hasReceived) this.relisten();
      else this.#listenCheckTimer = this.clock.after(LISTEN_CHECK_INTERVAL_MS - LISTEN_CHECK_TIMEOUT_MS, () => this.#checkListen());
    });
  }

  /** It heard once and does not any more. (One that never heard, behind a pooler, is left alone: polling serves.) */
  relisten(): void {
    const old = this.#subscription;
    this.#listener = undefined;
    this.#listenCheck = 0;
    this.#lastReceived = 0;
    old?.close().catch(() => {});
    if (!this.#closed) this.#listen();
  }
}

function inMessages(lanes: readonly Lane[]): readonly (readonly Lane[])[] {
  const groups: Lane[][] = [];
  let bytesLeft = 0;
  for (const lane of lanes) {
    const bytes = Buffer.byteLength(JSON.stringify(lane)) + 1;
    if (bytes > bytesLeft) {
      groups.push([]);
      bytesLeft = MAX_LANES_BYTES;
    }
    groups.at(-1)?.push(lane);
    bytesLeft -= bytes;
  }
  return groups;
}
