const MAX_CLASSES = 1_000;

interface ThrottleState {
  at: number;
  suppressed: number;
}

/** Lets one line of a class through per second. What it keeps back is counted, and told with the next one. */
export class ThrottledLines {
  readonly #states = new Map<string, ThrottleState>();

  constructor(
    private readonly now: () => number,
    private readonly every = 1_000,
  ) {}

  /** How many were kept back since the last one; undefined: keep this one back too. */
  admit(name: string): number | undefined {
    const now = this.now();
    const state = this.#states.get(name);
    if (state === undefined) {
      // Whoever makes up names without end gets no more lines by that.
      if (this.#states.size >= MAX_CLASSES && name !== OTHERS) return this.admit(OTHERS);
      this.#states.set(name, { at: now, suppressed: 0 });
      return 0;
    }
    if (now - state.at < this.every) {
      state.suppressed++;
      return undefined;
    }
    const { suppressed } = state;
    state.at = now;
    state.suppressed = 0;
    return suppressed;
  }
}

const OTHERS = "all others";
