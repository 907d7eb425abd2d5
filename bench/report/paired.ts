import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { PairedFigure } from "../harness/paired.js";
import { formatted, headOf } from "./figures.js";
import { thisMachine } from "./machine.js";
import type { Paint } from "./table.js";
import { columnWidths, PLAIN } from "./table.js";
import { write } from "./write.js";

/** Paired turns of one scenario, for the terminal. */
export function printedPairs(scenario: string, commit: string, rows: readonly PairedFigure[], paint: Paint = PLAIN): string {
  const head = ["system", "case", "figure", "before", "now", "ratio", "95 % lower", "pairs"];
  const grid = [head, ...rows.map(cells)];
  const widths = columnWidths(grid);
  const lines = grid.map((row, index) => {
    const line =
      `  ${row.map((cell, column) => (column < 3 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join("   ")}`.trimEnd();
    return index === 0 ? paint.faint(line) : line;
  });
  return [`${paint.strong(scenario)}  ${paint.faint(`beside ${commit.slice(0, 12)}, in paired turns; above 1 this tree is better`)}`, ...lines].join(
    "\n",
  );
}

function cells({ system, case: of = "", figure, before, now, ratio, lower, pairs }: PairedFigure): readonly string[] {
  return [
    system,
    of,
    headOf(figure),
    formatted(figure, before),
    formatted(figure, now),
    ratio.toFixed(3),
    lower === undefined ? "–" : lower.toFixed(3),
    String(pairs),
  ];
}

/** Keeps what paired turns gave in the folder, with when and on what they were taken. */
export function savePairs(folder: string, scenario: string, commit: string, rows: readonly PairedFigure[]): void {
  mkdirSync(folder, { recursive: true });
  const kept = { scenario, before: commit, date: new Date().toISOString(), machine: thisMachine(folder), compared: rows };
  write(join(folder, `${scenario}.json`), `${JSON.stringify(kept, null, 2)}\n`);
}
