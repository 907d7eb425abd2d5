import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { spawnThread } from "pawl/service";
import { CheckStopped } from "./check-run.js";
import type { Issue } from "./issues.js";

export interface ThreadQuestion {
  /** the same for the same schema */
  readonly key: string;
  /** as JSON */
  readonly schema: string;
  /** as JSON; left out: there is none */
  readonly value?: string;
}

export type ThreadAnswer = { readonly steps: number; readonly issues?: readonly Issue[] } | { readonly unfinished: CheckStopped["reason"] };

export interface ThreadVerdict {
  readonly steps: number;
  readonly issues?: readonly Issue[];
}

/** Too many checks wait already, this one waited too long, or its caller has used up its time. */
export class TooManyChecks extends Error {
  override readonly name = "TooManyChecks";
}

export interface ThreadLimits {
  readonly threads: number;
  /** ms that a check may take */
  readonly deadline: number;
  /** ms that it may wait for a thread */
  readonly maxWait: number;
  /** ms of threads that a caller may use at once, and of each that passes after it */
  readonly allowance: number;
  readonly regained: number;
  /** characters of the values of one caller that wait, beside one */
  readonly perCaller: number;
  /** of all callers */
  readonly overall: number;
  /** ms after which a thread that has nothing to do is ended */
  readonly idle: number;
  /** MB of a thread. What a check keeps is counted and ends it before: this is for what is not counted */
  readonly memory: number;
}

const LIMITS: ThreadLimits = {
  // Those that answer requests keep at least as much of the machine.
  threads: Math.max(1, Math.min(4, Math.floor(availableParallelism() / 2))),
  deadline: 250,
  maxWait: 5_000,
  allowance: 10_000,
  regained: 0.5,
  perCaller: 4_000_000,
  overall: 64_000_000,
  idle: 30_000,
  memory: 256,
};

/** MB for what is not kept long */
const YOUNG_GENERATION_MB = 32;
/** characters that a question counts for beside its value */
const QUESTION_CHARACTERS = 10_000;

interface WaitingCheck {
  readonly caller: string;
  readonly question: ThreadQuestion;
  readonly size: number;
  readonly waitTimer: NodeJS.Timeout;
  begunAt?: number;
  resolve(verdict: ThreadVerdict): void;
  reject(error: unknown): void;
}

interface CheckThread {
  readonly worker: Worker;
  isReady: boolean;
  job?: WaitingCheck;
  timer?: NodeJS.Timeout;
}

/**
 * Threads for checks of inputs that take long. Callers take turns, so that one that asks for many waits for itself, and each has so
 * much time, so that a batch of costly inputs is refused in the end. A thread that does not answer in time, or takes too much memory, is
 * ended and replaced.
 */
export class CheckThreads {
  readonly #limits: ThreadLimits;
  readonly #threads = new Set<CheckThread>();
  /** by caller; the first one's turn is next */
  readonly #waiting = new Map<string, WaitingCheck[]>();
  #size = 0;
  readonly #allowances: TimeAllowances;

  constructor(limits: Partial<ThreadLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
    this.#allowances = new TimeAllowances(this.#limits);
  }

  /** how many there are now */
  get count(): number {
    return this.#threads.size;
  }

  /** Throws `CheckStopped` without a verdict, and `TooManyChecks`. */
  check(caller: string, question: ThreadQuestion): Promise<ThreadVerdict> {
    return new Promise((resolve, reject) => {
      const waitTimer = setTimeout(() => this.#giveUp(waiting), this.#limits.maxWait);
      const size = QUESTION_CHARACTERS + (question.value?.length ?? 0);
      const waiting: WaitingCheck = { caller, question, size, waitTimer, resolve, reject };
      const own = this.#waiting.get(caller) ?? [];
      own.push(waiting);
      this.#waiting.set(caller, own);
      this.#size += size;
      if (own.length > 1 && sizeOf(own) - (own[0] as WaitingCheck).size > this.#limits.perCaller) this.#giveUp(waiting);
      while (this.#size > this.#limits.overall) this.#giveUp(this.#heaviest().at(-1) as WaitingCheck);
      this.#assign();
    });
  }

  #assign(): void {
    while (this.#waiting.size > 0) {
      const thread = [...this.#threads].find(({ isReady, job }) => isReady && job === undefined);
      if (thread === undefined) {
        if (this.#threads.size < this.#limits.threads) this.#spawn();
        return;
      }
      const waiting = this.#next();
      if (this.#allowances.has(waiting.caller)) this.#begin(thread, waiting);
      else waiting.reject(new TooManyChecks());
    }
  }

  /** Of the caller whose turn it is; its next one comes after those of all others. */
  #next(): WaitingCheck {
    const [caller, own] = this.#waiting.entries().next().value as [string, WaitingCheck[]];
    const waiting = own.shift() as WaitingCheck;
    this.#waiting.delete(caller);
    if (own.length > 0) this.#waiting.set(caller, own);
    this.#left(waiting);
    return waiting;
  }

  #left({ waitTimer, size }: WaitingCheck): void {
    clearTimeout(waitTimer);
    this.#size -= size;
  }

  #heaviest(): readonly WaitingCheck[] {
    return [...this.#waiting.values()].reduce((largest, own) => (sizeOf(own) > sizeOf(largest) ? own : largest));
  }

  #giveUp(waiting: WaitingCheck): void {
    const own = this.#waiting.get(waiting.caller) ?? [];
    const rest = own.filter((one) => one !== waiting);
    if (rest.length === own.length) return;
    if (rest.length === 0) this.#waiting.delete(waiting.caller);
    else own.splice(0, own.length, ...rest);
    this.#left(waiting);
    waiting.reject(new TooManyChecks());
  }

  #spawn(): void {
    const worker = spawnThread(import.meta.url, "./check-thread.js", {
      name: "pawl-checks",
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.memory, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    const thread: CheckThread = { worker, isReady: false };
    this.#threads.add(thread);
    worker.on("message", (message: ThreadAnswer | "ready") => (message === "ready" ? this.#ready(thread) : this.#answered(thread, message)));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      this.#end(thread, error.code === "ERR_WORKER_OUT_OF_MEMORY" ? new CheckStopped("memory") : error);
    });
    worker.on("exit", () => this.#end(thread, new Error("a thread that checks inputs has ended")));
  }

  #ready(thread: CheckThread): void {
    thread.isReady = true;
    thread.worker.unref();
    this.#rest(thread);
    this.#assign();
  }

  #begin(thread: CheckThread, waiting: WaitingCheck): void {
    thread.job = waiting;
    waiting.begunAt = performance.now();
    clearTimeout(thread.timer);
    // A process does not end while somebody waits for a verdict.
    thread.worker.ref();
    thread.worker.postMessage(waiting.question);
    thread.timer = setTimeout(() => this.#onDeadline(thread, waiting), this.#limits.deadline);
  }

  /** Where this loop was blocked, timers fire before messages are read. */
  #onDeadline(thread: CheckThread, waiting: WaitingCheck): void {
    const isLate = () => thread.job === waiting;
    setImmediate(() => setImmediate(() => isLate() && this.#end(thread, new CheckStopped("steps"))));
  }

  #answered(thread: CheckThread, answer: ThreadAnswer): void {
    const { job } = thread;
    if (job === undefined) return;
    this.#account(thread);
    thread.worker.unref();
    this.#rest(thread);
    if ("unfinished" in answer) job.reject(new CheckStopped(answer.unfinished));
    else job.resolve(answer);
    this.#assign();
  }

  #rest(thread: CheckThread): void {
    clearTimeout(thread.timer);
    thread.timer = setTimeout(() => this.#end(thread, undefined), this.#limits.idle).unref();
  }

  /** Whoever waits for it is told; one that never came up is told to the next who would have had it. */
  #end(thread: CheckThread, error: unknown): void {
    if (!this.#threads.delete(thread)) return;
    clearTimeout(thread.timer);
    void thread.worker.terminate();
    const job = thread.job ?? (thread.isReady || this.#waiting.size === 0 ? undefined : this.#next());
    this.#account(thread);
    job?.reject(error);
    this.#assign();
  }

  #account(thread: CheckThread): void {
    const { job } = thread;
    delete thread.job;
    if (job?.begunAt !== undefined) this.#allowances.use(job.caller, performance.now() - job.begunAt);
  }
}

/** The time that callers may use threads for: it is used up by checks, and comes back with time. */
class TimeAllowances {
  readonly #used = new Map<string, { ms: number; at: number }>();

  constructor(readonly limits: Pick<ThreadLimits, "allowance" | "regained">) {}

  has(caller: string): boolean {
    return this.#usedBy(caller) < this.limits.allowance;
  }

  use(caller: string, ms: number): void {
    this.#used.set(caller, { ms: this.#usedBy(caller) + ms, at: performance.now() });
    // Those that have all of it back need not be remembered.
    for (const [other] of this.#used) if (this.#usedBy(other) === 0) this.#used.delete(other);
  }

  #usedBy(caller: string): number {
    const { ms, at } = this.#used.get(caller) ?? { ms: 0, at: 0 };
    return Math.max(0, ms - (performance.now() - at) * this.limits.regained);
  }
}

function sizeOf(waiting: readonly WaitingCheck[]): number {
  return waiting.reduce((sum, { size }) => sum + size, 0);
}
