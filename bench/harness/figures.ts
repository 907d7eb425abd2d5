import type { Figures, Outcome, Result, Samples } from "../contract/scenario.js";

/** Ours are known by their names: `pawl`, `pawl-embedded`. */
export function isOurs(system: string): boolean {
  return system === "pawl" || system.startsWith("pawl-");
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** Rates of jobs are better when higher; everything else measured here (times, bytes, CPU, queries) when lower. */
export function isBetterHigher(figure: string): boolean {
  return /perSecond$/i.test(figure) && figure !== "queriesPerSecond";
}

export function best(figure: string, values: readonly number[]): number {
  return isBetterHigher(figure) ? Math.max(...values) : Math.min(...values);
}

/** Pawl's median, a peer's best: noise never flatters us. */
export function figureOf(system: string, figure: string, samples: readonly Figures[]): number {
  const values = samples.flatMap((sample) => sample[figure] ?? []);
  return isOurs(system) ? median(values) : best(figure, values);
}

/** One row per system, with every figure its samples have. */
export function rowsOf(samples: Samples, more: { readonly case?: string } = {}): readonly Result[] {
  return [...samples].map(([system, taken]) => {
    const figures = [...new Set(taken.flatMap((sample) => Object.keys(sample)))];
    return { system, ...more, ...partsOf(Object.fromEntries(figures.map((figure) => [figure, figureOf(system, figure, taken)]))) };
  });
}

/** How much better Pawl is than the best of the peers asked about; null if there is none of them. */
export function overBestPeer(samples: Samples, figure: string, isRival: (system: string) => boolean = () => true): number | null {
  const ours = samples.get("pawl");
  const peers = [...samples].filter(([system, taken]) => !isOurs(system) && taken.length > 0 && isRival(system));
  if (ours === undefined || ours.length === 0 || peers.length === 0) return null;
  const mine = figureOf("pawl", figure, ours);
  const theirs = best(
    figure,
    peers.map(([system, taken]) => figureOf(system, figure, taken)),
  );
  return rounded(isBetterHigher(figure) ? mine / theirs : theirs / mine);
}

/** The outcome of a scenario whose ratio is one figure over the best peer of any kind. */
export function outcomeOf(samples: Samples, figure = "perSecond", parts: Outcome["parts"] = {}): Outcome {
  return { results: rowsOf(samples), ratio: overBestPeer(samples, figure), parts };
}

/** Five digits are more than the measurement has. */
export function rounded(value: number): number {
  return Number(value.toPrecision(5));
}

/** Without what was not measured. */
export function partsOf(parts: Readonly<Record<string, number | null | undefined>>): Outcome["parts"] {
  const measured = Object.entries(parts).filter((part): part is [string, number] => Number.isFinite(part[1]));
  return Object.fromEntries(measured.map(([name, value]) => [name, rounded(value)]));
}
