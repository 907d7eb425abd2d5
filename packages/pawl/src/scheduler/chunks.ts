import { BOUNDS } from "../core/bounds.js";
import type { Enqueued, NewJob } from "../core/job.js";
import { invalid } from "./check.js";

/** Takes what an iterable yields, one by one, and waits only where `take` says so: a plain iterable costs no turns of its own. */
export async function each(inputs: Iterable<unknown> | AsyncIterable<unknown>, take: (input: unknown) => Promise<void> | undefined): Promise<void> {
  if (isIterable(inputs)) {
    for (const input of inputs) {
      const wait = take(input);
      if (wait !== undefined) await wait;
    }
  } else if (isAsyncIterable(inputs)) {
    for await (const input of inputs) {
      const wait = take(input);
      if (wait !== undefined) await wait;
    }
  } else throw invalid("inputs", "it is not iterable");
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

type Send = (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>;
export type Done = (answers: readonly Enqueued[], chunk: number, jobs: readonly NewJob[]) => void;

export interface PipeOptions {
  /** chunks on their way at a time */
  readonly most: number;
  /** The others wait for the first: a call that is refused with it stores nothing. */
  readonly firstAlone?: boolean;
}

/**
 * Gathers jobs into chunks and sends them on, a few at a time. After a failure it takes no more; once settled, it
 * knows how many jobs were stored.
 */
export class ChunkPipe {
  stored = 0;
  failure: { readonly error: unknown } | undefined;
  #chunk: NewJob[] = [];
  #size = 0;
  #sent = 0;
  readonly #flying = new Set<Promise<void>>();

  constructor(
    readonly send: Send,
    readonly options: PipeOptions,
    readonly done: Done,
  ) {}

  /** Answers with a promise if there is no room for more before it resolves. */
  add(job: NewJob): Promise<void> | undefined {
    this.#chunk.push(job);
    this.#size += job.input.length;
    return this.#chunk.length >= BOUNDS.enqueueBatch || this.#size >= BOUNDS.statement ? this.#push() : undefined;
  }

  async end(): Promise<void> {
    if (this.#chunk.length > 0) await this.#push();
    await this.settled();
    this.#check();
  }

  async settled(): Promise<void> {
    await Promise.all(this.#flying);
  }

  async #push(): Promise<void> {
    const jobs = this.#chunk;
    this.#chunk = [];
    this.#size = 0;
    // Waiting with a full chunk in hand, not before it is filled: when one comes back, the next one goes.
    const { most, firstAlone = false } = this.options;
    while (this.#flying.size >= (firstAlone && this.#sent === 1 ? 1 : most)) await Promise.race(this.#flying);
    this.#check();
    const flight: Promise<void> = this.#fly(jobs, this.#sent++).finally(() => this.#flying.delete(flight));
    this.#flying.add(flight);
  }

  #check(): void {
    if (this.failure !== undefined) throw this.failure.error;
  }

  async #fly(jobs: readonly NewJob[], chunk: number): Promise<void> {
    try {
      const answers = await this.send(jobs);
      for (const { kind } of answers) if (kind === "created") this.stored++;
      this.done(answers, chunk, jobs);
    } catch (error) {
      this.failure ??= { error };
    }
  }
}
