/** What is exposed of a metric: one line each. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** of a histogram, whose lines have names of their own */
  readonly metricName?: string;
}

/** Names come from callers, who may invent them without end: beyond so many, all are "other". */
export class BoundedNames {
  readonly #names = new Set<string>();

  constructor(readonly maxNames: number) {}

  of(name: string): string {
    if (this.#names.has(name)) return name;
    if (this.#names.size >= this.maxNames) return "other";
    this.#names.add(name);
    return name;
  }
}

/** A number for each set of labels. */
export class LabelledNumbers {
  readonly #values = new Map<string, { readonly labels: readonly string[]; value: number }>();

  constructor(readonly names: readonly string[] = []) {}

  add(count: number, ...labels: readonly string[]): void {
    const key = labels.join("\u0001");
    const existing = this.#values.get(key);
    if (existing === undefined) this.#values.set(key, { labels, value: count });
    else existing.value += count;
  }

  *samples(): Generator<Sample> {
    for (const { labels, value } of this.#values.values()) yield { labels: labelsOf(this.names, labels), value };
  }
}

/** Upper bounds in ms: from a handler that does nothing to one that takes an hour. */
export const BOUNDS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000] as const;

/** Times in ms, exposed in seconds. Recording is a few comparisons: there may be a hundred thousand a second. */
export class DurationHistogram {
  readonly #counts = new Float64Array(BOUNDS_MS.length + 1);
  #sum = 0;

  record(ms: number): void {
    let index = 0;
    while (index < BOUNDS_MS.length && ms > (BOUNDS_MS[index] as number)) index++;
    (this.#counts[index] as number)++;
    this.#sum += ms;
  }

  *samples(name: string, labels: Sample["labels"]): Generator<Sample> {
    let count = 0;
    for (const [index, more] of this.#counts.entries()) {
      count += more;
      const bound = BOUNDS_MS[index];
      yield { metricName: `${name}_bucket`, labels: { ...labels, le: bound === undefined ? "+Inf" : bound / 1_000 }, value: count };
    }
    yield { metricName: `${name}_sum`, labels, value: this.#sum / 1_000 };
    yield { metricName: `${name}_count`, labels, value: count };
  }
}

export function labelsOf(names: readonly string[], values: readonly string[]): Sample["labels"] {
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""]));
}
