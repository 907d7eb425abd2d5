import type { Info, Pawl, QueueView, RunningJob, Worker } from "pawl";
import { type Entry, entriesOf } from "./entry.js";

/** Everything a live view shows, at one instant. */
export interface Picture {
  readonly info: Info;
  /** where the API answers, if it does */
  readonly api?: string;
  readonly queues: readonly QueueView[];
  readonly running: readonly RunningJob[];
  readonly slots: number;
  /** newest last */
  readonly recent: readonly Recent[];
  /** jobs that succeeded, per second, newest last */
  readonly rates: readonly number[];
  /** ms */
  readonly up: number;
  readonly stopping: boolean;
}

export interface Recent extends Entry {
  readonly at: Date;
  /** how many alike in a row */
  readonly times: number;
}

const KEPT = 100;
const RATES = 60;
const LOOK = 500;

/** Follows a pawl and its worker: events as they come, counts twice a second. */
export class Board {
  readonly #recent: Recent[] = [];
  readonly #rates: number[] = Array.from({ length: RATES }, () => 0);
  readonly #started = performance.now();
  readonly #stops: (() => void)[];
  #second = 0;
  #queues: readonly QueueView[] = [];
  #looking: Promise<void> = Promise.resolve();
  #stopping = false;
  succeeded = 0;
  dead = 0;

  constructor(
    private readonly pawl: Pawl,
    private readonly worker: Worker,
    private readonly info: Info,
    private readonly api?: string,
  ) {
    const timer = setInterval(() => {
      this.#looking = this.#looking.then(() => this.#look());
    }, LOOK);
    this.#looking = this.#look();
    this.#stops = [
      () => clearInterval(timer),
      entriesOf(pawl, (entry) => this.#add(entry)),
      pawl.on("attempt.settled", ({ next }) => this.#count(next)),
      pawl.on("worker.stopping", () => {
        this.#stopping = true;
      }),
    ];
  }

  picture(): Picture {
    this.#turn();
    const { concurrency } = this.worker.status();
    return {
      info: this.info,
      ...(this.api === undefined ? {} : { api: this.api }),
      queues: this.#queues,
      running: this.worker.running,
      slots: concurrency,
      recent: this.#recent,
      rates: this.#rates,
      up: performance.now() - this.#started,
      stopping: this.#stopping,
    };
  }

  /** Waits for the look under way, which needs the store. */
  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    await this.#looking;
  }

  async #look(): Promise<void> {
    try {
      this.#queues = await this.pawl.queues.list();
    } catch {
      // The store is away: its events say so, and the next look may find it back.
    }
  }

  #count(next: string): void {
    if (next === "dead") this.dead++;
    if (next !== "succeeded") return;
    this.succeeded++;
    this.#turn();
    this.#rates[RATES - 1] = (this.#rates[RATES - 1] as number) + 1;
  }

  /** Moves the rates on to the second that it is. */
  #turn(): void {
    const second = Math.floor((performance.now() - this.#started) / 1_000);
    for (; this.#second < second; this.#second++) {
      this.#rates.shift();
      this.#rates.push(0);
    }
  }

  /** A batch of twenty that went well is one line, not twenty. */
  #add(entry: Entry): void {
    const at = new Date();
    const last = this.#recent.at(-1);
    if (last?.kind === entry.kind && last.subject === entry.subject && entry.kind === "good") {
      this.#recent[this.#recent.length - 1] = { ...entry, at, times: last.times + 1 };
      return;
    }
    this.#recent.push({ ...entry, at, times: 1 });
    if (this.#recent.length > KEPT) this.#recent.shift();
  }
}
