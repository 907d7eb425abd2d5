import * as fs from "node:fs";

/** What handlers did, as seen from outside the store: one line per fact, in a file that outlives whoever wrote it. */
export interface SinkLine {
  readonly job: string;
  readonly task: string;
  readonly what: "start" | "end" | "abort" | "effect" | "ack";
  readonly pid: number;
  /** ms since 1970 by the clock of the machine; a child under faketime sees another one */
  readonly at: number;
  readonly attempt: number;
  readonly why?: string;
}

export class Sink {
  #file: number | undefined;

  constructor(readonly path: string) {}

  /** Appended in one write, so that lines of several processes do not mix; fsynced where a test wants it on disk. */
  write(line: SinkLine, durable = false): void {
    this.#file ??= fs.openSync(this.path, "a");
    fs.writeSync(this.#file, `${JSON.stringify(line)}\n`);
    if (durable) fs.fsyncSync(this.#file);
  }

  lines(what?: SinkLine["what"]): readonly SinkLine[] {
    if (!fs.existsSync(this.path)) return [];
    const text = fs.readFileSync(this.path, "utf8");
    const lines = text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as SinkLine);
    return what === undefined ? lines : lines.filter((line) => line.what === what);
  }

  of(job: string, what?: SinkLine["what"]): readonly SinkLine[] {
    return this.lines(what).filter((line) => line.job === job);
  }

  close(): void {
    if (this.#file !== undefined) fs.closeSync(this.#file);
    this.#file = undefined;
  }
}
