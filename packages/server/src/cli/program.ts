import { Command, CommanderError, Option } from "commander";
import { COMMANDS, type CommandEntry } from "./commands.js";
import { describeError, type ErrorReport } from "./errors.js";
import { EXIT, type ExitCode } from "./exit.js";
import { type Io, Output } from "./output.js";
import { RunAborted, untilAborted } from "./run-aborted.js";
import type { Act, CommandSession, OpenTarget, StoreFlags } from "./session.js";

/** What the world gives a run: streams, Ctrl-C, and how targets are opened. */
export interface CliEnvironment {
  readonly io: Io;
  readonly signal: () => AbortSignal;
  readonly openTarget: OpenTarget;
  readonly commands?: readonly CommandEntry[];
  /** aborted with `RunAborted`: the command is left where it is, and its store is closed */
  readonly abort?: AbortSignal;
}

/** Carries out one command line, and answers with its exit code. Nothing is thrown. */
export async function run(argv: readonly string[], environment: CliEnvironment): Promise<number> {
  const { io, commands = COMMANDS } = environment;
  let exit: ExitCode = EXIT.done;
  const act: Act = (command, work) =>
    withCommonFlags(command).action(async (...parsed: unknown[]) => {
      const options = parsed.at(-2) as CommonFlags;
      const args = parsed.slice(0, -2) as string[];
      exit = (await inSession(environment, options, (session) => work(session, options as never, ...args))) ?? EXIT.done;
    });
  if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
    io.stdout.write(`${await version()}\n`);
    return exit;
  }
  const program = skeleton(io, commands);
  try {
    const requestedCommand = commandOf(argv, commands);
    if (requestedCommand !== undefined) (await requestedCommand.load()).build(subcommand(program, requestedCommand.name), act);
    await program.parseAsync(withDefaultSubcommand(argv, requestedCommand), { from: "user" });
    return exit;
  } catch (error) {
    if (error instanceof RunAborted) return error.exit;
    // Help that was asked for has been printed; help instead of a command is a wrong usage.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    if (error instanceof CommanderError && error.code === "commander.help") return EXIT.usage;
    const report = error instanceof CommanderError ? usageError(error, argv, program) : describeError(error);
    new Output(io, argv.includes("--json")).error(report);
    return report.exit;
  }
}

/** All commands with their code. */
async function wholeProgram(io: Io, commands: readonly CommandEntry[] = COMMANDS): Promise<Command> {
  const program = skeleton(io, commands);
  for (const entry of commands) (await entry.load()).build(subcommand(program, entry.name), withCommonFlags);
  return program;
}

/** Names and summaries: enough for `--help`, at the price of nothing. */
function skeleton(io: Io, commands: readonly CommandEntry[]): Command {
  const program = new Command("pawl")
    .description("Durable jobs: on an embedded store, on Postgres, or on a server of yours.")
    .option("-V, --version", "which version this is")
    .exitOverride()
    // What was wrong is told by `run`, as every other error is.
    .configureOutput({ writeOut: (text) => void io.stdout.write(text), writeErr: (text) => void io.stderr.write(text), outputError: () => {} });
  for (const { name, summary } of commands) program.command(name).description(summary);
  return program;
}

/** Read when it is asked for only. */
async function version(): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  return (JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }).version;
}

/** A noun alone, or with flags only, is what it is alone. */
function withDefaultSubcommand(argv: readonly string[], entry: CommandEntry | undefined): string[] {
  const [noun = "", next] = argv;
  const alone = noun === entry?.name && (next === undefined || (next.startsWith("-") && next !== "-h" && next !== "--help"));
  return alone && entry.defaultSubcommand !== undefined ? [noun, entry.defaultSubcommand, ...argv.slice(1)] : [...argv];
}

/** What is wrong with a command line, and which help to ask for. */
function usageError({ message }: CommanderError, argv: readonly string[], program: Command): ErrorReport {
  const report = { exit: EXIT.usage, code: "usage" } as const;
  const { path, at, rest } = innermostCommand(argv, program);
  const prefix = path.map((word) => `${word} `).join("");
  // Without its value, which may be a URL with a password.
  const flag = rest[0]?.startsWith("-") ? rest[0].split("=")[0] : undefined;
  const laterCommand = flag === undefined ? undefined : at.commands.find((command) => rest.includes(command.name()));
  if (laterCommand !== undefined)
    return { ...report, message: `${flag} stands before the command`, help: `give it after: pawl ${prefix}${laterCommand.name()} … ${flag} …` };
  const [, what = message, suggestion] = /^error: (.*?)\n?(?:\((.*)\))?$/s.exec(message) ?? [];
  return { ...report, message: suggestion === undefined ? what : `${what}. ${suggestion}`, help: `pawl ${prefix}--help tells what there is` };
}

/** How far a command line leads: the innermost command it names, and what follows. */
function innermostCommand(
  argv: readonly string[],
  program: Command,
): { readonly path: readonly string[]; readonly at: Command; readonly rest: readonly string[] } {
  const path: string[] = [];
  let at = program;
  for (const word of argv) {
    const next = at.commands.find((command) => command.name() === word || command.aliases().includes(word));
    if (next === undefined) break;
    path.push(next.name());
    at = next;
  }
  return { path, at, rest: argv.slice(path.length) };
}

function subcommand(program: Command, name: string): Command {
  return program.commands.find((command) => command.name() === name) as Command;
}

/** `pawl jobs …`, `pawl help jobs`, and `pawl jobs --help` all need to know what jobs can do. */
function commandOf(argv: readonly string[], commands: readonly CommandEntry[]): CommandEntry | undefined {
  const requestedCommand = argv[0] === "help" ? argv[1] : argv[0];
  return commands.find(({ name }) => name === requestedCommand);
}

interface CommonFlags extends StoreFlags {
  readonly json?: boolean;
  readonly color?: boolean;
}

const COMMON_HEADING = "Every command:";

/** What every command takes. */
function withCommonFlags(command: Command): Command {
  const options = [
    new Option("-s, --store <where>", "a folder, postgres://… or https://… (PAWL_STORE, or ./data)"),
    new Option("--config <file>", "of settings (PAWL_CONFIG, or pawl.config.* here)"),
    new Option("--json", "answer as JSON, as docs/cli.md says"),
    new Option("--no-color", "no colours (NO_COLOR)"),
  ];
  for (const option of options) command.addOption(option.helpGroup(COMMON_HEADING));
  return command;
}

/** ms that closing the store of a run that is cut short may take */
const MAX_CLOSE_MS = 5_000;

async function inSession<T>(
  { io, signal, openTarget, commands, abort }: CliEnvironment,
  common: CommonFlags,
  work: (session: CommandSession) => T,
): Promise<Awaited<T>> {
  const out = new Output(io, common.json === true, common.color);
  let opened: ReturnType<OpenTarget> | undefined;
  const aborted = untilAborted(abort);
  try {
    const working = work({
      out,
      get signal() {
        return signal();
      },
      target: common,
      openTarget,
      program: () => wholeProgram(io, commands),
      pawl() {
        opened ??= out.during("opening the store", openTarget(common, { onWaiting: (what) => out.note(what) }));
        return opened;
      },
    });
    return await Promise.race([working, aborted]);
  } finally {
    // Of one that is still being opened, the process takes along what it has started.
    const pawl = await Promise.race([opened?.catch(() => undefined), aborted.catch(() => undefined)]);
    if (pawl !== undefined) await closeInTime(out.during("closing the store", pawl.close()), aborted);
  }
}

/** Whoever waits no longer for the answer does not wait for long: what closing leaves undone is seen to when the process ends. */
async function closeInTime(closing: Promise<void>, aborted: Promise<never>): Promise<void> {
  const timeout = aborted.catch(() => new Promise<void>((resolve) => void setTimeout(resolve, MAX_CLOSE_MS).unref()));
  await Promise.race([closing, timeout]);
}
