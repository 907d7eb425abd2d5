import { BOUNDS } from "../core/bounds.js";
import { type Duration, milliseconds } from "../core/duration.js";
import { pawlError } from "../core/error.js";
import type { JobId } from "../core/id.js";
import type { LogLevel } from "../core/job.js";
import { decode } from "../core/json.js";
import type { WorkerRef } from "../core/lease.js";
import { checkName } from "../core/name.js";
import type { Patch } from "../core/outcome.js";
import type { TickStamp } from "../core/schedule.js";
import type { TraceContext } from "../core/trace.js";
import type { Clock } from "../runtime/clock.js";
import type { ForeignTransaction, Store } from "../store/port.js";
import type { Attempt } from "./attempt.js";
import type { Context } from "./context.js";
import { encodeOutput, encodeWithin } from "./ending.js";
import type { Journal } from "./journal.js";
import type { Outages } from "./outage.js";

/** What contexts need of the worker they belong to. */
export interface ContextHome {
  readonly store: Store;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly journal: Journal;
  outagesOf(attempt: Attempt): Outages;
  /** the attempt was settled by a transaction of its own */
  committed(attempt: Attempt, patch: Patch, now: number): void;
  /** the store says that the attempt's lease is lost */
  stale(attempt: Attempt, patch: Patch): void;
}

const ONCE_TTL = 30 * 86_400_000;

/**
 * The context of one attempt. Everything beyond plain facts is made when asked for, as getters that answer bound
 * functions, so that handlers may take it apart: `({ log, progress }) => …`.
 */
export class LiveContext implements Context {
  readonly #attempt: Attempt;
  readonly #home: ContextHome;
  #log: Context["log"] | undefined;
  #recalled: Map<string, Promise<unknown>> | undefined;

  constructor(attempt: Attempt, home: ContextHome) {
    this.#attempt = attempt;
    this.#home = home;
  }

  get job(): JobId {
    return this.#attempt.job.id;
  }
  get task(): string {
    return this.#attempt.job.lane.task;
  }
  get queue(): string {
    return this.#attempt.job.lane.queue;
  }
  get tenant(): string {
    return this.#attempt.job.lane.tenant;
  }
  get attempt(): number {
    return this.#attempt.number;
  }
  get tick(): TickStamp | undefined {
    return this.#attempt.job.options?.tick;
  }
  get trace(): TraceContext | undefined {
    return this.#attempt.job.options?.trace;
  }
  get worker(): string {
    return this.#home.worker.name;
  }
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }
  get idempotencyKey(): string {
    return this.#attempt.job.id;
  }

  get progress(): Context["progress"] {
    return (value) => {
      if (this.#attempt.phase === "running") this.#home.journal.progress(this.#attempt, value);
    };
  }

  get log(): Context["log"] {
    const line = (level: LogLevel) => (message: string, data?: unknown) => {
      if (this.#attempt.phase === "running") this.#home.journal.line(this.#attempt, level, message, data);
    };
    this.#log ??= { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
    return this.#log;
  }

  get transaction(): Context["transaction"] {
    return (work) => handled(this.#transact(work));
  }

  get once(): Context["once"] {
    return (name, effect, options) => handled(this.#once(name, effect, options?.ttl));
  }

  async #transact<T>(work: (tx: ForeignTransaction) => Promise<T>): Promise<T> {
    const attempt = this.#attempt;
    const { store, worker, clock, journal } = this.#home;
    this.#checkOpen();
    let committed: { readonly patch: Patch; readonly now: number } | undefined;
    try {
      const transaction = store.leases.transaction(async (tx) => {
        const result = await this.#whileOpen(work(tx));
        await journal.close(attempt);
        const encoded = result === undefined ? undefined : encodeOutput(result);
        if (encoded?.ok === false) throw pawlError("output_unencodable", { job: attempt.job.id, reason: encoded.reason });
        // Settling again under the same lease would answer "settled": whoever else ended this attempt must win here.
        this.#checkOpen();
        attempt.phase = "committing";
        const now = clock.monotonic();
        const patch = attempt.decide({ kind: "succeeded", ...(encoded === undefined ? {} : { output: encoded.text }) }, now, clock.random);
        const [settled] = await store.leases.settle(worker, [attempt.settlement(patch, now)], tx);
        if (settled !== "settled" || attempt.lease.lost) {
          this.#home.stale(attempt, patch);
          throw this.#lost();
        }
        committed = { patch, now };
        return result;
      });
      const answer = await this.#outages.within(transaction);
      if (committed !== undefined) this.#home.committed(attempt, committed.patch, committed.now);
      return answer;
    } catch (error) {
      if (attempt.phase === "committing") {
        attempt.phase = "running";
        attempt.ifUncommitted?.();
      }
      throw error;
    }
  }

  /** One promise per name: two calls at once in one attempt run the effect once, too. */
  #once<T>(name: string, effect: () => T | Promise<T>, ttl: Duration | undefined): Promise<T> {
    this.#recalled ??= new Map();
    const known = this.#recalled.get(name) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const recalled = this.#recall(name, effect, ttl);
    this.#recalled.set(name, recalled);
    // An effect that failed may be tried again in the same attempt.
    recalled.catch(() => this.#recalled?.delete(name));
    return recalled;
  }

  async #recall<T>(name: string, effect: () => T | Promise<T>, ttl: Duration = ONCE_TTL): Promise<T> {
    const { lease, job } = this.#attempt;
    const { store, worker } = this.#home;
    checkName("key", name);
    const known = await this.#outages.of(store.records.recall(job.id, name));
    if (known !== undefined) return decode(known) as T;
    this.#checkOpen();
    const value = await effect();
    const encoded = encodeWithin(value, BOUNDS.recorded);
    if (!encoded.ok) throw pawlError("output_unencodable", { job: job.id, reason: `what "${name}" returned cannot be recorded: ${encoded.reason}` });
    const under = { lease: lease.id, job: job.id, tenant: job.lane.tenant };
    const entry = { ...under, name, value: encoded.text, ttl: milliseconds(ttl) };
    const kept = await this.#outages.of(store.records.record(worker, entry));
    if (kept === "stale") throw this.#lost();
    return kept.value === encoded.text ? value : (decode(kept.value) as T);
  }

  /** What can never commit is rolled back at once: it would keep its locks and its connection for as long as its handler goes on. */
  async #whileOpen<T>(work: Promise<T>): Promise<T> {
    const over = this.#attempt.overran.then(() => this.#checkOpen());
    await Promise.race([work, over]);
    return work;
  }

  get #outages(): Outages {
    return this.#home.outagesOf(this.#attempt);
  }

  #checkOpen(): void {
    if (this.#attempt.phase === "running") return;
    throw this.#attempt.lease.lost ? this.#lost() : pawlError("closed", { what: `this attempt at job ${this.#attempt.job.id}` });
  }

  #lost() {
    return pawlError("lease_lost", { job: this.#attempt.job.id });
  }
}

/** A handler that does not wait for the answer must not bring the process down with its rejection. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
