import type { CheckRun } from "./check-run.js";

type StepCounter = Pick<CheckRun, "spend" | "keep" | "enter" | "leave">;

/**
 * Numbers JSON values, equal ones alike: so that one is found among many by one look instead of a comparison with each. An
 * array or object is known by the numbers of its parts, so no part is looked at twice.
 */
export class Equality {
  readonly #texts: ValueNumbers;
  /** numbers, truths, null, arrays and objects, each by a text that no other has */
  readonly #others: ValueNumbers;
  readonly #seen = new Map<object, number>();
  #next: number;

  /** `base`: what has its numbers already, the constants of a schema. It is only read. */
  constructor(base?: Equality) {
    this.#next = base === undefined ? 0 : base.#next;
    this.#texts = new ValueNumbers(base === undefined ? undefined : base.#texts);
    this.#others = new ValueNumbers(base === undefined ? undefined : base.#others);
  }

  /** The number of a value; what is not JSON equals nothing. */
  numberOf(value: unknown, run: StepCounter): number {
    if (value === undefined) return -1;
    if (typeof value === "string") {
      run.spend(4 + (value.length >> 4));
      return this.#numbered(this.#texts, value, run);
    }
    if (typeof value !== "object" || value === null) {
      run.spend(4);
      return this.#numbered(this.#others, String(value), run);
    }
    const existing = this.#seen.get(value);
    if (existing !== undefined) return existing;
    run.enter();
    const text = Array.isArray(value) ? this.#ofArray(value, run) : this.#ofObject(value as object, run);
    const number = this.#numbered(this.#others, text, run);
    run.leave();
    run.keep(1);
    this.#seen.set(value, number);
    return number;
  }

  #ofArray(items: readonly unknown[], run: StepCounter): string {
    run.spend(8 + 2 * items.length);
    let text = "[";
    for (const item of items) text += `${this.numberOf(item, run)},`;
    return text;
  }

  /** The order of names does not matter, so any order will do that is the same every time. */
  #ofObject(value: object, run: StepCounter): string {
    const names = Object.keys(value);
    run.spend(8 + names.length * (4 + Math.ceil(Math.log2(names.length + 1))));
    if (names.length > 1) names.sort();
    let text = "{";
    for (const name of names) text += `${this.numberOf(name, run)}:${this.numberOf((value as Readonly<Record<string, unknown>>)[name], run)},`;
    return text;
  }

  #numbered(among: ValueNumbers, text: string, run: StepCounter): number {
    const existing = among.get(text);
    if (existing !== undefined) return existing;
    run.keep(1);
    const number = this.#next++;
    among.own.set(text, number);
    return number;
  }
}

class ValueNumbers {
  readonly own = new Map<string, number>();
  constructor(readonly base: ValueNumbers | undefined) {}

  get(text: string): number | undefined {
    return this.base?.get(text) ?? this.own.get(text);
  }
}
