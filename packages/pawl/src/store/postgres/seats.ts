import { dueTimeOf, type LeaseId } from "../../core/id.js";
import type { Intent, JobOptions } from "../../core/job.js";
import type { Clock } from "../../runtime/clock.js";
import { type Loop, loop } from "../../runtime/loop.js";
import type { ClaimedJob } from "../port-leases.js";
import type { Handed, Seat, SeatOptions, Seats } from "../port-seats.js";
import { textArray } from "./arrays.js";
import { FIELD } from "./claim-answer.js";
import type { Db } from "./db.js";
import { readApart } from "./facts-apart.js";
import type { Hints } from "./hints.js";
import type { LaneBounds } from "./lane-bounds.js";
import { laneOf } from "./pending.js";
import { renew } from "./renew.js";
import { DRAW_NUMBERS, HANDED, type HandedHead, type HandedRow, type SeatRow, SIT, STAND_UP } from "./seat-statements.js";
import type { Workers } from "./workers.js";

/** ms a seat is good for */
const GOOD_FOR = 15_000;
/** Part of a lease after which one sits anew, ms at most: a message that was lost is made up for while the lease lasts. */
const SIT_ANEW = 2 / 3;
const LONGEST_SIT = 10_000;
/** ms after which it is looked again whether there is somewhere to sit */
const LOOK_AGAIN = 1_000;
/** ms after which what was handed over is late: it is renewed before it is begun */
const LATE = 1_000;
const MOST_KNOWN = 100;
/** Numbers of leases drawn at a time, and how many are left when more are drawn. */
const DRAWN = 200;
const FEW = 20;

/** A job as a message brings it (what was too long for one is left out), or as its rows say. */
interface Arrival extends HandedHead {
  readonly facts?: { readonly input: string; readonly options: string | null };
  readonly intent?: Intent;
}

export interface SeatsParts {
  readonly db: Db;
  readonly workers: Workers;
  readonly hints: Hints;
  readonly bounds: LaneBounds;
  readonly clock: Clock;
}

/** Of a lease to be, at the server that gave it. */
interface LeaseNumber {
  readonly number: string;
  readonly server: string;
}

/** Numbers for the leases that come of seats, drawn ahead: a number that is drawn waits for the disk, and nobody sits meanwhile. */
class LeaseNumbers {
  #left: LeaseNumber[] = [];
  #drawing: Promise<void> | undefined;

  constructor(private readonly db: Db) {}

  async take(): Promise<LeaseNumber> {
    for (;;) {
      const number = this.#left.shift();
      // If that fails, it is tried again, and told, when none is left.
      if (number !== undefined && this.#left.length < FEW) this.#draw().catch(() => {});
      if (number !== undefined) return number;
      await this.#draw();
    }
  }

  /** Another server answers. */
  forget(): void {
    this.#left = [];
  }

  #draw(): Promise<void> {
    this.#drawing ??= this.db
      .query<{ numbers: readonly string[]; server: string }>(DRAW_NUMBERS, [DRAWN])
      .then((rows) => {
        for (const { numbers, server } of rows) this.#left.push(...numbers.map((number) => ({ number, server })));
      })
      .finally(() => {
        this.#drawing = undefined;
      });
    return this.#drawing;
  }
}

/** The seats of the workers of this process, and what is said to it alone. */
export class PostgresSeats implements Seats {
  readonly #byWorker = new Map<number, PostgresSeat>();
  readonly #numbers: LeaseNumbers;

  constructor(private readonly parts: SeatsParts) {
    this.#numbers = new LeaseNumbers(parts.db);
  }

  of(options: SeatOptions): Seat {
    this.parts.hints.hearSeats({
      message: (payload) => this.#hear(payload),
      up: () => {
        for (const seat of this.#byWorker.values()) seat.look();
      },
    });
    return new PostgresSeat(this.parts, options, this.#byWorker, this.#numbers);
  }

  #hear(payload: string): void {
    const [head = "", input, options = ""] = payload.split(FIELD);
    const read = JSON.parse(head) as HandedHead;
    void this.#byWorker
      .get(read.worker)
      ?.arrived(input === undefined ? read : { ...read, facts: { input, options: options === "" ? null : options } });
  }
}

/**
 * A seat is a row. An enqueue of one job marks it with the lease that it made for the worker, and tells the worker by a message
 * that only its process hears. A message may be lost, late, or come twice: the row says what there is, so it is looked at
 * whenever one sits anew or stands up. If even that fails, the lease runs out, as that of any claim whose answer was lost.
 */
class PostgresSeat implements Seat {
  #wanted = false;
  #seat: string | null = null;
  /** made of a seat that is gone, and not heard of */
  #unheard: LeaseId | undefined;
  /** leases that were heard of, the last one last */
  readonly #known = new Set<LeaseId>();
  /** from the server's clock to ours: by ours it is no earlier */
  #offset = Number.POSITIVE_INFINITY;
  #worker: number | undefined;
  /** a number that the last seat did not need */
  #spare: LeaseNumber | undefined;
  readonly #steps: Loop;

  constructor(
    private readonly parts: SeatsParts,
    private readonly options: SeatOptions,
    private readonly byWorker: Map<number, PostgresSeat>,
    private readonly numbers: LeaseNumbers,
  ) {
    const { clock } = parts;
    this.#steps = loop({ clock, step: () => this.#step(), onError: options.onError, backoff: { min: 50, max: LOOK_AGAIN } });
  }

  sit(): void {
    this.#wanted = true;
    this.look();
  }

  standUp(): void {
    this.#wanted = false;
    this.look();
  }

  look(): void {
    this.#steps.wake();
  }

  async leave(): Promise<void> {
    this.#wanted = false;
    await this.#steps.stop();
    await this.#step().catch(this.options.onError);
    if (this.#worker !== undefined) this.byWorker.delete(this.#worker);
  }

  async #step(): Promise<number | undefined> {
    const { workers, hints } = this.parts;
    if (this.#worker === undefined) {
      this.#worker = await workers.id(this.options.worker);
      this.byWorker.set(this.#worker, this);
    }
    const listener = this.#wanted ? hints.listener : undefined;
    if (this.#unheard === undefined) {
      this.#unheard = listener === undefined ? await this.#rise() : await this.#sitDown(this.#worker, listener);
      // Long after: nothing may be heard by that connection any more.
      if (this.#unheard !== undefined && listener !== undefined) hints.relisten();
    }
    if (this.#unheard !== undefined) {
      await this.#find(this.#worker, this.#unheard);
      this.#unheard = undefined;
    }
    if (!this.#wanted) return undefined;
    return listener === undefined || this.#seat === null ? LOOK_AGAIN : Math.min(LONGEST_SIT, this.options.duration * SIT_ANEW);
  }

  /** Sits in place of the seat it had. If a lease came of that one which is not known, answers it, and does not sit. */
  async #sitDown(worker: number, listener: number): Promise<LeaseId | undefined> {
    const { db, hints, bounds, clock } = this.parts;
    const { queues, tasks, duration } = this.options;
    const next = this.#spare ?? (await this.numbers.take());
    // Until it is known not to be: whoever hears no answer may have a seat with it.
    this.#spare = undefined;
    const sentAt = clock.monotonic();
    const serves = [queues === undefined ? null : textArray(queues), textArray(tasks)];
    const last = [...this.#known].at(-1) ?? null;
    const values = [
      db.now(),
      this.#seat,
      GOOD_FOR,
      worker,
      listener,
      hints.seatChannel,
      duration,
      bounds.seenUpTo,
      last,
      ...serves,
      next.number,
      next.server,
    ];
    const [{ seat, number, lease, now }] = (await db.query<SeatRow>(SIT, values)) as [SeatRow];
    this.#seat = seat;
    if (seat === null && lease === null) this.numbers.forget();
    else if (number !== next.number) this.#spare = next;
    // The server's clock was read after the question was sent.
    this.#offset = sentAt - now;
    return this.#news(lease);
  }

  async #rise(): Promise<LeaseId | undefined> {
    if (this.#seat === null) return undefined;
    const [row] = await this.parts.db.query<{ lease: LeaseId | null }>(STAND_UP, [this.#seat, this.#worker]);
    this.#seat = null;
    return this.#news(row?.lease ?? null);
  }

  #news(lease: LeaseId | null): LeaseId | undefined {
    return lease === null || this.#known.has(lease) ? undefined : lease;
  }

  async #find(worker: number, lease: LeaseId): Promise<void> {
    const [row] = await this.parts.db.query<HandedRow>(HANDED, [lease, worker]);
    if (row === undefined) return;
    const { job, home, now, intent } = row;
    await this.arrived({ worker, lease, now, job, home, lane: laneOf(row), ...(intent === null ? {} : { intent }) });
  }

  /** Whoever comes first, the message or the row. */
  async arrived(arrival: Arrival): Promise<void> {
    const { lease } = arrival;
    if (this.#known.has(lease)) return;
    if (this.#known.size >= MOST_KNOWN) this.#known.delete(this.#known.values().next().value as LeaseId);
    this.#known.add(lease);
    this.#wanted = false;
    // It came of a seat that was thought to be gone: nobody sits in the one there is.
    if (arrival.seat !== undefined && arrival.seat !== this.#seat) this.look();
    try {
      const handed = await this.#handed(arrival);
      if (handed !== undefined) this.options.onHanded(handed);
    } catch (error) {
      // Nobody has begun it. The lease runs out.
      this.options.onError(error);
    }
  }

  async #handed({ worker, lease, now, job, home, lane, facts: told, intent }: Arrival): Promise<Handed | undefined> {
    const { db, clock } = this.parts;
    const { duration } = this.options;
    const heardAt = clock.monotonic();
    let since = Math.min(now + this.#offset, heardAt);
    const age = heardAt - since;
    const facts = told ?? (await readApart(db, [job])).get(job);
    if (age > LATE) {
      since = clock.monotonic();
      if ((await renew(db, worker, [lease], duration)).held.length === 0) return undefined;
    }
    const claimed: ClaimedJob = {
      id: job,
      lane,
      input: facts?.input,
      options: facts?.options == null ? undefined : (JSON.parse(facts.options) as JobOptions),
      dueAt: facts?.options == null ? dueTimeOf(job) : now,
      spent: 0,
      crashes: 0,
      at: { place: 1, home },
      ...(intent === undefined ? {} : { intent }),
    };
    return { claimed: { lease, now: now + age, jobs: [claimed] }, since };
  }
}
