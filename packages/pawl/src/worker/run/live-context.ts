import type { Context } from "../../core/jobs/context.js";
import type { JobId } from "../../core/jobs/id.js";
import type { LogLevel } from "../../core/jobs/job.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { Patch } from "../../core/jobs/outcome.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import type { TraceContext } from "../../core/observe/trace.js";
import type { JobTick } from "../../core/schedules/schedule.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { type Duration, milliseconds } from "../../core/values/duration.js";
import { pawlError } from "../../core/values/error.js";
import { decode } from "../../core/values/json.js";
import { checkName } from "../../core/values/name.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { Attempt } from "./attempt.js";
import type { LogWriter } from "./log-writer.js";
import type { Outages } from "./outage.js";
import { encodeOutput, encodeWithin } from "./outcome-of.js";

/** What contexts need of the worker they belong to. */
export interface ContextDeps {
  readonly store: Store;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly logWriter: LogWriter;
  outagesOf(attempt: Attempt): Outages;
  /** the attempt was settled by a transaction of its own */
  committed(attempt: Attempt, patch: Patch, now: number): void;
  /** the store says that the attempt's lease is lost */
  stale(attempt: Attempt, patch: Patch): void;
}

const ONCE_TTL_MS = 30 * 86_400_000;

/**
 * The context of one attempt. Everything beyond plain facts is made when asked for, as getters that answer bound
 * functions, so that handlers may take it apart: `({ log, progress }) => …`.
 */
export class LiveContext implements Context {
  readonly #attempt: Attempt;
  readonly #deps: ContextDeps;
  #log: Context["log"] | undefined;
  #effectResults: Map<string, Promise<unknown>> | undefined;

  constructor(attempt: Attempt, deps: ContextDeps) {
    this.#attempt = attempt;
    this.#deps = deps;
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
  get tick(): JobTick | undefined {
    return this.#attempt.job.options?.tick;
  }
  get trace(): TraceContext | undefined {
    return this.#attempt.job.options?.trace;
  }
  get worker(): string {
    return this.#deps.worker.name;
  }
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }
  get idempotencyKey(): string {
    return this.#attempt.job.id;
  }

  get progress(): Context["progress"] {
    return (value) => {
      if (this.#attempt.phase === "running") this.#deps.logWriter.progress(this.#attempt, value);
    };
  }

  get log(): Context["log"] {
    const line = (level: LogLevel) => (message: string, data?: unknown) => {
      if (this.#attempt.phase === "running") this.#deps.logWriter.line(this.#attempt, level, message, data);
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

  async #transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const attempt = this.#attempt;
    const { store, worker, clock, logWriter } = this.#deps;
    this.#checkOpen();
    let committed: { readonly patch: Patch; readonly now: number } | undefined;
    try {
      const { transactions } = store;
      if (transactions === undefined) throw pawlError("transaction_unsupported", { engine: store.engine.engine });
      const transaction = transactions.run(async (tx, handle) => {
        const result = await this.#whileOpen(work(tx));
        await logWriter.close(attempt);
        const encoded = result === undefined ? undefined : encodeOutput(result);
        if (encoded?.ok === false) throw pawlError("output_unencodable", { job: attempt.job.id, reason: encoded.reason });
        // Settling again under the same lease would answer "settled": whoever else ended this attempt must win here.
        this.#checkOpen();
        attempt.phase = "committing";
        const now = clock.monotonic();
        const patch = attempt.decide({ kind: "succeeded", ...(encoded === undefined ? {} : { output: encoded.text }) }, now, clock.random);
        const [settled] = await store.leases.settle(worker, [attempt.settlement(patch, now)], handle);
        if (settled !== "settled" || attempt.lease.lost) {
          this.#deps.stale(attempt, patch);
          throw this.#lost();
        }
        committed = { patch, now };
        return result;
      });
      const answer = await this.#outages.within(transaction);
      if (committed !== undefined) this.#deps.committed(attempt, committed.patch, committed.now);
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
    this.#effectResults ??= new Map();
    const existing = this.#effectResults.get(name) as Promise<T> | undefined;
    if (existing !== undefined) return existing;
    const result = this.#recall(name, effect, ttl);
    this.#effectResults.set(name, result);
    // An effect that failed may be tried again in the same attempt.
    result.catch(() => this.#effectResults?.delete(name));
    return result;
  }

  async #recall<T>(name: string, effect: () => T | Promise<T>, ttl: Duration = ONCE_TTL_MS): Promise<T> {
    const { lease, job } = this.#attempt;
    const { store, worker } = this.#deps;
    checkName("key", name);
    const existing = await this.#outages.of(store.records.recall(job.id, name));
    if (existing !== undefined) return decode(existing) as T;
    this.#checkOpen();
    const value = await effect();
    const encoded = encodeWithin(value, BOUNDS.recorded);
    if (!encoded.ok) throw pawlError("output_unencodable", { job: job.id, reason: `what "${name}" returned cannot be recorded: ${encoded.reason}` });
    const under = { lease: lease.id, job: job.id, tenant: job.lane.tenant };
    const entry = { ...under, name, value: encoded.text, ttl: milliseconds(ttl) };
    const stored = await this.#outages.of(store.records.record(worker, entry));
    if (stored === "stale") throw this.#lost();
    return stored.value === encoded.text ? value : (decode(stored.value) as T);
  }

  /** What can never commit is rolled back at once: it would keep its locks and its connection for as long as its handler goes on. */
  async #whileOpen<T>(work: Promise<T>): Promise<T> {
    const over = this.#attempt.whenOverrun.then(() => this.#checkOpen());
    await Promise.race([work, over]);
    return work;
  }

  get #outages(): Outages {
    return this.#deps.outagesOf(this.#attempt);
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
