import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The command line as it is published: JavaScript, which starts in a third of the time that it takes from source. */
export function builtPawl(): string {
  return join(inject("built"), "packages/server/src/cli/main.js");
}

/** A process, and what it printed so far. */
class RunningProcess implements AsyncDisposable {
  readonly lines: string[] = [];
  readonly #process: ChildProcess;
  readonly #exit: Promise<number | string>;
  #lineArrived: () => void = () => {};
  #ended = false;

  constructor(process: ChildProcess) {
    this.#process = process;
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        this.lines.push(line);
        this.#lineArrived();
      });
    }
    // "close" comes after the last line, "exit" may not.
    this.#exit = once(this.#process, "close").then(([code, signal]) => {
      this.#ended = true;
      this.#lineArrived();
      return (code ?? signal) as number | string;
    });
  }

  /** The first line that matches, from the given one on; fails with all that was printed when the process ends without it. */
  async line(pattern: RegExp, from = 0): Promise<string> {
    for (;;) {
      const found = this.lines.slice(from).find((line) => pattern.test(line));
      if (found !== undefined) return found;
      if (this.#ended) throw new Error(`it ended without ${pattern}:\n${this.lines.join("\n")}`);
      await new Promise<void>((resolve) => {
        this.#lineArrived = resolve;
      });
    }
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  /** Asks it to stop as Ctrl-C does. */
  interrupt(): void {
    this.signal("SIGINT");
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Its exit code, or the signal it died of. */
  exit(): Promise<number | string> {
    return this.#exit;
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ended) this.signal("SIGKILL");
    return this.#exit.then(() => {});
  }
}

const printing = { stdio: ["ignore", "pipe", "pipe"] } as const satisfies SpawnOptions;

/** Without colours: in CI, Vitest asks for them in the environment that processes inherit, and picocolors turns them on. */
function plain(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { FORCE_COLOR, ...inherited } = process.env;
  return { ...inherited, NO_COLOR: "1", ...env };
}

/** One of our files. */
export class NodeProcess extends RunningProcess {
  /** `file` is relative to the repository; JavaScript is run as it is. */
  constructor(file: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
    const loader = file.endsWith(".ts") ? ["--import", "tsx"] : [];
    super(spawn(process.execPath, [...loader, file, ...args], { ...printing, cwd: root, env: plain(env) }));
  }
}

/** A line somebody types in a terminal: signals reach all that it started, as Ctrl-C does there. */
export class ShellProcess extends RunningProcess {
  constructor(command: string, cwd: string, env: NodeJS.ProcessEnv = {}) {
    super(spawn("bash", ["-c", command], { ...printing, cwd, detached: true, env: plain(env) }));
  }

  override signal(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal);
  }
}
