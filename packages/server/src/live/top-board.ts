import type { ReadStream, WriteStream } from "node:tty";
import type { Pawl, QueueView } from "pawl";
import { messageOf } from "../errors/message-of.js";
import { keysOf } from "./keys.js";
import { showOn } from "./terminal.js";
import { NOTHING, ratesBetween, type TopData } from "./top-data.js";
import { sheetOf } from "./top-rows.js";
import { deepest, topScreen } from "./top-screen.js";
import { press, START, type TopState, type Wish } from "./top-state.js";

const PAGE = 200;

/** `top`: looks at the store at a pace, paints what changed, and does what keys ask for. */
export class TopBoard {
  #state: TopState = START;
  #data: TopData = NOTHING;
  #counted: { readonly queues: readonly QueueView[]; readonly at: number } | undefined;

  constructor(
    private readonly pawl: Pawl,
    /** ms */
    private readonly pace: number,
  ) {}

  /** Until somebody quits, or calls it off. */
  async run(keyboard: ReadStream, terminal: WriteStream, signal: AbortSignal): Promise<void> {
    const shown = showOn(terminal, (size) => topScreen(this.#state, this.#data, this.#sheet(), size), this.pace);
    let wake = () => {};
    let over = false;
    const quit = () => {
      over = true;
      wake();
    };
    const hear = (chunk: Buffer | string) => {
      for (const key of keysOf(String(chunk))) {
        const sheet = this.#sheet();
        const before = this.#state;
        const { columns = 80, rows = 24 } = terminal;
        const { state, wish } = press(before, key, {
          keys: sheet.rows.map(({ key: of }) => of),
          columns: sheet.headings.length,
          deepest: deepest(this.#data, { columns, rows }),
        });
        this.#state = state;
        if (wish?.kind === "quit") return quit();
        if (wish !== undefined) void this.#do(wish).then(wake);
        if (state.job !== before.job || state.view !== before.view || state.jobs !== before.jobs) wake();
      }
      shown.repaint();
    };
    signal.addEventListener("abort", quit);
    keyboard.setRawMode(true);
    keyboard.on("data", hear);
    keyboard.resume();
    try {
      while (!over && !signal.aborted) {
        await this.#look();
        shown.repaint();
        if (!over)
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, this.pace);
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
      }
    } finally {
      signal.removeEventListener("abort", quit);
      keyboard.off("data", hear);
      keyboard.setRawMode(false);
      keyboard.pause();
      shown.hide();
    }
  }

  #sheet() {
    const { view, sort, filter } = this.#state;
    return sheetOf(view, this.#data, { sort: sort[view], filter });
  }

  async #look(): Promise<void> {
    const { pawl } = this;
    const { view, job, jobs } = this.#state;
    try {
      const info = this.#data.info ?? (await pawl.info());
      const queues = await pawl.queues.list();
      const at = performance.now();
      const rates = this.#counted === undefined ? new Map() : ratesBetween(this.#counted.queues, queues, at - this.#counted.at);
      this.#counted = { queues, at };
      this.#data = {
        info,
        queues,
        rates,
        lanes: view === "lanes" ? await pawl.lanes() : this.#data.lanes,
        workers: view === "workers" ? await pawl.workers() : this.#data.workers,
        jobs: view === "jobs" && job === undefined ? await this.#jobs(jobs) : this.#data.jobs,
        ...(job === undefined ? {} : { job: await this.#job(job) }),
        now: new Date(),
      };
    } catch (error) {
      this.#data = { ...this.#data, trouble: messageOf(error) };
    }
  }

  async #jobs({ state, queue, task, tenant }: TopState["jobs"]) {
    const filter = {
      ...(state === undefined ? {} : { state }),
      ...(queue === undefined ? {} : { queue }),
      ...(task === undefined ? {} : { task }),
      ...(tenant === undefined ? {} : { tenant }),
    };
    return (await this.pawl.jobs.list(filter, { limit: PAGE })).jobs;
  }

  async #job(id: string) {
    const { jobs } = this.pawl;
    const [job, history, logs, explanation] = await Promise.all([jobs.get(id), jobs.history(id), jobs.logs(id), jobs.explain(id)]);
    return { job, history, logs, explanation };
  }

  async #do(wish: Exclude<Wish, { kind: "quit" }>): Promise<void> {
    try {
      this.#say(await this.#carryOut(wish));
    } catch (error) {
      this.#say(messageOf(error));
    }
  }

  async #carryOut({ kind, view, key }: Exclude<Wish, { kind: "quit" }>): Promise<string> {
    const { queues, jobs } = this.pawl;
    if (view === "queues" && kind === "pause") {
      const { paused } = await queues.get(key);
      await queues[paused ? "resume" : "pause"](key);
      return `${key} ${paused ? "resumed" : "paused"}`;
    }
    if (view !== "jobs") return `${kind} is for ${kind === "pause" ? "queues and jobs" : "jobs"}`;
    const { state, parkedFor } = await jobs.get(key);
    const verb = kind === "retry" ? (state === "dead" ? "redrive" : "retry") : parkedFor === "paused" ? "resume" : "pause";
    const { from, to } = await jobs[verb](key);
    return `${key}: ${verb}, ${from} → ${to}`;
  }

  #say(message: string): void {
    this.#state = { ...this.#state, message };
  }
}
