import { isEncrypted } from "../../core/access/encrypted-value.js";
import type { Context } from "../../core/jobs/context.js";
import type { Outcome } from "../../core/jobs/outcome.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { HeldLease } from "../settle/held-lease.js";
import type { AbortReason } from "./abort.js";
import type { Attempt } from "./attempt.js";
import { callHandler } from "./call-handler.js";
import { DeadlineTimer } from "./deadline-timer.js";
import { DurationEstimate } from "./duration-estimate.js";
import { type Invoke, promised } from "./middleware.js";
import type { Outages } from "./outage.js";
import { outcomeOfThrown, outcomeOfValue, refusal, releaseOutcome, timeoutOutcome } from "./outcome-of.js";
import { Overruns } from "./overruns.js";

export interface RunnerDeps {
  readonly clock: Clock;
  readonly concurrency: number;
  /** handlers lost from which on it is stuck */
  readonly mostLost: number;
  readonly invoke: Invoke;
  readonly contextOf: (attempt: Attempt) => Context;
  readonly outagesOf: (attempt: Attempt) => Outages;
  /** whether outcomes wait in such numbers that nothing more should start */
  readonly isFull: () => boolean;
  readonly onStart: (attempt: Attempt) => void;
  readonly onOutcome: (attempt: Attempt, outcome: Outcome, now: number) => void;
  /** the attempt is no longer in hand; `ran`: its handler was called, and may go on */
  readonly onFreed: (attempt: Attempt, now: number, ran: boolean) => void;
  /** its handler has ended, in time or not */
  readonly onEnded: (attempt: Attempt) => void;
  /** whether it is to be given back unstarted: something happened since it was claimed */
  readonly isBlocked: (attempt: Attempt) => boolean;
  /** there is room for more jobs, perhaps */
  readonly onRoom: () => void;
  /** so many handlers are lost that nothing more is to be taken, or no longer */
  readonly onStuck: (stuck: boolean) => void;
  /** a lease seems to have run out */
  readonly onOverdue: () => void;
}

/** ms a cancelled handler may take to stop by itself before its job is settled without it */
const CANCEL_GRACE_MS = 5_000;

/**
 * Runs claimed jobs, `concurrency` at a time, the others wait in order.
 *
 * A handler that ignores its signal after a timeout keeps running: nothing in JavaScript can end it. Its job is settled,
 * and it keeps its slot until it ends: see `Overruns`.
 */
export class Runner {
  readonly running: Attempt[] = [];
  readonly estimate = new DurationEstimate();
  readonly overruns: Overruns;
  readonly #timer: DeadlineTimer;
  #unstarted: Attempt[] = [];
  #next = 0;
  #unstartedCount = 0;
  #startingNext = false;
  #draining = false;
  #idle: (() => void)[] = [];

  constructor(private readonly deps: RunnerDeps) {
    this.#timer = new DeadlineTimer(deps.clock, () => this.check());
    this.overruns = new Overruns({ clock: deps.clock, maxLost: deps.mostLost, onChange: (stuck) => this.#stuck(stuck) });
  }

  get unstarted(): number {
    return this.#unstartedCount;
  }

  /** slots with nothing in them; none, once it is stuck */
  get free(): number {
    return Math.max(0, this.slots - this.running.length);
  }

  /** those for which a job may be taken: the others are kept by handlers whose attempts are over */
  get slots(): number {
    return this.overruns.stuck ? 0 : Math.max(0, this.deps.concurrency - this.overruns.count);
  }

  /** Claimed jobs, in order. While the worker drains they are given back at once. */
  add(attempts: readonly Attempt[], first: boolean): void {
    this.#unstartedCount += attempts.length;
    if (this.#draining) {
      for (const attempt of attempts) this.#returnJob(attempt);
      return;
    }
    if (first && this.#next < this.#unstarted.length) this.#unstarted.splice(this.#next, 0, ...attempts);
    else if (this.#next >= this.#unstarted.length) {
      this.#unstarted = [...attempts];
      this.#next = 0;
    } else this.#unstarted.push(...attempts);
    this.startNext();
  }

  /** Starts what can start. A handler that ends at once is followed by the next one in this same loop, not by recursion. */
  startNext(): void {
    if (this.#startingNext) return;
    this.#startingNext = true;
    const { clock, isFull } = this.deps;
    while (this.#next < this.#unstarted.length && this.running.length < this.slots && !isFull()) {
      const attempt = this.#unstarted[this.#next] as Attempt;
      if (attempt.phase === "unstarted") {
        const now = clock.monotonic();
        if (now >= attempt.lease.fenceAt) {
          this.deps.onOverdue();
          break;
        }
        this.#next++;
        this.#unstartedCount--;
        this.#start(attempt, now);
      } else this.#next++;
    }
    this.#startingNext = false;
    if (!this.#draining) this.deps.onRoom();
  }

  /** When the fence of a lease must be looked at. */
  checkAt(at: number): void {
    this.#timer.schedule(at);
  }

  /** Ends what ran out of time. */
  check(): void {
    const now = this.deps.clock.monotonic();
    for (let i = this.running.length - 1; i >= 0; i--) {
      const attempt = this.running[i] as Attempt;
      if (now < attempt.dueAt) this.#timer.schedule(attempt.dueAt);
      else if (attempt.phase === "running") this.#endNow(attempt, now);
      // Its commit decides; look again soon.
      else if (attempt.phase === "committing") this.#timer.schedule(now + 100);
      // Settled by its own transaction, and still running: its time is up all the same.
      else this.#overrun(attempt, attempt.endsFor);
    }
    this.deps.onOverdue();
    this.startNext();
  }

  /** Tells a job to stop. It is cancelled when its handler ends, unless that succeeds, or when the grace is over. */
  cancel(attempt: Attempt): void {
    if (attempt.cancelled || attempt.phase === "over") return;
    attempt.cancelled = true;
    if (attempt.phase === "unstarted") return;
    attempt.stopBy = this.deps.clock.monotonic() + CANCEL_GRACE_MS;
    this.#timer.schedule(attempt.stopBy);
    attempt.abort("cancelled");
  }

  /**
   * Stops the work under a lost lease: it is somebody else's now. Unless the store said so itself, it is told that this
   * worker lives and gives the jobs back: if it hears that in time, it need not count them as crashed.
   */
  abandon(lease: HeldLease, settle: boolean): number {
    const now = this.deps.clock.monotonic();
    let count = 0;
    for (const attempt of lease.attempts) {
      const { phase } = attempt;
      if (phase === "over") continue;
      count++;
      const outcome = attempt.cancelled ? ({ kind: "cancelled" } as const) : releaseOutcome(attempt);
      attempt.phase = "over";
      if (phase === "unstarted") {
        this.#unstartedCount--;
        attempt.startedAt = now;
        this.deps.onFreed(attempt, now, false);
      } else this.#overrun(attempt, "lease_lost");
      // What is being committed is left to its commit.
      if (settle && phase !== "committing") this.deps.onOutcome(attempt, outcome, now);
    }
    return count;
  }

  /** What runs takes longer than was thought: no more is claimed ahead until that changes. */
  slowDown(now: number): void {
    for (const { plan, startedAt } of this.running) {
      plan.estimate.raiseTo(now - startedAt);
      this.estimate.raiseTo(now - startedAt);
    }
  }

  /** Gives back the jobs that have not started. */
  releaseUnstarted(): number {
    const waiting = this.#unstarted.slice(this.#next).filter(({ phase }) => phase === "unstarted");
    this.#unstarted = [];
    this.#next = 0;
    for (const attempt of waiting) this.#returnJob(attempt);
    return waiting.length;
  }

  /** Starts nothing more. Answers when nothing runs. */
  drain(): Promise<void> {
    this.#draining = true;
    this.releaseUnstarted();
    if (this.running.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Gives back what still runs. What is being committed is left to its commit. */
  releaseRunning(): number {
    const now = this.deps.clock.monotonic();
    const open = this.running.filter(({ phase }) => phase === "running");
    for (const attempt of open) {
      const outcome = attempt.cancelled ? ({ kind: "cancelled" } as const) : releaseOutcome(attempt);
      this.#finish(attempt, outcome, now);
      this.#overrun(attempt, "shutdown");
    }
    return open.length;
  }

  stop(): void {
    this.#draining = true;
    this.#timer.stop();
    this.overruns.stop();
  }

  #start(attempt: Attempt, now: number): void {
    const { job, lease } = attempt;
    const unusual = job.intent !== undefined || job.options !== undefined || job.crashes > 0 || attempt.cancelled || isEncrypted(job.input);
    const instead =
      (unusual ? refusal(attempt, lease.storeTime(now)) : undefined) ?? (this.deps.isBlocked(attempt) ? releaseOutcome(attempt) : undefined);
    if (instead !== undefined) {
      attempt.startedAt = now;
      this.#finish(attempt, instead, now);
      this.deps.onFreed(attempt, now, false);
      return;
    }
    attempt.begin(now);
    attempt.runningIndex = this.running.length;
    this.running.push(attempt);
    this.#timer.schedule(attempt.endBy);
    this.deps.onStart(attempt);
    let result: unknown;
    let later: boolean;
    try {
      result = callHandler(this.deps.invoke, attempt, this.deps.contextOf(attempt));
      later = isThenable(result);
    } catch (thrown) {
      this.#ended(attempt, false, thrown);
      return;
    }
    if (!later) this.#ended(attempt, true, result);
    else
      promised(result).then(
        (value) => this.#endedLater(attempt, true, value),
        (thrown: unknown) => this.#endedLater(attempt, false, thrown),
      );
  }

  #endedLater(attempt: Attempt, ok: boolean, value: unknown): void {
    this.#ended(attempt, ok, value);
    this.startNext();
  }

  #ended(attempt: Attempt, ok: boolean, value: unknown): void {
    this.deps.onEnded(attempt);
    if (attempt.runningIndex < 0) {
      this.overruns.ended(attempt);
      return;
    }
    const now = this.deps.clock.monotonic();
    const duration = now - attempt.startedAt;
    this.estimate.add(duration);
    attempt.plan.estimate.add(duration);
    this.#freeSlot(attempt, now);
    if (attempt.phase === "over") return;
    // A result that comes after its time is late, whoever notices first: the timer, or (if it blocked the timer) us.
    const late = now >= attempt.endBy && !attempt.cancelled;
    const outcome = late ? timeoutOutcome(attempt) : ok ? outcomeOfValue(value) : outcomeOfThrown(attempt, value, this.deps.outagesOf(attempt), now);
    if (attempt.phase === "running") this.#finish(attempt, outcome, now);
    else attempt.ifUncommitted = () => this.#finish(attempt, outcome, now);
  }

  #endNow(attempt: Attempt, now: number): void {
    const outOf = now >= attempt.endBy && !attempt.cancelled;
    this.#finish(attempt, outOf ? timeoutOutcome(attempt) : { kind: "cancelled" }, now);
    this.#overrun(attempt, attempt.endsFor);
  }

  #finish(attempt: Attempt, outcome: Outcome, now: number): void {
    attempt.phase = "over";
    this.deps.onOutcome(attempt, outcome, now);
  }

  #returnJob(attempt: Attempt): void {
    const now = this.deps.clock.monotonic();
    this.#unstartedCount--;
    attempt.startedAt = now;
    const outcome = releaseOutcome(attempt);
    this.#finish(attempt, outcome, now);
    this.deps.onFreed(attempt, now, false);
  }

  /** Its attempt is over, though its handler may go on. */
  #overrun(attempt: Attempt, why: AbortReason): void {
    if (attempt.runningIndex < 0) return;
    this.overruns.add(attempt);
    this.#freeSlot(attempt, this.deps.clock.monotonic());
    attempt.overrun(why);
  }

  #stuck(stuck: boolean): void {
    this.deps.onStuck(stuck);
    if (stuck) this.releaseUnstarted();
  }

  #freeSlot(attempt: Attempt, now: number): void {
    const last = this.running.pop() as Attempt;
    if (last !== attempt) {
      this.running[attempt.runningIndex] = last;
      last.runningIndex = attempt.runningIndex;
    }
    attempt.runningIndex = -1;
    this.deps.onFreed(attempt, now, true);
    if (this.running.length === 0 && this.#draining) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** Reading `then` may run user code; if that throws, the attempt has failed with it. */
function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null && typeof (value as PromiseLike<unknown>).then === "function";
}
