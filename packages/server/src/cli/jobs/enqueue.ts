import { readFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import type { EnqueueOptions, Pawl } from "pawl";
import { OPTION_ROWS, type OptionKind, type OptionName, type OptionRow } from "pawl/service";
import { CliError, EXIT, type ExitCode, interrupted, usage } from "../exit.js";
import { gather, json, whole } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import { plural } from "../text.js";
import { followJob, waitMs } from "./job-watch.js";
import { linesOf } from "./read-lines.js";

interface EnqueueFlags {
  readonly input?: string;
  readonly lines?: string;
  readonly watch?: boolean;
  readonly wait?: string;
  /** of the options of a job, by the names of their flags */
  readonly unique?: string;
  readonly idempotencyKey?: string;
}

interface OptionFlag {
  readonly name: OptionName;
  readonly row: OptionRow;
  readonly option: Option;
}

/** Kinds of which a flag may be repeated. */
const REPEATED_KINDS: ReadonlySet<OptionKind> = new Set<OptionKind>(["labels", "jobs"]);

const OPTION_FLAGS: readonly OptionFlag[] = OPTION_ROWS.flatMap(([name, row]) => {
  if (row.flag === undefined) return [];
  const option = new Option(row.flag, row.does);
  return [{ name, row, option: REPEATED_KINDS.has(row.kind) ? option.argParser(gather) : option }];
});

export function build(command: Command, act: Act): void {
  command
    .argument("<task>", "its name")
    .argument("[input]", "JSON; left out: none")
    .option("--input <file>", "read the input from a file, or from standard input (-)")
    .option(
      "--lines <file>",
      "one job for each line of JSON of a file, or of standard input (-); with --idempotency-key it goes on where it stopped",
    );
  for (const { option } of OPTION_FLAGS) command.addOption(option);
  command
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
  const maxWait = waitMs(flags.wait);
  const options = optionsOf(flags, () => true);
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
  const options = optionsOf(flags, ({ perJob }) => perJob !== true);
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

/** The options of the job, as the flags say them. */
function optionsOf(flags: EnqueueFlags, fits: (row: OptionRow) => boolean): EnqueueOptions {
  const values = flags as Readonly<Record<string, string | readonly string[] | undefined>>;
  return Object.fromEntries(
    OPTION_FLAGS.flatMap(({ name, row, option }) => {
      const value = values[option.attributeName()];
      return value === undefined || !fits(row) ? [] : [[name, typeof value === "string" ? optionValue(String(option.long), row.kind, value) : value]];
    }),
  );
}

function optionValue(flag: string, kind: OptionKind, text: string): string | number {
  switch (kind) {
    case "priority":
      return /^\d+$/.test(text) ? whole(flag, text, 0, 9) : text;
    case "retry":
      return whole(flag, text, 0);
    case "count":
      return whole(flag, text);
    default:
      return text;
  }
}

async function textOf({ out }: CommandSession, file: string): Promise<string> {
  if (file !== "-") return readFile(file, "utf8");
  const pieces: string[] = [];
  for await (const piece of out.io.stdin.setEncoding("utf8")) pieces.push(piece as string);
  return pieces.join("");
}
