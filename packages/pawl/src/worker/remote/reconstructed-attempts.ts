import { isJobId, type JobId, type LeaseId } from "../../core/jobs/id.js";
import { Share } from "../../core/sharing/fair-share.js";
import { ConcurrencyLimiter } from "../../runtime/io/concurrency-limiter.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { ClaimedJob } from "../../store/port/settle/leases.js";
import { Attempt } from "../run/attempt.js";
import { AttemptLog } from "../run/attempt-log.js";
import type { TaskPlan } from "../run/task-plan.js";
import { HeldLease } from "../settle/held-lease.js";

/** reads at a time, however many jobs a worker brings along */
const MAX_CONCURRENT_READS = 16;
/** attempts whose log lines are counted, the latest that were heard of */
const MAX_ATTEMPT_LOGS = 10_000;

/**
 * Attempts that were leased by another process, or by this one before it forgot them, made again out of what the
 * store knows of their jobs. Nothing a worker says is believed: the store's fence decides whether it counts.
 */
export class ReconstructedAttempts {
  readonly #logs = new Map<string, AttemptLog>();
  readonly #reads = new ConcurrencyLimiter(MAX_CONCURRENT_READS);
  /** The store's clock, at a moment of this process's. */
  #clock: Promise<{ readonly store: number; readonly here: number }> | undefined;

  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
    private readonly duration: number,
  ) {}

  async job(id: JobId): Promise<ClaimedJob | undefined> {
    if (!isJobId(id)) return undefined;
    const record = await this.#reads.run(() => this.store.jobs.get("everyone", id));
    if (record === undefined) return undefined;
    const { lane, options, dueAt, attempts, crashes } = record;
    // Whether it holds slots is not known: said in doubt, they are looked for.
    return { id: record.id, lane, input: undefined, options, dueAt, attempts, crashes, limited: true };
  }

  async attempt(lease: LeaseId, job: ClaimedJob, plan: TaskPlan): Promise<Attempt> {
    this.#clock ??= this.#readClock();
    const { store, here } = await this.#clock;
    // When it was claimed is not known: how long its handler ran is for the worker to say.
    const heldLease = new HeldLease({ lease, now: store, jobs: [job] }, Number.NEGATIVE_INFINITY, here, this.duration, false);
    const attempt = new Attempt(job, plan, heldLease, new Share(undefined));
    attempt.startedAt = this.clock.monotonic();
    attempt.log = this.#logOf(`${lease} ${job.id}`);
    return attempt;
  }

  /** It is made again for every call, and what it has said so far is counted over all of them. */
  #logOf(attempt: string): AttemptLog {
    const log = this.#logs.get(attempt) ?? new AttemptLog();
    this.#logs.delete(attempt);
    this.#logs.set(attempt, log);
    if (this.#logs.size > MAX_ATTEMPT_LOGS) this.#logs.delete(this.#logs.keys().next().value as string);
    return log;
  }

  async #readClock(): Promise<{ readonly store: number; readonly here: number }> {
    try {
      const { now } = await this.store.duties.poll();
      return { store: now, here: this.clock.monotonic() };
    } catch (error) {
      this.#clock = undefined;
      throw error;
    }
  }
}
