import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import type { EnqueueOptions, Pawl } from "pawl";
import { CliError, EXIT, type ExitCode, interrupted, usage } from "../exit.js";
import { gather, json, whole } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import { plural } from "../text.js";
import { followJob, waitMs } from "./job-watch.js";
import { linesOf } from "./read-lines.js";

interface EnqueueFlags {
  readonly input?: string;
  readonly lines?: string;
  readonly queue?: string;
  readonly priority?: string;
  readonly tenant?: string;
  readonly delay?: string;
  readonly runAt?: string;
  readonly unique?: string;
  readonly tag?: readonly string[];
  readonly idempotencyKey?: string;
  readonly dependsOn?: readonly string[];
  readonly timeout?: string;
  readonly watch?: boolean;
  readonly wait?: string;
}

export function build(command: Command, act: Act): void {
  command
    .argument("<task>", "its name")
    .argument("[input]", "JSON; left out: none")
    .option("--input <file>", "read the input from a file, or from standard input (-)")
    .option("--lines <file>", "one job for each line of JSON of a file, or of standard input (-)")
    .option("--queue <queue>", "the queue, in place of the task's own")
    .option("--priority <priority>", "0 to 9, or low, normal, high, critical")
    .option("--tenant <tenant>", "whose job it is")
    .option("--delay <time>", "due this long from now: 30s, 5m, 24h")
    .option("--run-at <instant>", "due then: 2026-11-15T12:00Z")
    .option("--unique <key>", "its unique key: one unfinished job holds it, and another enqueue answers with that job")
    .option("--tag <tag>", "a label to find it by; may be repeated", gather)
    .option("--idempotency-key <id>", "repeating this command within a day makes no second job; with --lines, it goes on where it stopped")
    .option("--depends-on <id>", "wait for this job to succeed; may be repeated", gather)
    .option("--timeout <time>", "how long one attempt may take")
    .option("-w, --watch", "follow it until it is finished")
    .option("--wait <time>", `follow it for this long at most; exit code ${EXIT.unfinished} if it is unfinished then`);
  act<EnqueueFlags>(command, enqueue);
}

async function enqueue(session: CommandSession, flags: EnqueueFlags, task: string, inputText?: string): Promise<ExitCode> {
  if (flags.lines !== undefined) {
    if (inputText !== undefined || flags.input !== undefined)
      throw usage("--lines reads the inputs from its file", "leave out the input, or --lines");
    return enqueueMany(session, flags, flags.lines, task);
  }
  if (inputText !== undefined && flags.input !== undefined) throw usage("the input is given twice", "give it as an argument or with --input");
  const { out } = session;
  const input =
    inputText !== undefined
      ? json("the input", inputText)
      : flags.input === undefined
        ? undefined
        : json("the input", await textOf(session, flags.input));
  const { unique, idempotencyKey } = flags;
  const maxWait = waitMs(flags.wait);
  const options = {
    ...optionsOf(flags),
    ...(unique === undefined ? {} : { unique }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
  const pawl = await session.pawl();
  const job = await pawl.enqueue(task, input, options);
  if (flags.watch === true || maxWait !== undefined) {
    out.note(`job ${job.id}`);
    return followJob(out, pawl, session.signal, job.id, maxWait);
  }
  out.answer({ id: job.id, task, enqueued: job.enqueued }, () => {
    out.line(job.id);
    if (job.enqueued === "existing") out.note("it was there already");
  });
  return EXIT.done;
}

/** ms between two tellings of how far it is */
const PROGRESS_INTERVAL_MS = 200;

/** Jobs line by line, at a flat cost of memory. With an idempotency key per line, a second run adds only what is missing. */
async function enqueueMany(session: CommandSession, flags: EnqueueFlags, file: string, task: string): Promise<ExitCode> {
  if (flags.watch === true || flags.wait !== undefined || flags.unique !== undefined)
    throw usage("--watch, --wait and --unique are for one job", "leave them out, or --lines");
  const { out, signal } = session;
  const options = optionsOf(flags);
  const pawl: Pawl = await session.pawl();
  const { idempotencyKey } = flags;
  let read = 0;
  let lastProgressAt = 0;
  async function* inputs(): AsyncGenerator<unknown> {
    for await (const line of linesOf(file, out.io.stdin)) {
      if (signal.aborted) return;
      read++;
      if (line.trim() !== "") yield json(`line ${read} of ${file}`, line);
    }
  }
  const summary = await pawl.enqueueStream(task, inputs(), {
    ...options,
    ...(idempotencyKey === undefined ? {} : { each: (_: unknown, index: number) => ({ idempotencyKey: `${idempotencyKey}:${index}` }) }),
    onChunk({ count }) {
      const now = performance.now();
      if (now - lastProgressAt < PROGRESS_INTERVAL_MS) return;
      lastProgressAt = now;
      out.progress(`${plural(count, "job")} stored`);
    },
  });
  if (signal.aborted) {
    const help =
      idempotencyKey === undefined
        ? "with --idempotency-key ID it could have been taken up again"
        : "run the same command again: it goes on where it stopped";
    throw interrupted(`${plural(summary.count, "job")} stored, then stopped`, help);
  }
  const { dependencyUnknown, idempotencyKeyReused } = summary;
  if (idempotencyKeyReused > 0) {
    const others = `idempotency key ${idempotencyKey} was used for other jobs: ${plural(idempotencyKeyReused, "line")} not stored, ${summary.created.toLocaleString("en")} stored`;
    throw new CliError(EXIT.failed, "idempotency_key_reused", others, "use a new --idempotency-key for every file");
  }
  if (dependencyUnknown > 0)
    throw new CliError(EXIT.failed, "dependency_unknown", `${plural(dependencyUnknown, "line")} not stored: a job of --depends-on does not exist`);
  out.answer(summary, () =>
    out.line(
      `${plural(summary.created, "job")} enqueued${summary.existing > 0 ? `, ${summary.existing.toLocaleString("en")} were there already` : ""}`,
    ),
  );
  return EXIT.done;
}

function optionsOf({
  queue,
  priority,
  tenant,
  delay,
  runAt,
  tag,
  dependsOn,
  timeout,
}: EnqueueFlags): Pick<EnqueueOptions, "queue" | "tenant" | "delay"> {
  return {
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority: /^\d+$/.test(priority) ? whole("--priority", priority, 0, 9) : priority }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(delay === undefined ? {} : { delay }),
    ...(runAt === undefined ? {} : { runAt }),
    ...(tag === undefined ? {} : { tags: tag }),
    ...(dependsOn === undefined ? {} : { dependsOn }),
    ...(timeout === undefined ? {} : { timeout }),
  };
}

async function textOf({ out }: CommandSession, file: string): Promise<string> {
  if (file !== "-") return readFile(file, "utf8");
  const pieces: string[] = [];
  for await (const piece of out.io.stdin.setEncoding("utf8")) pieces.push(piece as string);
  return pieces.join("");
}
