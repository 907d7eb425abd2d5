import type { Figures } from "../contract/scenario.js";
import { isBetterHigher, median, rounded } from "./figures.js";

/** One turn of this tree and one of the commit before, right after each other. */
export interface Pair {
  readonly system: string;
  readonly case?: string;
  readonly now: Figures;
  readonly before: Figures;
}

/** Which side goes first: by turns in each case, so that what a turn leaves behind on the machine meets both sides alike. */
export function beginsNow(taken: readonly Pair[], { system, case: of }: Pick<Pair, "system" | "case">): boolean {
  return taken.filter((pair) => pair.system === system && pair.case === of).length % 2 === 0;
}

/** One figure over all pairs of one system and case. */
export interface PairedFigure {
  readonly system: string;
  readonly case?: string;
  readonly figure: string;
  /** medians of each side */
  readonly now: number;
  readonly before: number;
  /** median of the ratios pair by pair; above 1 this tree is better, whatever the figure */
  readonly ratio: number;
  /** with 95 % certainty the true median of the ratios is not below this; absent with fewer than five pairs */
  readonly lower?: number;
  readonly pairs: number;
}

const CERTAINTY = 0.95;
/** Counts of faults: comparing them says nothing. */
const NOT_COMPARED: ReadonlySet<string> = new Set(["twice", "errors"]);

export function compared(pairs: readonly Pair[]): readonly PairedFigure[] {
  const groups = new Map<string, Pair[]>();
  for (const pair of pairs) {
    const key = JSON.stringify([pair.system, pair.case]);
    groups.set(key, [...(groups.get(key) ?? []), pair]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group as [Pair];
    const figures = Object.keys(first.now).filter((figure) => figure in first.before && !NOT_COMPARED.has(figure));
    return figures.flatMap((figure) => {
      const of = group.map(({ now, before }) => ({ now: now[figure] ?? Number.NaN, before: before[figure] ?? Number.NaN }));
      const ratios = of.map(({ now, before }) => (isBetterHigher(figure) ? now / before : before / now)).filter(Number.isFinite);
      if (ratios.length === 0) return [];
      const lower = lowerBound(ratios);
      return {
        system: first.system,
        ...(first.case === undefined ? {} : { case: first.case }),
        figure,
        now: rounded(median(of.map(({ now }) => now))),
        before: rounded(median(of.map(({ before }) => before))),
        ratio: rounded(median(ratios)),
        ...(lower === undefined ? {} : { lower: rounded(lower) }),
        pairs: ratios.length,
      };
    });
  });
}

/**
 * The lower bound of the median, without any assumption on how the values spread: the k-th smallest of n values is above the true
 * median only if fewer than k of them are below it, and each is below it with a chance of one half.
 */
export function lowerBound(values: readonly number[]): number | undefined {
  const n = values.length;
  const sorted = [...values].sort((a, b) => a - b);
  let bound: number | undefined;
  let chance = 0.5 ** n;
  let fewer = 0;
  for (let k = 1; k <= n; k++) {
    // `fewer`: the chance that fewer than k values are below the median.
    fewer += chance;
    if (fewer > 1 - CERTAINTY) return bound;
    bound = sorted[k - 1];
    chance = (chance * (n - k + 1)) / k;
  }
  return bound;
}
