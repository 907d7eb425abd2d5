import type { Enqueued, NewJob } from "../core/job.js";
import { invalid } from "./check.js";

/** Groups what an iterable yields, without a turn of the event loop per item where it is a plain one. */
export async function* chunked(inputs: Iterable<unknown> | AsyncIterable<unknown>, size: number): AsyncGenerator<readonly unknown[]> {
  let group: unknown[] = [];
  if (isIterable(inputs)) {
    for (const input of inputs) {
      group.push(input);
      if (group.length < size) continue;
      yield group;
      group = [];
    }
  } else if (isAsyncIterable(inputs)) {
    for await (const input of inputs) {
      group.push(input);
      if (group.length < size) continue;
      yield group;
      group = [];
    }
  } else throw invalid("inputs", "it is not iterable");
  if (group.length > 0) yield group;
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

type Send = (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>;
type Done = (answers: readonly Enqueued[], chunk: number) => void;

/** Sends chunks on, a few at a time. After a failure it takes no more; once settled, it knows how many jobs were stored. */
export class ChunkPipe {
  stored = 0;
  failure: { readonly error: unknown } | undefined;
  #sent = 0;
  readonly #flying = new Set<Promise<void>>();

  constructor(
    readonly send: Send,
    readonly most: number,
    readonly done: Done,
  ) {}

  /** Resolves when there is room for the next chunk. */
  async push(jobs: readonly NewJob[]): Promise<void> {
    const flight: Promise<void> = this.#fly(jobs, this.#sent++).finally(() => this.#flying.delete(flight));
    this.#flying.add(flight);
    if (this.#flying.size >= this.most) await Promise.race(this.#flying);
    this.#check();
  }

  async end(): Promise<void> {
    await this.settled();
    this.#check();
  }

  async settled(): Promise<void> {
    await Promise.all(this.#flying);
  }

  #check(): void {
    if (this.failure !== undefined) throw this.failure.error;
  }

  async #fly(jobs: readonly NewJob[], chunk: number): Promise<void> {
    try {
      const answers = await this.send(jobs);
      for (const { kind } of answers) if (kind === "created") this.stored++;
      this.done(answers, chunk);
    } catch (error) {
      this.failure ??= { error };
    }
  }
}
