/** One line that says how it goes: rewritten in place on a terminal, printed now and then elsewhere. */
export class Progress {
  readonly #began = performance.now();
  #saidAt = Number.NEGATIVE_INFINITY;

  get elapsed(): number {
    return performance.now() - this.#began;
  }

  show(text: string): void {
    const line = `${clock(this.elapsed)}  ${text}`;
    if (process.stdout.isTTY) process.stdout.write(`\r\u001b[2K${line.slice(0, (process.stdout.columns ?? 120) - 1)}`);
    else if (performance.now() - this.#saidAt >= 10_000) {
      this.#saidAt = performance.now();
      console.log(line);
    }
  }

  /** A line that stays. */
  say(text: string): void {
    if (process.stdout.isTTY) process.stdout.write("\r\u001b[2K");
    console.log(`${clock(this.elapsed)}  ${text}`);
  }
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${String(Math.floor(seconds / 60)).padStart(2, "0")}:${String(seconds % 60).padStart(2, "0")}`;
}
