import { decide, type Outcome, type Patch, standingOf } from "../core/outcome.js";
import type { Share } from "../core/share.js";
import { Signal } from "../runtime/wait.js";
import type { ClaimedJob, Settlement } from "../store/port-leases.js";
import { Aborted, type AbortReason } from "./abort.js";
import type { HeldLease } from "./held-lease.js";
import type { Notes } from "./notes.js";
import type { Outages } from "./outage.js";
import type { Plan } from "./plan.js";

/**
 * Where an attempt stands. Only the runner and `ctx.transaction` change it, always by these steps:
 * - held: claimed and waiting for a slot;
 * - running: its handler was called, and its outcome is open;
 * - committing: its settlement is part of a transaction being committed, so nobody else may settle it. Back to running
 *   if that fails;
 * - over: its outcome is decided, or its lease is lost. Whatever its handler still does changes nothing.
 */
export type Phase = "held" | "running" | "committing" | "over";

/** One try at a job: the value that the steps of the pipeline pass on. Times are monotonic ms. */
export class Attempt {
  phase: Phase = "held";
  startedAt = 0;
  endBy = Number.POSITIVE_INFINITY;
  /** what passing `endBy` means */
  endsFor: "timeout" | "deadline" = "timeout";
  /** set once it is cancelled: how long its handler may take to stop by itself */
  stopBy = Number.POSITIVE_INFINITY;
  cancelled = false;
  /** its place among the running ones; -1 if its slot is free again */
  place = -1;
  /** the turn of the breaker that let it through, if one did */
  pass: number | undefined;
  notes: Notes | undefined;
  /** set once its handler asked the store for something */
  outages: Outages | undefined;
  /** set if its handler ended while a transaction it did not await was being committed */
  ifUncommitted: (() => void) | undefined;
  #aborted: AbortReason | undefined;
  #controller: AbortController | undefined;
  #overruns = false;
  #overran: Signal | undefined;

  constructor(
    readonly job: ClaimedJob,
    readonly plan: Plan,
    readonly lease: HeldLease,
    /** who is charged for its time */
    readonly share: Share,
  ) {}

  /** from 1 */
  get number(): number {
    return this.job.spent + 1;
  }

  get atMostOnce(): boolean {
    return this.plan.atMostOnce || this.job.options?.atMostOnce === true;
  }

  /** Made when first asked for: most handlers never look at it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(new Aborted(this.#aborted));
    }
    return this.#controller.signal;
  }

  /** Resolves once its handler goes on though it is over. Made when first asked for. */
  get overran(): Promise<void> {
    this.#overran ??= new Signal();
    if (this.#overruns) this.#overran.give();
    return this.#overran.given;
  }

  /** It is over, and its handler goes on: that is told to stop. */
  overrun(why: AbortReason): void {
    this.abort(why);
    this.#overruns = true;
    this.#overran?.give();
  }

  abort(why: AbortReason): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = why;
    this.#controller?.abort(new Aborted(why));
  }

  /** The earlier of its timeout and what is left until its deadline. */
  begin(now: number): void {
    const { options, dueAt } = this.job;
    this.phase = "running";
    this.startedAt = now;
    this.endBy = now + (options?.timeout ?? this.plan.timeout);
    if (options?.deadline === undefined) return;
    const deadline = now + dueAt + options.deadline - this.lease.storeTime(now);
    if (deadline >= this.endBy) return;
    this.endBy = deadline;
    this.endsFor = "deadline";
  }

  /** When the worker must look at it again. */
  get dueAt(): number {
    return Math.min(this.endBy, this.stopBy);
  }

  decide(outcome: Outcome, now: number, random: () => number): Patch {
    const { job, plan, lease } = this;
    const standing = standingOf(job, job.options, lease.storeTime(now));
    // Whoever enqueued it may not have known the task's code: here it is known.
    return decide(plan.atMostOnce ? { ...standing, atMostOnce: true } : standing, outcome, job.options?.retry ?? plan.retry, random);
  }

  settlement(patch: Patch, now: number): Settlement {
    const { lease, job } = this;
    const startedAt = lease.storeTime(this.startedAt);
    const settlement: Settlement = { lease: lease.id, job: job.id, at: job.at, lane: job.lane, patch, startedAt, finishedAt: lease.storeTime(now) };
    return job.limited === true || job.options?.limits !== undefined ? { ...settlement, limited: true } : settlement;
  }
}
