import { Readable } from "node:stream";
import { run } from "../../packages/server/src/cli/program.js";
import { targetsOf } from "../../packages/server/src/cli/target.js";

export interface CommandOutput {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

/** Carries out one command line of `pawl` in this process, on a real target, as if its output went into a pipe. */
export async function runPawl(...argv: readonly string[]): Promise<CommandOutput> {
  return runPawlWith({}, ...argv);
}

export async function runPawlWith(env: Readonly<Record<string, string>>, ...argv: readonly string[]): Promise<CommandOutput> {
  let out = "";
  let err = "";
  const exit = await run(argv, {
    io: {
      stdin: Readable.from([]),
      stdout: { write: (text: string) => (out += text) },
      stderr: { write: (text: string) => (err += text) },
      env,
    },
    signal: () => new AbortController().signal,
    openTarget: targetsOf(env, process.cwd()),
  });
  return { exit, out, err };
}
