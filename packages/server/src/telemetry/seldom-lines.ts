const MOST_CLASSES = 1_000;

interface Said {
  at: number;
  left: number;
}

/** Lets one line of a class through per second. What it keeps back is counted, and told with the next one. */
export class SeldomLines {
  readonly #said = new Map<string, Said>();

  constructor(
    private readonly now: () => number,
    private readonly every = 1_000,
  ) {}

  /** How many were kept back since the last one; undefined: keep this one back too. */
  admit(name: string): number | undefined {
    const now = this.now();
    const said = this.#said.get(name);
    if (said === undefined) {
      // Whoever makes up names without end gets no more lines by that.
      if (this.#said.size >= MOST_CLASSES && name !== OTHERS) return this.admit(OTHERS);
      this.#said.set(name, { at: now, left: 0 });
      return 0;
    }
    if (now - said.at < this.every) {
      said.left++;
      return undefined;
    }
    const { left } = said;
    said.at = now;
    said.left = 0;
    return left;
  }
}

const OTHERS = "all others";
