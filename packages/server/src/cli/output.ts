import type { Readable } from "node:stream";
import type { ErrorReport } from "./errors.js";
import { type Cell, paint, rowsAsTable, rowsAsText } from "./table.js";
import { clean } from "./text.js";

/** Where a command reads from and speaks to. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface OutputStream {
  /** false: what was written waits in memory, until `drain` */
  write(text: string): unknown;
  once?(event: "drain", listener: () => void): unknown;
  off?(event: "drain", listener: () => void): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** ms */
const SLOW_MS = 1_000;

/** Tables and colours for people at a terminal, tabs for pipes, JSON where it is asked for: one place that knows. */
export class Output {
  readonly colour: boolean;
  readonly terminal: boolean;
  #progress = false;

  constructor(
    readonly io: Io,
    readonly json: boolean,
    colours = true,
  ) {
    const { NO_COLOR, FORCE_COLOR, TERM } = io.env;
    this.terminal = io.stdout.isTTY === true;
    const wantsColour = FORCE_COLOR !== undefined && FORCE_COLOR !== "0" ? true : this.terminal && TERM !== "dumb";
    this.colour = colours && wantsColour && (NO_COLOR === undefined || NO_COLOR === "");
  }

  /** The whole answer: as JSON, or as `words` says it. */
  answer(value: unknown, print: () => void): void {
    if (this.json) this.io.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
    else print();
  }

  /** One thing of a stream of them: a line of JSON each. */
  entry(value: unknown, print: () => void): void {
    this.#clearProgress();
    if (this.json) this.io.stdout.write(`${JSON.stringify(value)}\n`);
    else print();
  }

  /**
   * The same of a stream that may be longer than memory: resolves when its reader has room for the next, or when the command is
   * asked to stop: a reader that has gone never has room again.
   */
  async streamEntry(value: unknown, stop: AbortSignal): Promise<void> {
    const { stdout } = this.io;
    if (stdout.write(`${JSON.stringify(value)}\n`) !== false || stdout.once === undefined || stop.aborted) return;
    await new Promise<void>((resolve) => {
      const on = () => {
        stdout.off?.("drain", on);
        stop.removeEventListener("abort", on);
        resolve();
      };
      stdout.once?.("drain", on);
      stop.addEventListener("abort", on);
    });
  }

  line(...cells: readonly Cell[]): void {
    this.#clearProgress();
    this.io.stdout.write(`${cells.map((cell) => paint(cell, this.colour)).join("")}\n`);
  }

  /** With headings and columns in a terminal; without headings, and tabs between, elsewhere. */
  table(headings: readonly string[], rows: readonly (readonly Cell[])[]): void {
    this.#clearProgress();
    if (!this.terminal) {
      for (const line of rowsAsText(rows)) this.io.stdout.write(`${line}\n`);
      return;
    }
    for (const line of rowsAsTable(headings, rows, this.io.stdout.columns ?? 80, this.colour)) this.io.stdout.write(`${line}\n`);
  }

  /** For people, beside the answer: never where a script reads. */
  note(text: string): void {
    this.#clearProgress();
    if (!this.json) this.io.stderr.write(`${clean(text)}\n`);
  }

  /** How far it is: in place at a terminal; nothing elsewhere. */
  progress(text: string): void {
    if (this.json || this.io.stderr.isTTY !== true) return;
    this.#progress = true;
    this.io.stderr.write(`\r\x1b[K${clean(text).slice(0, (this.io.stderr.columns ?? 80) - 1)}`);
  }

  /** Says what is being waited for, at a terminal, where that takes its time: silence looks like a hang. */
  async during<T>(what: string, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.progress(`${what} …`), SLOW_MS);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
      this.#clearProgress();
    }
  }

  error({ code, message, help }: ErrorReport): void {
    this.#clearProgress();
    if (this.json) this.io.stderr.write(`${JSON.stringify({ error: { code, message, ...(help === undefined ? {} : { help }) } })}\n`);
    else {
      for (const line of message.split("\n")) this.io.stderr.write(`pawl: ${clean(line)}\n`);
      if (help !== undefined) this.io.stderr.write(`      ${clean(help)}\n`);
    }
  }

  #clearProgress(): void {
    if (!this.#progress) return;
    this.#progress = false;
    this.io.stderr.write("\r\x1b[K");
  }
}
