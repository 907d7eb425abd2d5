import { attemptsSoFar, decide, decideSuccess, type Outcome, type Patch } from "../../core/jobs/outcome.js";
import type { Share } from "../../core/sharing/fair-share.js";
import { Signal } from "../../runtime/time/wait.js";
import type { ClaimedJob, Settlement } from "../../store/port/settle/leases.js";
import type { HeldLease } from "../settle/held-lease.js";
import { Aborted, type AbortReason } from "./abort.js";
import type { AttemptLog } from "./attempt-log.js";
import type { Outages } from "./outage.js";
import type { TaskPlan } from "./task-plan.js";

/**
 * Where an attempt stands. Only the runner and `ctx.transaction` change it, always by these steps:
 * - unstarted: claimed and waiting for a slot;
 * - running: its handler was called, and its outcome is open;
 * - committing: its settlement is part of a transaction being committed, so nobody else may settle it. Back to running
 *   if that fails;
 * - over: its outcome is decided, or its lease is lost. Whatever its handler still does changes nothing.
 */
export type AttemptPhase = "unstarted" | "running" | "committing" | "over";

/** One try at a job: the value that the steps of the pipeline pass on. Times are monotonic ms. */
export class Attempt {
  phase: AttemptPhase = "unstarted";
  startedAt = 0;
  endBy = Number.POSITIVE_INFINITY;
  /** what passing `endBy` means */
  endsFor: "timeout" | "deadline" = "timeout";
  /** set once it is cancelled: how long its handler may take to stop by itself */
  stopBy = Number.POSITIVE_INFINITY;
  cancelled = false;
  /** its place among the running ones; -1 if its slot is free again */
  runningIndex = -1;
  /** the opening of the breaker that let it through, if one did */
  probeOf: number | undefined;
  log: AttemptLog | undefined;
  /** set once its handler asked the store for something */
  outages: Outages | undefined;
  /** set if its handler ended while a transaction it did not await was being committed */
  ifUncommitted: (() => void) | undefined;
  #aborted: AbortReason | undefined;
  #controller: AbortController | undefined;
  #overruns = false;
  #whenOverrun: Signal | undefined;

  constructor(
    readonly job: ClaimedJob,
    readonly plan: TaskPlan,
    readonly lease: HeldLease,
    /** who is charged for its time */
    readonly share: Share,
  ) {}

  /** from 1 */
  get number(): number {
    return this.job.attempts + 1;
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
  get whenOverrun(): Promise<void> {
    this.#whenOverrun ??= new Signal();
    if (this.#overruns) this.#whenOverrun.resolve();
    return this.#whenOverrun.promise;
  }

  /** It is over, and its handler goes on: that is told to stop. */
  overrun(why: AbortReason): void {
    this.abort(why);
    this.#overruns = true;
    this.#whenOverrun?.resolve();
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
    if (options?.finishWithin === undefined) return;
    const finishWithin = now + dueAt + options.finishWithin - this.lease.storeTime(now);
    if (finishWithin >= this.endBy) return;
    this.endBy = finishWithin;
    this.endsFor = "deadline";
  }

  /** When the worker must look at it again. */
  get dueAt(): number {
    return Math.min(this.endBy, this.stopBy);
  }

  decide(outcome: Outcome, now: number, random: () => number): Patch {
    const { job, plan, lease } = this;
    if (outcome.kind === "succeeded") return decideSuccess(job, outcome.output);
    const soFar = attemptsSoFar(job, job.options, lease.storeTime(now));
    // Whoever enqueued it may not have known the task's code: here it is known.
    return decide(plan.atMostOnce ? { ...soFar, atMostOnce: true } : soFar, outcome, job.options?.retry ?? plan.retry, random);
  }

  settlement(patch: Patch, now: number): Settlement {
    const { lease, job } = this;
    const startedAt = lease.storeTime(this.startedAt);
    const settlement: Settlement = { lease: lease.id, job: job.id, at: job.at, lane: job.lane, patch, startedAt, finishedAt: lease.storeTime(now) };
    return job.limited === true || job.options?.limits !== undefined ? { ...settlement, limited: true } : settlement;
  }
}
