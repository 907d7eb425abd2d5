import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Report } from "../contract/report.js";
import { chartOf, summaryOf } from "./charts.js";
import { thisMachine } from "./machine.js";
import { markdown } from "./markdown.js";
import type { SavedReport } from "./report.js";

/** Keeps one scenario's report in the folder, and brings the pages and charts made of all of them up to date. */
export function saveReport(folder: string, report: Report): void {
  mkdirSync(folder, { recursive: true });
  const kept: SavedReport = { ...report, date: new Date().toISOString(), machine: thisMachine(folder) };
  write(join(folder, `${report.scenario}.json`), `${JSON.stringify(kept, null, 2)}\n`);
  publish(folder);
}

/** Writes the page and the charts again from the reports that are there. */
export function publish(folder: string): void {
  const reports = reportsIn(folder);
  for (const report of reports) {
    const chart = chartOf(report);
    if (chart !== undefined) write(join(folder, `${report.scenario}.svg`), chart);
  }
  const summary = summaryOf(reports);
  if (summary !== undefined) write(join(folder, "summary.svg"), summary);
  write(join(folder, "README.md"), markdown(reports, chartedIn(reports)));
}

/** The scenarios that have a chart. */
export function chartedIn(reports: readonly SavedReport[]): ReadonlySet<string> {
  return new Set(reports.flatMap((report) => (chartOf(report) === undefined ? [] : [report.scenario])));
}

export function reportsIn(folder: string): readonly SavedReport[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return files.sort().map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as SavedReport);
}

/** Whole or not at all: a benchmark stopped half-way leaves what was there before. */
export function write(path: string, content: string): void {
  writeFileSync(`${path}.tmp`, content);
  renameSync(`${path}.tmp`, path);
}
