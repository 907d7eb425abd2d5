import { type AttemptView, isFinished, type JobView, type LogPage, type LogView, type Pawl } from "pawl";
import { EXIT, type ExitCode, interrupted } from "./exit.js";
import { stateCell } from "./job-words.js";
import type { Output } from "./output.js";
import { pause } from "./pause.js";
import type { Session } from "./session.js";
import { duration, valueLines } from "./words.js";

/** ms between two looks: a person does not see more */
const LOOK = 400;

/** Tells what happens to a job until it is finished: states, attempts, progress, log lines. */
export async function watch({ out, pawl, signal }: Session, _: unknown, id: string): Promise<ExitCode> {
  return followJob(out, await pawl(), signal, id);
}

export async function followJob(out: Output, pawl: Pawl, signal: AbortSignal, id: string): Promise<ExitCode> {
  const news = new News(out);
  for (;;) {
    // The state first: what ended after it was read is told at the next look.
    const job = await pawl.jobs.get(id);
    const [history, logs] = await Promise.all([pawl.jobs.history(id), pawl.jobs.logs(id)]);
    news.tell(job, history, logs);
    if (isFinished(job.state)) return job.state === "succeeded" ? EXIT.done : EXIT.died;
    if (!(await pause(LOOK, signal))) throw interrupted(`job ${id} is ${job.state}, and goes on`, `pawl jobs watch ${id}`);
  }
}

/** What has not been told yet. */
class News {
  #state: string | undefined;
  #attempts = 0;
  #lines = 0;
  #progress: string | undefined;

  constructor(private readonly out: Output) {}

  tell(job: JobView, history: readonly AttemptView[], logs: readonly LogView[]): void {
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
    const { state, runAt, output } = job;
    this.out.entry({ event: "state", state, ...(runAt === undefined ? {} : { runAt }), ...(output === undefined ? {} : { output }) }, () => {
      this.out.line(stateCell(state), runAt === undefined ? "" : ` until ${runAt.toISOString()}`);
      for (const line of valueLines(output)) this.out.line(line);
    });
  }
}

/** What a job's handler logged, and with `--follow` what it goes on to log. */
export async function followLogs({ out, pawl, signal }: Session, { follow }: { follow?: boolean }, id: string): Promise<void> {
  const { jobs } = await pawl();
  let told = 0;
  for (;;) {
    const { state } = await jobs.get(id);
    for (let next: number | undefined = told; next !== undefined; ) {
      const page: LogPage = await jobs.logPage(id, { after: next });
      for (const line of page.lines) printLog(out, line);
      told += page.lines.length;
      next = page.next;
    }
    if (follow !== true || isFinished(state)) return;
    if (!(await pause(LOOK, signal))) return;
  }
}

const LEVELS = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const;

function printLog(out: Output, line: LogView): void {
  const { at, level, message, data } = line;
  out.entry({ event: "log", ...line }, () =>
    out.line(
      { text: at.toISOString().slice(11, 23), style: "dim" },
      " ",
      { text: level.padEnd(5), style: LEVELS[level] },
      ` ${message}${data === undefined ? "" : ` ${JSON.stringify(data)}`}`,
    ),
  );
}
