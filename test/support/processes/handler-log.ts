import * as fs from "node:fs";

/** The steps of handlers, as seen from outside the store: one line per fact, in a file that outlives whoever wrote it. */
export interface HandlerLogLine {
  readonly job: string;
  readonly task: string;
  readonly step: "start" | "end" | "abort" | "effect" | "ack";
  readonly pid: number;
  /** ms since 1970 by the clock of the machine; a child under faketime sees another one */
  readonly at: number;
  readonly attempt: number;
  readonly reason?: string;
}

export class HandlerLog {
  #file: number | undefined;

  constructor(readonly path: string) {}

  /**
   * Appended in one write, so that lines of several processes do not mix; fsynced where a test wants it on disk. A line begins on one of its
   * own: a process that is killed inside its write leaves a part of a line before it.
   */
  write(line: HandlerLogLine, durable = false): void {
    this.#file ??= fs.openSync(this.path, "a");
    fs.writeSync(this.#file, `\n${JSON.stringify(line)}\n`);
    if (durable) fs.fsyncSync(this.#file);
  }

  lines(what?: HandlerLogLine["step"]): readonly HandlerLogLine[] {
    if (!fs.existsSync(this.path)) return [];
    const text = fs.readFileSync(this.path, "utf8");
    const lines = text
      .split("\n")
      // A line that a killed process did not write to its end is no fact.
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as HandlerLogLine);
    return what === undefined ? lines : lines.filter((line) => line.step === what);
  }

  of(job: string, what?: HandlerLogLine["step"]): readonly HandlerLogLine[] {
    return this.lines(what).filter((line) => line.job === job);
  }

  close(): void {
    if (this.#file !== undefined) fs.closeSync(this.#file);
    this.#file = undefined;
  }
}
