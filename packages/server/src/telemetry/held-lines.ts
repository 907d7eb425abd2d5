/** ms that a line may be held */
const HELD = 100;
/** characters that are held at most */
const MOST = 65_536;

/**
 * Writes lines many at a time. Each write of a process to a file or a pipe stands in the way of all that it does, so one
 * for every request would cost more than the line. Lines stay in order; a process that is killed loses those of a moment.
 */
export class HeldLines {
  #held = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly out: (text: string) => void) {}

  /** Soon, with those that come meanwhile. */
  hold(line: string): void {
    this.#held += line;
    if (this.#held.length >= MOST) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), HELD).unref();
  }

  /** Now, after those that are held. */
  write(line: string): void {
    this.#held += line;
    this.flush();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#held;
    this.#held = "";
    if (text !== "") this.out(text);
  }
}
