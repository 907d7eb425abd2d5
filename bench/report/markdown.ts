import { BARS } from "../bars.js";
import { machineText } from "./machine.js";
import type { SavedReport } from "./report.js";
import { circumstances, type Grid, isName, resultsGrid } from "./table.js";
import { reachText, type Verdict, valueText, verdictsOf } from "./verdict.js";

/** All of `results/README.md`. `charts` are the scenarios that have one. */
export function markdown(reports: readonly SavedReport[], charts: ReadonlySet<string>): string {
  const sorted = inOrder(reports);
  return `${[
    "# Results",
    "Written by `npm run bench`; do not edit. A ratio compares Pawl's median with each peer's best run.",
    `## Bars\n\n${barsTable(sorted)}`,
    ...sorted.map((report) => [`## ${section(report, charts.has(report.scenario))}`, table(resultsGrid(report.results), true)].join("\n\n")),
    environment(sorted),
  ].join("\n\n")}\n`;
}

/** As the bars list them; what has no bar comes last. */
export function inOrder(reports: readonly SavedReport[]): readonly SavedReport[] {
  const order = [...new Set(BARS.map(({ scenario }) => scenario))];
  const place = ({ scenario }: SavedReport) => (order.indexOf(scenario) + order.length + 1) % (order.length + 1);
  return reports.toSorted((a, b) => place(a) - place(b) || a.scenario.localeCompare(b.scenario));
}

/** What of it `docs/performance.md` shows: it stands elsewhere, and has the charts and no tables of results. */
export function pageParts(reports: readonly SavedReport[], charts: ReadonlySet<string>, folder: string) {
  const sorted = inOrder(reports);
  return {
    bars: barsTable(sorted),
    scenarios: sorted.map((report) => `### ${section(report, charts.has(report.scenario), folder)}`).join("\n\n"),
    systems: systemsTable(sorted),
    journey: table(resultsGrid(sorted.find(({ scenario }) => scenario === "journey")?.results ?? []), true),
  };
}

function barsTable(reports: readonly SavedReport[]): string {
  const rows = reports.flatMap((report) => verdictsOf(report).map((verdict) => [report.scenario, ...verdictCells(verdict)]));
  return table([["scenario", "figure", "value", "must", "aim"], ...rows]);
}

function verdictCells(verdict: Verdict): readonly string[] {
  const cell = (word: "must" | "aim") => reachText(word, verdict, verdict[word]).replace(`${word} `, "");
  return [verdict.bar.what, valueText(verdict), cell("must"), cell("aim")];
}

/** From its heading on. */
function section(report: SavedReport, chart: boolean, folder = ""): string {
  const { scenario, measures, date, machine } = report;
  return [
    scenario,
    measures,
    ...(chart ? [`![${scenario}](${folder}${scenario}.svg)`] : []),
    `${circumstances(report)}, ${date.slice(0, 16).replace("T", " ")} UTC, ${machineText(machine)}. [All figures](${folder}${scenario}.json)`,
  ].join("\n\n");
}

/** Of every system and server in any of the reports; the newest report's word counts. */
function environment(reports: readonly SavedReport[]): string {
  const byAge = oldestFirst(reports);
  const servers = new Map(byAge.flatMap((report) => Object.entries(report.servers)));
  const skipped = new Map(byAge.flatMap((report) => Object.entries(report.skipped)));
  return [
    "## Systems and their settings",
    systemsTable(reports),
    "## Servers",
    list(servers),
    ...(skipped.size === 0 ? [] : ["## What could not take part", list(skipped)]),
  ].join("\n\n");
}

function systemsTable(reports: readonly SavedReport[]): string {
  const systems = new Map(oldestFirst(reports).flatMap((report) => report.systems.map((system) => [system.name, system])));
  const rows = [...systems.values()].map(({ name, label, version, settings }) => [`${label} (\`${name}\`)`, version, settings]);
  return table([["system", "version", "settings"], ...rows]);
}

function oldestFirst(reports: readonly SavedReport[]): readonly SavedReport[] {
  return reports.toSorted((a, b) => a.date.localeCompare(b.date));
}

function list(items: ReadonlyMap<string, string>): string {
  return [...items].map(([name, text]) => `- ${name}: ${text}`).join("\n");
}

function table(grid: Grid, numbers = false): string {
  const [head = [], ...rows] = grid;
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = `|${head.map((name) => (numbers && !isName(name) ? " --: " : " --- ")).join("|")}|`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}
