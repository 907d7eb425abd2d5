import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** A process that runs one of our files from source, and what it printed so far. */
export class Child {
  readonly lines: string[] = [];
  readonly #process: ChildProcess;
  readonly #exit: Promise<number | string>;
  #heard: () => void = () => {};
  #ended = false;

  /** `file` is relative to the repository. */
  constructor(file: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
    this.#process = spawn(process.execPath, ["--import", "tsx", file, ...args], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        this.lines.push(line);
        this.#heard();
      });
    }
    // "close" comes after the last line, "exit" may not.
    this.#exit = once(this.#process, "close").then(([code, signal]) => {
      this.#ended = true;
      this.#heard();
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
        this.#heard = resolve;
      });
    }
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  /** Asks it to stop as Ctrl-C does. */
  interrupt(): void {
    this.#process.kill("SIGINT");
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Its exit code, or the signal it died of. */
  exit(): Promise<number | string> {
    return this.#exit;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    return this.#exit.then(() => {});
  }
}
