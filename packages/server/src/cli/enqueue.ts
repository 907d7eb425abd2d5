import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import type { EnqueueOptions, Pawl } from "pawl";
import { CliError, EXIT, type ExitCode, interrupted, usage } from "./exit.js";
import { gather, json, whole } from "./flags.js";
import { followJob } from "./job-watch.js";
import { linesOf } from "./lines-in.js";
import type { Act, Session } from "./session.js";
import { plural } from "./words.js";

interface Flags {
  readonly input?: string;
  readonly many?: string;
  readonly queue?: string;
  readonly priority?: string;
  readonly tenant?: string;
  readonly delay?: string;
  readonly at?: string;
  readonly key?: string;
  readonly tag?: readonly string[];
  readonly request?: string;
  readonly after?: readonly string[];
  readonly timeout?: string;
  readonly watch?: boolean;
}

export function build(command: Command, act: Act): void {
  command
    .argument("<task>", "its name")
    .argument("[input]", "JSON; left out: none")
    .option("--input <file>", "read the input from a file, or from standard input (-)")
    .option("--many <file>", "one job per line of JSON, of a file or of standard input (-)")
    .option("--queue <queue>", "in place of the task's own")
    .option("--priority <priority>", "0 to 9, or low, normal, high, critical")
    .option("--tenant <tenant>", "whose job it is")
    .option("--delay <time>", "from now: 30s, 5m, 24h")
    .option("--at <instant>", "2026-11-15T12:00Z")
    .option("--key <key>", "one unfinished job of this key")
    .option("--tag <tag>", "may be repeated", gather)
    .option("--request <id>", "repeating this command makes no second job; with --many, goes on where it stopped")
    .option("--after <id>", "wait for this job to succeed; may be repeated", gather)
    .option("--timeout <time>", "of one attempt")
    .option("-w, --watch", "follow it until it is finished");
  act<Flags>(command, enqueue);
}

async function enqueue(session: Session, flags: Flags, task: string, given?: string): Promise<ExitCode> {
  if (flags.many !== undefined) {
    if (given !== undefined || flags.input !== undefined) throw usage("--many reads the inputs from its file", "leave out the input, or --many");
    return enqueueMany(session, flags, flags.many, task);
  }
  if (given !== undefined && flags.input !== undefined) throw usage("the input is given twice", "give it as an argument or with --input");
  const { out } = session;
  const input =
    given !== undefined ? json("the input", given) : flags.input === undefined ? undefined : json("the input", await textOf(session, flags.input));
  const { key, request } = flags;
  const options = { ...optionsOf(flags), ...(key === undefined ? {} : { key }), ...(request === undefined ? {} : { request }) };
  const pawl = await session.pawl();
  const job = await pawl.enqueue(task, input, options);
  if (flags.watch === true) {
    out.note(`job ${job.id}`);
    return followJob(out, pawl, session.signal, job.id);
  }
  out.answer({ id: job.id, task, enqueued: job.enqueued }, () => {
    out.line(job.id);
    if (job.enqueued === "existing") out.note("it was there already");
  });
  return EXIT.done;
}

/** ms between two tellings of how far it is */
const TELL = 200;

/** Jobs line by line, at a flat cost of memory. With a request id per line, a second run adds only what is missing. */
async function enqueueMany(session: Session, flags: Flags, file: string, task: string): Promise<ExitCode> {
  if (flags.watch === true || flags.key !== undefined) throw usage("--watch and --key are for one job", "leave them out, or --many");
  const { out, signal } = session;
  const options = optionsOf(flags);
  const pawl: Pawl = await session.pawl();
  const { request } = flags;
  let read = 0;
  let told = 0;
  async function* inputs(): AsyncGenerator<unknown> {
    for await (const line of linesOf(file, out.io.stdin)) {
      if (signal.aborted) return;
      read++;
      if (line.trim() !== "") yield json(`line ${read} of ${file}`, line);
    }
  }
  const summary = await pawl.enqueueStream(task, inputs(), {
    ...options,
    ...(request === undefined ? {} : { each: (_: unknown, index: number) => ({ request: `${request}:${index}` }) }),
    onChunk({ count }) {
      const now = performance.now();
      if (now - told < TELL) return;
      told = now;
      out.progress(`${plural(count, "job")} stored`);
    },
  });
  if (signal.aborted) {
    const help =
      request === undefined ? "with --request ID it could have been taken up again" : "run the same command again: it goes on where it stopped";
    throw interrupted(`${plural(summary.count, "job")} stored, then stopped`, help);
  }
  const { orphaned, requestReused } = summary;
  if (requestReused > 0) {
    const others = `request id ${request} was used for other jobs: ${plural(requestReused, "line")} not stored, ${summary.created.toLocaleString("en")} stored`;
    throw new CliError(EXIT.failed, "request_reused", others, "use a new --request for every file");
  }
  if (orphaned > 0) throw new CliError(EXIT.failed, "dependency_unknown", `${plural(orphaned, "line")} not stored: a job of --after does not exist`);
  out.answer(summary, () =>
    out.line(
      `${plural(summary.created, "job")} enqueued${summary.existing > 0 ? `, ${summary.existing.toLocaleString("en")} were there already` : ""}`,
    ),
  );
  return EXIT.done;
}

function optionsOf({ queue, priority, tenant, delay, at, tag, after, timeout }: Flags): Pick<EnqueueOptions, "queue" | "tenant" | "delay"> {
  return {
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority: /^\d+$/.test(priority) ? whole("--priority", priority, 0, 9) : priority }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(delay === undefined ? {} : { delay }),
    ...(at === undefined ? {} : { runAt: at }),
    ...(tag === undefined ? {} : { tags: tag }),
    ...(after === undefined ? {} : { dependsOn: after }),
    ...(timeout === undefined ? {} : { timeout }),
  };
}

async function textOf({ out }: Session, file: string): Promise<string> {
  if (file !== "-") return readFile(file, "utf8");
  const pieces: string[] = [];
  for await (const piece of out.io.stdin.setEncoding("utf8")) pieces.push(piece as string);
  return pieces.join("");
}
