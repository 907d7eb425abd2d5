import type { Bench, Figures, Result, Turn } from "../contract/scenario.js";
import { median, rounded } from "../harness/figures.js";

/** One of several circumstances in which Pawl is measured. */
export interface Case<F extends Figures = Figures> {
  readonly name: string;
  /** left out: the scenario's */
  readonly runs?: number;
  measure(turn: Turn): Promise<F>;
}

/** What each case gave, by its name: the median of each figure, the worst of each fault. Empty if Pawl was not asked for. */
export type CaseFigures = ReadonlyMap<string, Figures>;

/** Measures Pawl alone. The cases take turns inside each repetition, so that a slow minute of the machine meets all of them. */
export async function inCases(bench: Bench, cases: readonly Case[]): Promise<CaseFigures> {
  const taken = new Map<string, Figures[]>(cases.map(({ name }) => [name, []]));
  for (let run = 1; run <= bench.runs; run++) {
    for (const { name, runs = bench.runs, measure } of cases) {
      if (run > runs) continue;
      const samples = await bench.turns(measure, { runs: 1, title: name, round: `run ${run} of ${runs}` });
      taken.get(name)?.push(...(samples.get("pawl") ?? []));
    }
  }
  return new Map([...taken].flatMap(([name, samples]) => (samples.length === 0 ? [] : [[name, medians(samples)] as const])));
}

export function caseRows(figures: CaseFigures): readonly Result[] {
  return [...figures].map(([name, of]) => ({ system: "pawl", case: name, ...of }));
}

/** One case's figure over another's; null if either was not measured. */
export function over(figures: CaseFigures, figure: string, one: string, base: string): number | null {
  const [a, b] = [figures.get(one)?.[figure], figures.get(base)?.[figure]];
  return a === undefined || b === undefined ? null : rounded(a / b);
}

/** Counts of what must never happen: once is once too often. */
const FAULTS: ReadonlySet<string> = new Set(["errors", "twice"]);

function medians(samples: readonly Figures[]): Figures {
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample)))];
  return Object.fromEntries(
    names.map((name) => {
      const values = samples.flatMap((sample) => sample[name] ?? []);
      return [name, rounded(FAULTS.has(name) ? Math.max(...values) : median(values))];
    }),
  );
}
