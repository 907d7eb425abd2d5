import type { Enqueued, NewJob } from "../../core/jobs/job.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { invalid } from "../check.js";

/** Takes what an iterable yields, one by one, and waits only where `take` says so: a plain iterable costs no turns of its own. */
export async function forEachInput(
  inputs: Iterable<unknown> | AsyncIterable<unknown>,
  take: (input: unknown) => Promise<void> | undefined,
): Promise<void> {
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

type SendChunk = (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>;
export type OnChunkStored = (answers: readonly Enqueued[], chunk: number, jobs: readonly NewJob[]) => void;

export interface ChunkPipeOptions {
  /** chunks on their way at a time */
  readonly maxInFlight: number;
  /** The others wait for the first: a call that is refused with it stores nothing. */
  readonly firstChunkAlone?: boolean;
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
  readonly #inFlight = new Set<Promise<void>>();

  constructor(
    readonly send: SendChunk,
    readonly options: ChunkPipeOptions,
    readonly done: OnChunkStored,
  ) {}

  /** Answers with a promise if there is no room for more before it resolves. */
  add(job: NewJob): Promise<void> | undefined {
    this.#chunk.push(job);
    this.#size += job.input.length;
    return this.#chunk.length >= BOUNDS.enqueueAll || this.#size >= BOUNDS.statement ? this.#push() : undefined;
  }

  async end(): Promise<void> {
    if (this.#chunk.length > 0) await this.#push();
    await this.settled();
    this.#check();
  }

  async settled(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  async #push(): Promise<void> {
    const jobs = this.#chunk;
    this.#chunk = [];
    this.#size = 0;
    // Waiting with a full chunk in hand, not before it is filled: when one comes back, the next one goes.
    const { maxInFlight, firstChunkAlone = false } = this.options;
    while (this.#inFlight.size >= (firstChunkAlone && this.#sent === 1 ? 1 : maxInFlight)) await Promise.race(this.#inFlight);
    this.#check();
    const sending: Promise<void> = this.#sendChunk(jobs, this.#sent++).finally(() => this.#inFlight.delete(sending));
    this.#inFlight.add(sending);
  }

  #check(): void {
    if (this.failure !== undefined) throw this.failure.error;
  }

  async #sendChunk(jobs: readonly NewJob[], chunk: number): Promise<void> {
    try {
      const answers = await this.send(jobs);
      for (const { kind } of answers) if (kind === "created") this.stored++;
      this.done(answers, chunk, jobs);
    } catch (error) {
      this.failure ??= { error };
    }
  }
}
