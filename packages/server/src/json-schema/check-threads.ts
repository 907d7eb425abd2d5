import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { spawnThread } from "pawl";
import type { Issue } from "./issues.js";
import { Unfinished } from "./run.js";

export interface ThreadQuestion {
  /** the same for the same schema */
  readonly key: string;
  /** as JSON */
  readonly schema: string;
  /** as JSON; left out: there is none */
  readonly value?: string;
}

export type ThreadAnswer = { readonly steps: number; readonly issues?: readonly Issue[] } | { readonly unfinished: Unfinished["reason"] };

export interface Judged {
  readonly steps: number;
  readonly issues?: readonly Issue[];
}

/** Too many checks wait already, this one waited too long, or its caller has used up its time. */
export class Crowded extends Error {
  override readonly name = "Crowded";
}

export interface ThreadLimits {
  readonly threads: number;
  /** ms that a check may take */
  readonly deadline: number;
  /** ms that it may wait for a thread */
  readonly patience: number;
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
  patience: 5_000,
  allowance: 10_000,
  regained: 0.5,
  perCaller: 4_000_000,
  overall: 64_000_000,
  idle: 30_000,
  memory: 256,
};

/** MB for what is not kept long */
const YOUNG = 32;
/** characters that a question counts for beside its value */
const OF_A_QUESTION = 10_000;

interface Waiting {
  readonly caller: string;
  readonly question: ThreadQuestion;
  readonly size: number;
  readonly patience: NodeJS.Timeout;
  begunAt?: number;
  resolve(judged: Judged): void;
  reject(error: unknown): void;
}

interface Thread {
  readonly worker: Worker;
  isReady: boolean;
  job?: Waiting;
  timer?: NodeJS.Timeout;
}

/**
 * Threads for checks of inputs that take long. Callers take turns, so that one that asks for many waits for itself, and each has so
 * much time, so that a batch of costly inputs is refused in the end. A thread that does not answer in time, or takes too much memory, is
 * ended and replaced.
 */
export class CheckThreads {
  readonly #limits: ThreadLimits;
  readonly #threads = new Set<Thread>();
  /** by caller; the first one's turn is next */
  readonly #waiting = new Map<string, Waiting[]>();
  #size = 0;
  readonly #allowances: Allowances;

  constructor(limits: Partial<ThreadLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
    this.#allowances = new Allowances(this.#limits);
  }

  /** how many there are now */
  get count(): number {
    return this.#threads.size;
  }

  /** Throws `Unfinished` without a verdict, and `Crowded`. */
  check(caller: string, question: ThreadQuestion): Promise<Judged> {
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => this.#giveUp(waiting), this.#limits.patience);
      const size = OF_A_QUESTION + (question.value?.length ?? 0);
      const waiting: Waiting = { caller, question, size, patience, resolve, reject };
      const own = this.#waiting.get(caller) ?? [];
      own.push(waiting);
      this.#waiting.set(caller, own);
      this.#size += size;
      if (own.length > 1 && sizeOf(own) - (own[0] as Waiting).size > this.#limits.perCaller) this.#giveUp(waiting);
      while (this.#size > this.#limits.overall) this.#giveUp(this.#heaviest().at(-1) as Waiting);
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
      else waiting.reject(new Crowded());
    }
  }

  /** Of the caller whose turn it is; its next one comes after those of all others. */
  #next(): Waiting {
    const [caller, own] = this.#waiting.entries().next().value as [string, Waiting[]];
    const waiting = own.shift() as Waiting;
    this.#waiting.delete(caller);
    if (own.length > 0) this.#waiting.set(caller, own);
    this.#left(waiting);
    return waiting;
  }

  #left({ patience, size }: Waiting): void {
    clearTimeout(patience);
    this.#size -= size;
  }

  #heaviest(): readonly Waiting[] {
    return [...this.#waiting.values()].reduce((most, own) => (sizeOf(own) > sizeOf(most) ? own : most));
  }

  #giveUp(waiting: Waiting): void {
    const own = this.#waiting.get(waiting.caller) ?? [];
    const rest = own.filter((one) => one !== waiting);
    if (rest.length === own.length) return;
    if (rest.length === 0) this.#waiting.delete(waiting.caller);
    else own.splice(0, own.length, ...rest);
    this.#left(waiting);
    waiting.reject(new Crowded());
  }

  #spawn(): void {
    const worker = spawnThread(import.meta.url, "./check-thread.js", {
      name: "pawl-checks",
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.memory, maxYoungGenerationSizeMb: YOUNG },
    });
    const thread: Thread = { worker, isReady: false };
    this.#threads.add(thread);
    worker.on("message", (said: ThreadAnswer | "ready") => (said === "ready" ? this.#ready(thread) : this.#answered(thread, said)));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      this.#end(thread, error.code === "ERR_WORKER_OUT_OF_MEMORY" ? new Unfinished("memory") : error);
    });
    worker.on("exit", () => this.#end(thread, new Error("a thread that checks inputs has ended")));
  }

  #ready(thread: Thread): void {
    thread.isReady = true;
    thread.worker.unref();
    this.#rest(thread);
    this.#assign();
  }

  #begin(thread: Thread, waiting: Waiting): void {
    thread.job = waiting;
    waiting.begunAt = performance.now();
    clearTimeout(thread.timer);
    // A process does not end while somebody waits for a verdict.
    thread.worker.ref();
    thread.worker.postMessage(waiting.question);
    thread.timer = setTimeout(() => this.#late(thread, waiting), this.#limits.deadline);
  }

  /** Where this loop was blocked, timers fire before messages are read. */
  #late(thread: Thread, waiting: Waiting): void {
    const isLate = () => thread.job === waiting;
    setImmediate(() => setImmediate(() => isLate() && this.#end(thread, new Unfinished("steps"))));
  }

  #answered(thread: Thread, answer: ThreadAnswer): void {
    const { job } = thread;
    if (job === undefined) return;
    this.#account(thread);
    thread.worker.unref();
    this.#rest(thread);
    if ("unfinished" in answer) job.reject(new Unfinished(answer.unfinished));
    else job.resolve(answer);
    this.#assign();
  }

  #rest(thread: Thread): void {
    clearTimeout(thread.timer);
    thread.timer = setTimeout(() => this.#end(thread, undefined), this.#limits.idle).unref();
  }

  /** Whoever waits for it is told; one that never came up is told to the next who would have had it. */
  #end(thread: Thread, error: unknown): void {
    if (!this.#threads.delete(thread)) return;
    clearTimeout(thread.timer);
    void thread.worker.terminate();
    const job = thread.job ?? (thread.isReady || this.#waiting.size === 0 ? undefined : this.#next());
    this.#account(thread);
    job?.reject(error);
    this.#assign();
  }

  #account(thread: Thread): void {
    const { job } = thread;
    delete thread.job;
    if (job?.begunAt !== undefined) this.#allowances.use(job.caller, performance.now() - job.begunAt);
  }
}

/** The time that callers may use threads for: it is used up by checks, and comes back with time. */
class Allowances {
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

function sizeOf(waiting: readonly Waiting[]): number {
  return waiting.reduce((sum, { size }) => sum + size, 0);
}
