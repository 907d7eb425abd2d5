import type { Pawl } from "pawl";
import type { PawlInfo, QueueView } from "pawl/service";
import type { RunningJob, Worker } from "pawl/worker";
import { type Activity, followActivity } from "./activity.js";

/** Everything a live view shows, at one instant. */
export interface DemoPicture {
  readonly info: PawlInfo;
  /** where the API answers, if it does */
  readonly api?: string;
  readonly queues: readonly QueueView[];
  readonly running: readonly RunningJob[];
  readonly slots: number;
  /** newest last */
  readonly recent: readonly RecentActivity[];
  /** jobs that succeeded, per second, newest last */
  readonly rates: readonly number[];
  /** ms */
  readonly up: number;
  readonly stopping: boolean;
}

export interface RecentActivity extends Activity {
  readonly at: Date;
  /** how many alike in a row */
  readonly times: number;
}

const MAX_RECENT = 100;
const RATE_SECONDS = 60;
const REFRESH_INTERVAL_MS = 500;

/** Follows a pawl and its worker: events as they come, counts twice a second. */
export class DemoBoard {
  readonly #recent: RecentActivity[] = [];
  readonly #rates: number[] = Array.from({ length: RATE_SECONDS }, () => 0);
  readonly #started = performance.now();
  readonly #stops: (() => void)[];
  #second = 0;
  #queues: readonly QueueView[] = [];
  #refreshing: Promise<void> = Promise.resolve();
  #stopping = false;
  succeeded = 0;
  dead = 0;

  constructor(
    private readonly pawl: Pawl,
    private readonly worker: Worker,
    private readonly info: PawlInfo,
    private readonly api?: string,
  ) {
    const timer = setInterval(() => {
      this.#refreshing = this.#refreshing.then(() => this.#refresh());
    }, REFRESH_INTERVAL_MS);
    this.#refreshing = this.#refresh();
    this.#stops = [
      () => clearInterval(timer),
      followActivity(pawl, (entry) => this.#add(entry)),
      pawl.on("attempt.settled", ({ next }) => this.#count(next)),
      pawl.on("worker.stopping", () => {
        this.#stopping = true;
      }),
    ];
  }

  picture(): DemoPicture {
    this.#advanceRates();
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
    await this.#refreshing;
  }

  async #refresh(): Promise<void> {
    try {
      this.#queues = (await this.pawl.queues.list()).items;
    } catch {
      // The store is away: its events say so, and the next look may find it back.
    }
  }

  #count(next: string): void {
    if (next === "dead") this.dead++;
    if (next !== "succeeded") return;
    this.succeeded++;
    this.#advanceRates();
    this.#rates[RATE_SECONDS - 1] = (this.#rates[RATE_SECONDS - 1] as number) + 1;
  }

  /** Moves the rates on to the second that it is. */
  #advanceRates(): void {
    const second = Math.floor((performance.now() - this.#started) / 1_000);
    for (; this.#second < second; this.#second++) {
      this.#rates.shift();
      this.#rates.push(0);
    }
  }

  /** A batch of twenty that went well is one line, not twenty. */
  #add(entry: Activity): void {
    const at = new Date();
    const last = this.#recent.at(-1);
    if (last?.kind === entry.kind && last.subject === entry.subject && entry.kind === "good") {
      this.#recent[this.#recent.length - 1] = { ...entry, at, times: last.times + 1 };
      return;
    }
    this.#recent.push({ ...entry, at, times: 1 });
    if (this.#recent.length > MAX_RECENT) this.#recent.shift();
  }
}
