import type { ReadStream, WriteStream } from "node:tty";
import type { Pawl } from "pawl";
import { allItems, type QueueView } from "pawl/service";
import { messageOf } from "../../text/error-message.js";
import { keysOf } from "../keys.js";
import { paintOn } from "../painter.js";
import { NO_DATA, ratesBetween, type TopData } from "./data.js";
import { sheetOf } from "./rows.js";
import { maxScrollOf, topScreen } from "./screen.js";
import { INITIAL_STATE, press, type TopAction, type TopState } from "./state.js";

const PAGE_SIZE = 200;

/** `top`: looks at the store at a pace, paints what changed, and does what keys ask for. */
export class TopBoard {
  #state: TopState = INITIAL_STATE;
  #data: TopData = NO_DATA;
  #lastCounts: { readonly queues: readonly QueueView[]; readonly at: number } | undefined;

  constructor(
    private readonly pawl: Pawl,
    /** ms */
    private readonly pace: number,
  ) {}

  /** Until somebody quits, or calls it off. */
  async run(keyboard: ReadStream, terminal: WriteStream, signal: AbortSignal): Promise<void> {
    const painted = paintOn(terminal, (size) => topScreen(this.#state, this.#data, this.#sheet(), size), this.pace);
    let wake = () => {};
    let over = false;
    const quit = () => {
      over = true;
      wake();
    };
    const onInput = (chunk: Buffer | string) => {
      for (const key of keysOf(String(chunk))) {
        const sheet = this.#sheet();
        const before = this.#state;
        const { columns = 80, rows = 24 } = terminal;
        const { state, action } = press(before, key, {
          keys: sheet.rows.map(({ key: of }) => of),
          columns: sheet.headings.length,
          maxScroll: maxScrollOf(this.#data, { columns, rows }),
        });
        this.#state = state;
        if (action?.kind === "quit") return quit();
        if (action !== undefined) void this.#tryAction(action).then(wake);
        if (state.job !== before.job || state.view !== before.view || state.jobs !== before.jobs) wake();
      }
      painted.repaint();
    };
    signal.addEventListener("abort", quit);
    keyboard.setRawMode(true);
    keyboard.on("data", onInput);
    keyboard.resume();
    try {
      while (!over && !signal.aborted) {
        await this.#refresh();
        painted.repaint();
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
      keyboard.off("data", onInput);
      keyboard.setRawMode(false);
      keyboard.pause();
      painted.hide();
    }
  }

  #sheet() {
    const { view, sort, filter } = this.#state;
    return sheetOf(view, this.#data, { sort: sort[view], filter });
  }

  async #refresh(): Promise<void> {
    const { pawl } = this;
    const { view, job, jobs } = this.#state;
    try {
      const info = this.#data.info ?? (await pawl.info());
      const { items: queues } = await pawl.queues.list();
      const at = performance.now();
      const rates = this.#lastCounts === undefined ? new Map() : ratesBetween(this.#lastCounts.queues, queues, at - this.#lastCounts.at);
      this.#lastCounts = { queues, at };
      this.#data = {
        info,
        queues,
        rates,
        lanes: view === "lanes" ? (await pawl.lanes.list()).items : this.#data.lanes,
        workers: view === "workers" ? (await pawl.workers.list()).items : this.#data.workers,
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
    return (await this.pawl.jobs.list(filter, { limit: PAGE_SIZE })).items;
  }

  async #job(id: string) {
    const { jobs } = this.pawl;
    const [job, history, logs, explanation] = await Promise.all([
      jobs.get(id),
      allItems(jobs.history(id, { limit: 1_000 })),
      allItems(jobs.logs(id, { limit: 1_000 })),
      jobs.explain(id),
    ]);
    return { job, history, logs, explanation };
  }

  async #tryAction(action: Exclude<TopAction, { kind: "quit" }>): Promise<void> {
    try {
      this.#setMessage(await this.#carryOut(action));
    } catch (error) {
      this.#setMessage(messageOf(error));
    }
  }

  async #carryOut({ kind, view, key }: Exclude<TopAction, { kind: "quit" }>): Promise<string> {
    const { queues, jobs } = this.pawl;
    if (view === "queues" && kind === "pause") {
      const { paused } = await queues.get(key);
      await queues[paused ? "resume" : "pause"](key);
      return `${key} ${paused ? "resumed" : "paused"}`;
    }
    if (view !== "jobs") return `${kind} is for ${kind === "pause" ? "queues and jobs" : "jobs"}`;
    const { state, parkedFor } = await jobs.get(key);
    const verb = kind === "promote" ? (state === "dead" ? "redrive" : "promote") : parkedFor === "paused" ? "resume" : "pause";
    const { from, to } = await jobs[verb](key);
    return `${key}: ${verb}, ${from} → ${to}`;
  }

  #setMessage(message: string): void {
    this.#state = { ...this.#state, message };
  }
}
