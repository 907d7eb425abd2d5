import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { tmux } from "../../scripts/servers.mjs";
import { eventually } from "./eventually.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Why there can be none here; undefined if there can. */
export function noTerminal(): string | undefined {
  return existsSync(tmux) ? undefined : "tmux is not installed (npm test installs it as root on Debian)";
}

/** What a terminal was told, beside its letters. */
export interface Modes {
  readonly cursor: boolean;
  readonly wraps: boolean;
  readonly alternate: boolean;
}

/** A real terminal, which tmux is, with one command in it: what a person in front of it would see. */
export class Terminal implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "pawl-tty-"));

  private constructor() {}

  /** The command's exit code is printed after it as `exit 0`, and the terminal stays. */
  static async start(command: string, { columns, rows }: Size): Promise<Terminal> {
    const terminal = new Terminal();
    // Ctrl-C is for the command alone.
    const shell = `trap : INT; cd '${root}'; ${command}; echo "exit $?"; trap '' INT; exec cat`;
    await terminal.#tmux("new-session", "-d", "-x", String(columns), "-y", String(rows), shell);
    return terminal;
  }

  /** Its rows, from top to bottom, without the blanks at their ends. */
  async rows(): Promise<readonly string[]> {
    return (await this.#tmux("capture-pane", "-p")).split("\n").slice(0, -1);
  }

  /** The same with their colours, as a terminal is told them. */
  async picture(): Promise<readonly string[]> {
    return (await this.#tmux("capture-pane", "-e", "-p")).split("\n").slice(0, -1);
  }

  /** Waits for rows that are as they should be. */
  async shows(what: string, check: (rows: readonly string[]) => boolean): Promise<readonly string[]> {
    let seen: readonly string[] = [];
    const look = async () => {
      seen = await this.rows();
      return check(seen) && seen;
    };
    return eventually(() => `${what}; there is\n${seen.join("\n")}`, look);
  }

  async modes(): Promise<Modes> {
    const answer = await this.#tmux("display-message", "-p", "#{cursor_flag} #{wrap_flag} #{alternate_on}");
    const [cursor, wraps, alternate] = answer.trim().split(" ");
    return { cursor: cursor === "1", wraps: wraps === "1", alternate: alternate === "1" };
  }

  async resize({ columns, rows }: Size): Promise<void> {
    await this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  /** A key as tmux names it: `C-c`. */
  async press(key: string): Promise<void> {
    await this.#tmux("send-keys", key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux("kill-server");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #tmux(...args: string[]): Promise<string> {
    const env = { ...process.env, TERM: "xterm-256color", LC_ALL: "C.UTF-8", TMUX: "" };
    return (await run(tmux, ["-S", join(this.#folder, "tmux"), "-f", "/dev/null", ...args], { env })).stdout;
  }
}
