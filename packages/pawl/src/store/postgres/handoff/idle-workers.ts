import { dueTimeOf, type LeaseId } from "../../../core/jobs/id.js";
import type { Intent, JobOptions } from "../../../core/jobs/job.js";
import type { Clock } from "../../../runtime/time/clock.js";
import { type Loop, loop } from "../../../runtime/time/loop.js";
import type { DirectHandoff, Handoff, IdleWorker, IdleWorkerOptions } from "../../port/claim/direct-handoff.js";
import type { ClaimedJob } from "../../port/settle/leases.js";
import { readJobDetails } from "../claim/job-details.js";
import type { LaneStarts } from "../claim/lane-starts.js";
import type { WorkerIds } from "../claim/worker-ids.js";
import type { Db } from "../connection/db.js";
import { FIELD_SEPARATOR } from "../connection/sql-constants.js";
import { sqlFile } from "../connection/sql-statement.js";
import { laneOf } from "../jobs/waiting-jobs.js";
import { renew } from "../settle/renew.js";
import type { Wakeups } from "../wakeups/wakeups.js";
import type { HandoffMessage, HandoffRow, RegisteredRow } from "./handoff-rows.js";

const DRAW_LEASE_NUMBERS = sqlFile("handoff/draw-lease-numbers.sql");
const REGISTER_IDLE_WORKER = sqlFile("handoff/register-idle-worker.sql", { hot: "claim" });
const UNREGISTER_IDLE_WORKER = sqlFile("handoff/unregister-idle-worker.sql", { hot: "claim" });
const READ_HANDOFF = sqlFile("handoff/read-handoff.sql");

/** ms a registration is good for */
const REGISTERED_FOR_MS = 15_000;
/** Part of a lease after which one registers anew, ms at most: a message that was lost is made up for while the lease lasts. */
const REGISTER_AGAIN_SHARE = 2 / 3;
const MAX_REGISTERED_MS = 10_000;
/** ms after which it is looked again whether one can register */
const RETRY_MS = 1_000;
/** ms after which what was handed over is late: it is renewed before it is begun */
const LATE_AFTER_MS = 1_000;
const MAX_REPORTED_LEASES = 100;
/** Numbers of leases drawn at a time, and how many are left when more are drawn. */
const NUMBERS_PER_DRAW = 200;
const DRAW_WHEN_BELOW = 20;

/** A job as a message brings it (what was too long for one is left out), or as its rows say. */
interface ReceivedHandoff extends HandoffMessage {
  readonly details?: { readonly input: string; readonly options: string | null };
  readonly intent?: Intent;
}

export interface HandoffDeps {
  readonly db: Db;
  readonly workers: WorkerIds;
  readonly wakeups: Wakeups;
  readonly knownLanes: LaneStarts;
  readonly clock: Clock;
}

/** Of a lease to be, at the server that gave it. */
interface LeaseNumber {
  readonly number: string;
  readonly server: string;
}

/** Numbers for the leases that come of registrations, drawn ahead: a number that is drawn waits for the disk, and nobody is registered meanwhile. */
class LeaseNumbers {
  #left: LeaseNumber[] = [];
  #drawing: Promise<void> | undefined;

  constructor(private readonly db: Db) {}

  async take(): Promise<LeaseNumber> {
    for (;;) {
      const number = this.#left.shift();
      // If that fails, it is tried again, and told, when none is left.
      if (number !== undefined && this.#left.length < DRAW_WHEN_BELOW) this.#draw().catch(() => {});
      if (number !== undefined) return number;
      await this.#draw();
    }
  }

  /** Another server answers. */
  forget(): void {
    this.#left = [];
  }

  #draw(): Promise<void> {
    this.#drawing ??= DRAW_LEASE_NUMBERS.query<{ numbers: readonly string[]; server: string }>(this.db, { count: NUMBERS_PER_DRAW })
      .then((rows) => {
        for (const { numbers, server } of rows) this.#left.push(...numbers.map((number) => ({ number, server })));
      })
      .finally(() => {
        this.#drawing = undefined;
      });
    return this.#drawing;
  }
}

/** The idle workers of this process, and the messages that it alone receives. */
export class PostgresHandoff implements DirectHandoff {
  readonly #byWorker = new Map<number, PostgresIdleWorker>();
  readonly #numbers: LeaseNumbers;

  constructor(private readonly deps: HandoffDeps) {
    this.#numbers = new LeaseNumbers(deps.db);
  }

  of(options: IdleWorkerOptions): IdleWorker {
    this.deps.wakeups.listenForHandoffs({
      message: (payload) => this.#onMessage(payload),
      up: () => {
        for (const idleWorker of this.#byWorker.values()) idleWorker.wake();
      },
    });
    return new PostgresIdleWorker(this.deps, options, this.#byWorker, this.#numbers);
  }

  #onMessage(payload: string): void {
    const [head = "", input, options = ""] = payload.split(FIELD_SEPARATOR);
    const handoff = JSON.parse(head) as HandoffMessage;
    void this.#byWorker
      .get(handoff.worker)
      ?.onHandoffReceived(input === undefined ? handoff : { ...handoff, details: { input, options: options === "" ? null : options } });
  }
}

/**
 * An idle worker is a row. An enqueue of one job marks it with the lease that it made for the worker, and tells the worker by a message
 * that only its process hears. A message may be lost, late, or come twice: the row says what there is, so it is looked at
 * whenever one registers anew or unregisters. If even that fails, the lease runs out, as that of any claim whose answer was lost.
 */
class PostgresIdleWorker implements IdleWorker {
  #wanted = false;
  #registration: string | null = null;
  /** made of a registration that is gone, and not reported */
  #unreportedLease: LeaseId | undefined;
  /** leases that were reported, the last one last */
  readonly #reportedLeases = new Set<LeaseId>();
  /** from the server's clock to ours: by ours it is no earlier */
  #offset = Number.POSITIVE_INFINITY;
  #worker: number | undefined;
  /** a number that the last registration did not need */
  #unusedNumber: LeaseNumber | undefined;
  readonly #steps: Loop;

  constructor(
    private readonly deps: HandoffDeps,
    private readonly options: IdleWorkerOptions,
    private readonly byWorker: Map<number, PostgresIdleWorker>,
    private readonly numbers: LeaseNumbers,
  ) {
    const { clock } = deps;
    this.#steps = loop({ clock, step: () => this.#step(), onError: options.onError, backoff: { min: 50, max: RETRY_MS } });
  }

  register(): void {
    this.#wanted = true;
    this.wake();
  }

  unregister(): void {
    this.#wanted = false;
    this.wake();
  }

  wake(): void {
    this.#steps.wake();
  }

  async close(): Promise<void> {
    this.#wanted = false;
    await this.#steps.stop();
    await this.#step().catch(this.options.onError);
    if (this.#worker !== undefined) this.byWorker.delete(this.#worker);
  }

  async #step(): Promise<number | undefined> {
    const { workers, wakeups } = this.deps;
    if (this.#worker === undefined) {
      this.#worker = await workers.id(this.options.worker);
      this.byWorker.set(this.#worker, this);
    }
    const listener = this.#wanted ? wakeups.listener : undefined;
    if (this.#unreportedLease === undefined) {
      this.#unreportedLease = listener === undefined ? await this.#unregisterRow() : await this.#registerRow(this.#worker, listener);
      // Long after: nothing may be heard by that connection any more.
      if (this.#unreportedLease !== undefined && listener !== undefined) wakeups.relisten();
    }
    if (this.#unreportedLease !== undefined) {
      await this.#readHandoff(this.#worker, this.#unreportedLease);
      this.#unreportedLease = undefined;
    }
    if (!this.#wanted) return undefined;
    return listener === undefined || this.#registration === null
      ? RETRY_MS
      : Math.min(MAX_REGISTERED_MS, this.options.duration * REGISTER_AGAIN_SHARE);
  }

  /** Registers in place of the row it had. If a lease came of that one which is not known, answers it, and does not register. */
  async #registerRow(worker: number, listener: number): Promise<LeaseId | undefined> {
    const { db, wakeups, knownLanes, clock } = this.deps;
    const { queues, tasks, duration } = this.options;
    const next = this.#unusedNumber ?? (await this.numbers.take());
    // Until it is known not to be: whoever hears no answer may have a row with it.
    this.#unusedNumber = undefined;
    const sentAt = clock.monotonic();
    const [{ id, number, lease, now }] = (await REGISTER_IDLE_WORKER.query<RegisteredRow>(db, {
      now: db.now(),
      earlier: this.#registration,
      registeredFor: REGISTERED_FOR_MS,
      worker,
      listener,
      channel: wakeups.handoffChannel,
      duration,
      seenUpTo: knownLanes.seenUpTo,
      knownLease: [...this.#reportedLeases].at(-1) ?? null,
      queues: queues ?? null,
      tasks,
      number: next.number,
      server: next.server,
    })) as [RegisteredRow];
    this.#registration = id;
    if (id === null && lease === null) this.numbers.forget();
    else if (number !== next.number) this.#unusedNumber = next;
    // The server's clock was read after the question was sent.
    this.#offset = sentAt - now;
    return this.#unreported(lease);
  }

  async #unregisterRow(): Promise<LeaseId | undefined> {
    if (this.#registration === null) return undefined;
    const values = { registration: this.#registration, worker: this.#worker as number };
    const [row] = await UNREGISTER_IDLE_WORKER.query<{ lease: LeaseId | null }>(this.deps.db, values);
    this.#registration = null;
    return this.#unreported(row?.lease ?? null);
  }

  #unreported(lease: LeaseId | null): LeaseId | undefined {
    return lease === null || this.#reportedLeases.has(lease) ? undefined : lease;
  }

  async #readHandoff(worker: number, lease: LeaseId): Promise<void> {
    const [row] = await READ_HANDOFF.query<HandoffRow>(this.deps.db, { lease, worker });
    if (row === undefined) return;
    const { job, home, now, intent } = row;
    await this.onHandoffReceived({ worker, lease, now, job, home, lane: laneOf(row), ...(intent === null ? {} : { intent }) });
  }

  /** Whoever comes first, the message or the row. */
  async onHandoffReceived(arrival: ReceivedHandoff): Promise<void> {
    const { lease } = arrival;
    if (this.#reportedLeases.has(lease)) return;
    if (this.#reportedLeases.size >= MAX_REPORTED_LEASES) this.#reportedLeases.delete(this.#reportedLeases.values().next().value as LeaseId);
    this.#reportedLeases.add(lease);
    this.#wanted = false;
    // It came of a registration that was thought to be gone: nobody uses the one there is.
    if (arrival.registration !== undefined && arrival.registration !== this.#registration) this.wake();
    try {
      const handoff = await this.#handoffOf(arrival);
      if (handoff !== undefined) this.options.onHandoff(handoff);
    } catch (error) {
      // Nobody has begun it. The lease runs out.
      this.options.onError(error);
    }
  }

  async #handoffOf({ worker, lease, now, job, home, lane, details: sent, intent }: ReceivedHandoff): Promise<Handoff | undefined> {
    const { db, clock } = this.deps;
    const { duration } = this.options;
    const receivedAt = clock.monotonic();
    let since = Math.min(now + this.#offset, receivedAt);
    const age = receivedAt - since;
    const details = sent ?? (await readJobDetails(db, [job])).get(job);
    if (age > LATE_AFTER_MS) {
      since = clock.monotonic();
      if ((await renew(db, worker, [lease], duration)).held.length === 0) return undefined;
    }
    const claimed: ClaimedJob = {
      id: job,
      lane,
      input: details?.input,
      options: details?.options == null ? undefined : (JSON.parse(details.options) as JobOptions),
      dueAt: details?.options == null ? dueTimeOf(job) : now,
      attempts: 0,
      crashes: 0,
      at: { index: 1, home },
      ...(intent === undefined ? {} : { intent }),
    };
    return { claimed: { lease, now: now + age, jobs: [claimed] }, since };
  }
}
