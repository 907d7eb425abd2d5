/** ms that a line may be held */
const BUFFER_MS = 100;
/** characters that are held at most */
const MAX_BUFFERED_CHARACTERS = 65_536;

/**
 * Writes lines many at a time. Each write of a process to a file or a pipe stands in the way of all that it does, so one
 * for every request would cost more than the line. Lines stay in order; a process that is killed loses those of a moment.
 */
export class BufferedLines {
  #pending = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly out: (text: string) => void) {}

  /** Soon, with those that come meanwhile. */
  buffer(line: string): void {
    this.#pending += line;
    if (this.#pending.length >= MAX_BUFFERED_CHARACTERS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BUFFER_MS).unref();
  }

  /** Now, after those that are held. */
  write(line: string): void {
    this.#pending += line;
    this.flush();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#pending;
    this.#pending = "";
    if (text !== "") this.out(text);
  }
}
