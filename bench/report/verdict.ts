import { BARS, type Bar } from "../bars.js";
import type { Report } from "../contract/report.js";
import { formatted } from "./figures.js";

export interface Reach {
  readonly target: number;
  readonly met: boolean;
  /** how far above or below, as people say it */
  readonly distance: string;
}

/** How one figure stands to its bar. */
export interface Verdict {
  readonly bar: Bar;
  /** absent: not measured in this run */
  readonly value?: number;
  readonly must?: Reach;
  readonly aim?: Reach;
}

export function verdictsOf(report: Pick<Report, "scenario" | "ratio" | "parts">, bars: readonly Bar[] = BARS): readonly Verdict[] {
  return bars.filter(({ scenario }) => scenario === report.scenario).map((bar) => verdict(bar, figureOf(report, bar.figure)));
}

function figureOf(report: Pick<Report, "ratio" | "parts">, figure: string): number | undefined {
  return (figure === "ratio" ? report.ratio : report.parts[figure]) ?? undefined;
}

function verdict(bar: Bar, value: number | undefined): Verdict {
  if (value === undefined || Number.isNaN(value)) return { bar };
  return {
    bar,
    value,
    ...(bar.must === undefined ? {} : { must: reach(bar, value, bar.must) }),
    ...(bar.aim === undefined ? {} : { aim: reach(bar, value, bar.aim) }),
  };
}

function reach({ better }: Bar, value: number, target: number): Reach {
  const met = better === "higher" ? value >= target : value <= target;
  return { target, met, distance: distance(value, target, met) };
}

function distance(value: number, target: number, met: boolean): string {
  if (value === target) return "just so";
  if (target === 0) return `${value} too many`;
  const percent = Math.round(Math.abs(value / target - 1) * 100);
  return `${percent < 1 ? "under 1" : percent} % ${met ? "better" : value < target ? "short" : "over"}`;
}

/** `✓ must ≥ 3 × (24 % better)`, or nothing where there is no such bar. */
export function reachText(word: "must" | "aim", { bar }: Verdict, reached: Reach | undefined): string {
  if (reached === undefined) return "";
  const sign = bar.better === "higher" ? "≥" : "≤";
  return `${reached.met ? "✓" : "✗"} ${word} ${sign} ${formatted(bar.figure, reached.target)} (${reached.distance})`;
}

export function valueText({ bar, value }: Verdict): string {
  return value === undefined ? "not measured" : formatted(bar.figure, value);
}
