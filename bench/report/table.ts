import type { Report } from "../contract/report.js";
import type { Result } from "../contract/scenario.js";
import { isOurs } from "../harness/figures.js";
import { formatted, headOf, short } from "./figures.js";
import { reachText, type Verdict, valueText, verdictsOf } from "./verdict.js";

/** A grid of texts, the first row its head: what the terminal pads and Markdown bars. */
export type Grid = readonly (readonly string[])[];

/** How a word is emphasised; the terminal colours it, elsewhere it stays as it is. */
export interface Paint {
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly strong: (text: string) => string;
  readonly faint: (text: string) => string;
}

const as = (text: string) => text;
export const PLAIN: Paint = { good: as, bad: as, strong: as, faint: as };

/** What one scenario found, for the terminal; against its bars if it was run in full. */
export function printed(report: Report, { paint = PLAIN, whole = true }: { readonly paint?: Paint; readonly whole?: boolean } = {}): string {
  const grid = resultsGrid(report.results);
  const widths = columnWidths(grid);
  const rows = grid.map((row, index) => {
    const line = row.map((cell, column) => padded(cell, widths[column] ?? 0, !isName(grid[0]?.[column]))).join("   ");
    return `  ${paintRow(paint, index, row)(line).trimEnd()}`;
  });
  const verdicts = verdictsOf(report).map((verdict) => verdictLine(whole ? verdict : unbarred(verdict), paint));
  if (!whole) verdicts.push(paint.faint("  a trial: bars are for runs in full"));
  return [`${paint.strong(report.scenario)}  ${paint.faint(circumstances(report))}`, ...rows, "", ...verdicts].join("\n");
}

export function circumstances({ jobs, runs }: Pick<Report, "jobs" | "runs">): string {
  return `${short(jobs)} jobs, ${runs === 1 ? "one run" : `${runs} runs`}`;
}

/** One row per result; a column for every figure any of them has. */
export function resultsGrid(results: readonly Result[]): Grid {
  const figures = [...new Set(results.flatMap((result) => Object.keys(result).filter((key) => typeof result[key] === "number")))];
  const cases = results.some((result) => result.case !== undefined);
  const head = ["system", ...(cases ? ["case"] : []), ...figures.map(headOf)];
  const rows = results.map((result) => [result.system, ...(cases ? [result.case ?? ""] : []), ...figures.map((figure) => cell(result, figure))]);
  return [head, ...rows];
}

function cell(result: Result, figure: string): string {
  const value = result[figure];
  return typeof value === "number" && Number.isFinite(value) ? formatted(figure, value) : "–";
}

function unbarred({ must: _, aim: __, ...figure }: Verdict): Verdict {
  return figure;
}

function verdictLine(verdict: Verdict, paint: Paint): string {
  const { bar, must, aim } = verdict;
  const reaches = [must && mark(paint, must.met, reachText("must", verdict, must)), aim && mark(paint, aim.met, reachText("aim", verdict, aim))];
  return `  ${bar.what}: ${paint.strong(valueText(verdict))}   ${reaches.filter(Boolean).join("   ")}`.trimEnd();
}

function mark(paint: Paint, met: boolean, text: string): string {
  return met ? paint.good(text) : paint.bad(text);
}

function paintRow(paint: Paint, index: number, row: readonly string[]): (text: string) => string {
  if (index === 0) return paint.faint;
  return isOurs(row[0] ?? "") ? paint.strong : as;
}

export function columnWidths(grid: Grid): readonly number[] {
  return (grid[0] ?? []).map((_, column) => Math.max(...grid.map((row) => row[column]?.length ?? 0)));
}

/** Names stand on the left, numbers on the right. */
export function isName(head: string | undefined): boolean {
  return head === "system" || head === "case";
}

function padded(cell: string, width: number, right: boolean): string {
  return right ? cell.padStart(width) : cell.padEnd(width);
}
