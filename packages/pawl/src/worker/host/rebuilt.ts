import { isJobId, type JobId, type LeaseId } from "../../core/id.js";
import { Share } from "../../core/share.js";
import type { Clock } from "../../runtime/clock.js";
import { Limiter } from "../../runtime/limiter.js";
import type { Store } from "../../store/port.js";
import type { ClaimedJob } from "../../store/port-leases.js";
import { Attempt } from "../attempt.js";
import { HeldLease } from "../held-lease.js";
import { Notes } from "../notes.js";
import type { Plan } from "../plan.js";

/** reads at a time, however many jobs a worker brings along */
const AT_ONCE = 16;
/** attempts whose log lines are counted, the latest that were heard of */
const MOST_REMEMBERED = 10_000;

/**
 * Attempts that were handed out by another process, or by this one before it forgot them, made again out of what the
 * store knows of their jobs. Nothing a worker says is believed: the store's fence decides whether it counts.
 */
export class Rebuilt {
  readonly #notes = new Map<string, Notes>();
  readonly #reads = new Limiter(AT_ONCE);
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
    const { lane, options, dueAt, spent, crashes } = record;
    // Whether it holds slots is not known: said in doubt, they are looked for.
    return { id: record.id, lane, input: undefined, options, dueAt, spent, crashes, limited: true };
  }

  async attempt(lease: LeaseId, job: ClaimedJob, plan: Plan): Promise<Attempt> {
    this.#clock ??= this.#readClock();
    const { store, here } = await this.#clock;
    // When it was claimed is not known: how long its handler ran is for the worker to say.
    const held = new HeldLease({ lease, now: store, jobs: [job] }, Number.NEGATIVE_INFINITY, here, this.duration, false);
    const attempt = new Attempt(job, plan, held, new Share(undefined));
    attempt.startedAt = this.clock.monotonic();
    attempt.notes = this.#notesOf(`${lease} ${job.id}`);
    return attempt;
  }

  /** It is made again for every call, and what it has said so far is counted over all of them. */
  #notesOf(attempt: string): Notes {
    const notes = this.#notes.get(attempt) ?? new Notes();
    this.#notes.delete(attempt);
    this.#notes.set(attempt, notes);
    if (this.#notes.size > MOST_REMEMBERED) this.#notes.delete(this.#notes.keys().next().value as string);
    return notes;
  }

  async #readClock(): Promise<{ readonly store: number; readonly here: number }> {
    try {
      const { now } = await this.store.duties.pulse();
      return { store: now, here: this.clock.monotonic() };
    } catch (error) {
      this.#clock = undefined;
      throw error;
    }
  }
}
