import type { Outcome } from "../core/outcome.js";
import { isSealed } from "../core/sealed.js";
import type { Clock } from "../runtime/clock.js";
import type { AbortReason } from "./abort.js";
import { Alarm } from "./alarm.js";
import type { Attempt } from "./attempt.js";
import type { Context } from "./context.js";
import { givenBack, outcomeOfThrown, outcomeOfValue, outOfTime, refusal } from "./ending.js";
import type { HeldLease } from "./held-lease.js";
import { callHandler } from "./input.js";
import { type Invoke, promised } from "./middleware.js";
import type { Outages } from "./outage.js";
import { Overruns } from "./overruns.js";
import { Pace } from "./pace.js";

export interface RunnerParts {
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
  readonly isBarred: (attempt: Attempt) => boolean;
  /** there is room for more jobs, perhaps */
  readonly onRoom: () => void;
  /** so many handlers are lost that nothing more is to be taken, or no longer */
  readonly onStuck: (stuck: boolean) => void;
  /** a lease seems to have run out */
  readonly onOverdue: () => void;
}

/** ms a cancelled handler may take to stop by itself before its job is settled without it */
const CANCEL_GRACE = 5_000;

/**
 * Runs claimed jobs, `concurrency` at a time, the rest held in order.
 *
 * A handler that ignores its signal after a timeout keeps running: nothing in JavaScript can end it. Its job is settled,
 * and it keeps its slot until it ends: see `Overruns`.
 */
export class Runner {
  readonly running: Attempt[] = [];
  readonly pace = new Pace();
  readonly overruns: Overruns;
  readonly #alarm: Alarm;
  #held: Attempt[] = [];
  #next = 0;
  #heldCount = 0;
  #pumping = false;
  #draining = false;
  #idle: (() => void)[] = [];

  constructor(private readonly parts: RunnerParts) {
    this.#alarm = new Alarm(parts.clock, () => this.check());
    this.overruns = new Overruns({ clock: parts.clock, most: parts.mostLost, onChange: (stuck) => this.#stuck(stuck) });
  }

  get held(): number {
    return this.#heldCount;
  }

  /** slots with nothing in them; none, once it is stuck */
  get free(): number {
    return Math.max(0, this.slots - this.running.length);
  }

  /** those for which a job may be taken: the others are kept by handlers whose attempts are over */
  get slots(): number {
    return this.overruns.stuck ? 0 : Math.max(0, this.parts.concurrency - this.overruns.count);
  }

  /** Claimed jobs, in order. While the worker drains they are given back at once. */
  add(attempts: readonly Attempt[], first: boolean): void {
    this.#heldCount += attempts.length;
    if (this.#draining) {
      for (const attempt of attempts) this.#giveBack(attempt);
      return;
    }
    if (first && this.#next < this.#held.length) this.#held.splice(this.#next, 0, ...attempts);
    else if (this.#next >= this.#held.length) {
      this.#held = [...attempts];
      this.#next = 0;
    } else this.#held.push(...attempts);
    this.pump();
  }

  /** Starts what can start. A handler that ends at once is followed by the next one in this same loop, not by recursion. */
  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    const { clock, isFull } = this.parts;
    while (this.#next < this.#held.length && this.running.length < this.slots && !isFull()) {
      const attempt = this.#held[this.#next] as Attempt;
      if (attempt.phase === "held") {
        const now = clock.monotonic();
        if (now >= attempt.lease.fenceAt) {
          this.parts.onOverdue();
          break;
        }
        this.#next++;
        this.#heldCount--;
        this.#start(attempt, now);
      } else this.#next++;
    }
    this.#pumping = false;
    if (!this.#draining) this.parts.onRoom();
  }

  /** When the fence of a lease must be looked at. */
  watch(at: number): void {
    this.#alarm.by(at);
  }

  /** Ends what ran out of time. */
  check(): void {
    const now = this.parts.clock.monotonic();
    for (let i = this.running.length - 1; i >= 0; i--) {
      const attempt = this.running[i] as Attempt;
      if (now < attempt.dueAt) this.#alarm.by(attempt.dueAt);
      else if (attempt.phase === "running") this.#endNow(attempt, now);
      // Its commit decides; look again soon.
      else if (attempt.phase === "committing") this.#alarm.by(now + 100);
      // Settled by its own transaction, and still running: its time is up all the same.
      else this.#overrun(attempt, attempt.endsFor);
    }
    this.parts.onOverdue();
    this.pump();
  }

  /** Tells a job to stop. It is cancelled when its handler ends, unless that succeeds, or when the grace is over. */
  cancel(attempt: Attempt): void {
    if (attempt.cancelled || attempt.phase === "over") return;
    attempt.cancelled = true;
    if (attempt.phase === "held") return;
    attempt.stopBy = this.parts.clock.monotonic() + CANCEL_GRACE;
    this.#alarm.by(attempt.stopBy);
    attempt.abort("cancelled");
  }

  /**
   * Stops the work under a lost lease: it is somebody else's now. Unless the store said so itself, it is told that this
   * worker lives and gives the jobs back: if it hears that in time, it need not count them as crashed.
   */
  abandon(lease: HeldLease, tell: boolean): number {
    const now = this.parts.clock.monotonic();
    let count = 0;
    for (const attempt of lease.attempts) {
      const { phase } = attempt;
      if (phase === "over") continue;
      count++;
      const outcome = attempt.cancelled ? ({ kind: "cancelled" } as const) : givenBack(attempt);
      attempt.phase = "over";
      if (phase === "held") {
        this.#heldCount--;
        attempt.startedAt = now;
        this.parts.onFreed(attempt, now, false);
      } else this.#overrun(attempt, "lease_lost");
      // What is being committed is left to its commit.
      if (tell && phase !== "committing") this.parts.onOutcome(attempt, outcome, now);
    }
    return count;
  }

  /** What runs takes longer than was thought: no more is claimed ahead until that changes. */
  slowDown(now: number): void {
    for (const { plan, startedAt } of this.running) {
      plan.pace.atLeast(now - startedAt);
      this.pace.atLeast(now - startedAt);
    }
  }

  /** Gives back the jobs that have not started. */
  releaseHeld(): number {
    const waiting = this.#held.slice(this.#next).filter(({ phase }) => phase === "held");
    this.#held = [];
    this.#next = 0;
    for (const attempt of waiting) this.#giveBack(attempt);
    return waiting.length;
  }

  /** Starts nothing more. Answers when nothing runs. */
  drain(): Promise<void> {
    this.#draining = true;
    this.releaseHeld();
    if (this.running.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Gives back what still runs. What is being committed is left to its commit. */
  releaseRunning(): number {
    const now = this.parts.clock.monotonic();
    const open = this.running.filter(({ phase }) => phase === "running");
    for (const attempt of open) {
      const outcome = attempt.cancelled ? ({ kind: "cancelled" } as const) : givenBack(attempt);
      this.#finish(attempt, outcome, now);
      this.#overrun(attempt, "shutdown");
    }
    return open.length;
  }

  stop(): void {
    this.#draining = true;
    this.#alarm.stop();
    this.overruns.stop();
  }

  #start(attempt: Attempt, now: number): void {
    const { job, lease } = attempt;
    const unusual = job.intent !== undefined || job.options !== undefined || job.crashes > 0 || attempt.cancelled || isSealed(job.input);
    const refused = (unusual ? refusal(attempt, lease.storeTime(now)) : undefined) ?? (this.parts.isBarred(attempt) ? givenBack(attempt) : undefined);
    if (refused !== undefined) {
      attempt.startedAt = now;
      this.#finish(attempt, refused, now);
      this.parts.onFreed(attempt, now, false);
      return;
    }
    attempt.begin(now);
    attempt.place = this.running.length;
    this.running.push(attempt);
    this.#alarm.by(attempt.endBy);
    this.parts.onStart(attempt);
    let result: unknown;
    let later: boolean;
    try {
      result = callHandler(this.parts.invoke, attempt, this.parts.contextOf(attempt));
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
    this.pump();
  }

  #ended(attempt: Attempt, ok: boolean, value: unknown): void {
    this.parts.onEnded(attempt);
    if (attempt.place < 0) {
      this.overruns.ended(attempt);
      return;
    }
    const now = this.parts.clock.monotonic();
    const duration = now - attempt.startedAt;
    this.pace.note(duration);
    attempt.plan.pace.note(duration);
    this.#leave(attempt, now);
    if (attempt.phase === "over") return;
    // A result that comes after its time is late, whoever notices first: the timer, or (if it blocked the timer) us.
    const late = now >= attempt.endBy && !attempt.cancelled;
    const outcome = late ? outOfTime(attempt) : ok ? outcomeOfValue(value) : outcomeOfThrown(attempt, value, this.parts.outagesOf(attempt), now);
    if (attempt.phase === "running") this.#finish(attempt, outcome, now);
    else attempt.ifUncommitted = () => this.#finish(attempt, outcome, now);
  }

  #endNow(attempt: Attempt, now: number): void {
    const outOf = now >= attempt.endBy && !attempt.cancelled;
    this.#finish(attempt, outOf ? outOfTime(attempt) : { kind: "cancelled" }, now);
    this.#overrun(attempt, attempt.endsFor);
  }

  #finish(attempt: Attempt, outcome: Outcome, now: number): void {
    attempt.phase = "over";
    this.parts.onOutcome(attempt, outcome, now);
  }

  #giveBack(attempt: Attempt): void {
    const now = this.parts.clock.monotonic();
    this.#heldCount--;
    attempt.startedAt = now;
    const outcome = givenBack(attempt);
    this.#finish(attempt, outcome, now);
    this.parts.onFreed(attempt, now, false);
  }

  /** Its attempt is over, though its handler may go on. */
  #overrun(attempt: Attempt, why: AbortReason): void {
    if (attempt.place < 0) return;
    this.overruns.add(attempt);
    this.#leave(attempt, this.parts.clock.monotonic());
    attempt.overrun(why);
  }

  #stuck(stuck: boolean): void {
    this.parts.onStuck(stuck);
    if (stuck) this.releaseHeld();
  }

  #leave(attempt: Attempt, now: number): void {
    const last = this.running.pop() as Attempt;
    if (last !== attempt) {
      this.running[attempt.place] = last;
      last.place = attempt.place;
    }
    attempt.place = -1;
    this.parts.onFreed(attempt, now, true);
    if (this.running.length === 0 && this.#draining) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** Reading `then` may run user code; if that throws, the attempt has failed with it. */
function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null && typeof (value as PromiseLike<unknown>).then === "function";
}
