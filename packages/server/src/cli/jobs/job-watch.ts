import type { AttemptView, JobView, Pawl } from "pawl";
import { allItems, isFinished, type LogView } from "pawl/service";
import { CliError, EXIT, type ExitCode, interrupted } from "../exit.js";
import { period } from "../flags.js";
import type { Output } from "../output.js";
import { pause } from "../pause.js";
import type { CommandSession } from "../session.js";
import { duration, valueLines } from "../text.js";
import { stateCell } from "./job-text.js";

/** ms between two looks: a person does not see more */
const POLL_INTERVAL_MS = 400;
const ALL = { limit: 1_000 };

/** Tells what happens to a job until it is finished: states, attempts, progress, log lines. */
export async function watch({ out, pawl, signal }: CommandSession, { wait }: WaitFlag, id: string): Promise<ExitCode> {
  const maxWait = waitMs(wait);
  return followJob(out, await pawl(), signal, id, maxWait);
}

export interface WaitFlag {
  readonly wait?: string;
}

/** ms that a job is followed at most; undefined: until it is finished */
export function waitMs(wait: string | undefined): number | undefined {
  return wait === undefined ? undefined : period("--wait", wait);
}

export async function followJob(out: Output, pawl: Pawl, signal: AbortSignal, id: string, maxWait = Number.POSITIVE_INFINITY): Promise<ExitCode> {
  const news = new JobNews(out);
  const end = performance.now() + maxWait;
  for (;;) {
    // The state first: what ended after it was read is told at the next look.
    const job = await pawl.jobs.get(id);
    const [history, logs] = await Promise.all([allItems(pawl.jobs.history(id, ALL)), allItems(pawl.jobs.logs(id, ALL))]);
    news.print(job, history, logs);
    if (isFinished(job.state)) return job.state === "succeeded" ? EXIT.done : EXIT.died;
    const left = end - performance.now();
    if (left <= 0)
      throw new CliError(
        EXIT.unfinished,
        "wait_timeout",
        `job ${id} is ${job.state} after ${duration(maxWait)}, and goes on`,
        `pawl jobs watch ${id}`,
      );
    if (!(await pause(Math.min(POLL_INTERVAL_MS, left), signal)))
      throw interrupted(`job ${id} is ${job.state}, and goes on`, `pawl jobs watch ${id}`);
  }
}

/** What has not been told yet. */
class JobNews {
  #state: string | undefined;
  #attempts = 0;
  #lines = 0;
  #progress: string | undefined;

  constructor(private readonly out: Output) {}

  print(job: JobView, history: readonly AttemptView[], logs: readonly LogView[]): void {
    for (const line of logs.slice(this.#lines)) printLog(this.out, line);
    this.#lines = logs.length;
    for (const attempt of history.slice(this.#attempts)) {
      const { outcome, duration: took, failure, next } = attempt;
      const why = failure === undefined ? "" : `: ${failure.name}: ${failure.message}`;
      this.out.entry({ event: "attempt", ...attempt }, () => this.out.line(`attempt ${outcome} after ${duration(took)}${why}; then ${next}`));
    }
    this.#attempts = history.length;
    const progress = JSON.stringify(job.progress);
    if (progress !== this.#progress) this.out.entry({ event: "progress", progress: job.progress }, () => this.out.line(`progress ${progress}`));
    this.#progress = progress;
    if (job.state === this.#state) return;
    this.#state = job.state;
    const { state, nextRunAt, output } = job;
    this.out.entry({ event: "state", state, ...(nextRunAt === undefined ? {} : { nextRunAt }), ...(output === undefined ? {} : { output }) }, () => {
      this.out.line(stateCell(state), nextRunAt === undefined ? "" : ` until ${nextRunAt.toISOString()}`);
      for (const line of valueLines(output)) this.out.line(line);
    });
  }
}

/** What a job's handler logged, and with `--follow` what it goes on to log. */
export async function followLogs({ out, pawl, signal }: CommandSession, { follow }: { follow?: boolean }, id: string): Promise<void> {
  const { jobs } = await pawl();
  let cursor: string | undefined;
  let printed = 0;
  for (;;) {
    const { state } = await jobs.get(id);
    for (let more = true; more; ) {
      const page = await jobs.logs(id, cursor === undefined ? ALL : { ...ALL, cursor });
      for (const line of page.items.slice(printed)) printLog(out, line);
      // The last page is looked at again: it grows.
      more = page.next !== undefined;
      printed = more ? 0 : page.items.length;
      cursor = page.next ?? cursor;
    }
    if (follow !== true || isFinished(state)) return;
    if (!(await pause(POLL_INTERVAL_MS, signal))) return;
  }
}

const LEVEL_STYLES = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const;

function printLog(out: Output, line: LogView): void {
  const { at, level, message, data } = line;
  out.entry({ event: "log", ...line }, () =>
    out.line(
      { text: at.toISOString().slice(11, 23), style: "dim" },
      " ",
      { text: level.padEnd(5), style: LEVEL_STYLES[level] },
      ` ${message}${data === undefined ? "" : ` ${JSON.stringify(data)}`}`,
    ),
  );
}
