/** What is exposed of a metric: one line each. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** of a histogram, whose lines have names of their own */
  readonly metricName?: string;
}

/** Names come from callers, who may invent them without end: beyond so many, all are "other". */
export class Names {
  readonly #known = new Set<string>();

  constructor(readonly most: number) {}

  of(name: string): string {
    if (this.#known.has(name)) return name;
    if (this.#known.size >= this.most) return "other";
    this.#known.add(name);
    return name;
  }
}

/** A number for each set of labels. */
export class Numbers {
  readonly #values = new Map<string, { readonly labels: readonly string[]; value: number }>();

  constructor(readonly names: readonly string[] = []) {}

  add(count: number, ...labels: readonly string[]): void {
    const key = labels.join("\u0001");
    const known = this.#values.get(key);
    if (known === undefined) this.#values.set(key, { labels, value: count });
    else known.value += count;
  }

  *samples(): Generator<Sample> {
    for (const { labels, value } of this.#values.values()) yield { labels: labelled(this.names, labels), value };
  }
}

/** Upper bounds in ms: from a handler that does nothing to one that takes an hour. */
export const BOUNDS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000] as const;

/** Times in ms, exposed in seconds. Recording is a few comparisons: there may be a hundred thousand a second. */
export class Times {
  readonly #counts = new Float64Array(BOUNDS.length + 1);
  #sum = 0;

  record(ms: number): void {
    let place = 0;
    while (place < BOUNDS.length && ms > (BOUNDS[place] as number)) place++;
    (this.#counts[place] as number)++;
    this.#sum += ms;
  }

  *samples(name: string, labels: Sample["labels"]): Generator<Sample> {
    let count = 0;
    for (const [place, more] of this.#counts.entries()) {
      count += more;
      const bound = BOUNDS[place];
      yield { metricName: `${name}_bucket`, labels: { ...labels, le: bound === undefined ? "+Inf" : bound / 1_000 }, value: count };
    }
    yield { metricName: `${name}_sum`, labels, value: this.#sum / 1_000 };
    yield { metricName: `${name}_count`, labels, value: count };
  }
}

export function labelled(names: readonly string[], values: readonly string[]): Sample["labels"] {
  return Object.fromEntries(names.map((name, place) => [name, values[place] ?? ""]));
}
