import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { Act } from "../session.js";

export function build(command: Command, act: Act): void {
  command.argument("[arguments...]", "those of npm run bench; see bench/README.md").allowUnknownOption();
  act(command, (_, __, ...args) => bench(args.flat()));
}

/** The benchmark installs its peers, and is part of the repository, not of the package. */
async function bench(args: readonly string[]): Promise<ExitCode> {
  const root = cloneAbove(process.cwd());
  if (root === undefined)
    throw new CliError(EXIT.failed, "bench_missing", "the benchmark is not here", "run this in a clone of the repository, or npm run bench there");
  const child = spawn(process.execPath, ["--import", "tsx", join(root, "bench/main.ts"), ...args], { cwd: root, stdio: "inherit" });
  return new Promise((end, fail) => {
    child.once("error", fail);
    child.once("exit", (code) => end(code === 0 ? EXIT.done : EXIT.failed));
  });
}

function cloneAbove(folder: string): string | undefined {
  if (existsSync(join(folder, "bench/main.ts")) && existsSync(join(folder, "packages/pawl"))) return resolve(folder);
  const above = dirname(folder);
  return above === folder ? undefined : cloneAbove(above);
}
