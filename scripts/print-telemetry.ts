/**
 * Part of `npm run docs:states`: prints what operators take from the code (alert rules, dashboard, tables of metrics and
 * alerts). A unit test fails where they are out of date.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { alertSections, alertsYaml } from "../packages/server/src/telemetry/metrics/alerts.js";
import { dashboardJson } from "../packages/server/src/telemetry/metrics/dashboard.js";
import { metricTable } from "../packages/server/src/telemetry/metrics/metric-table.js";

const ROOT = resolve(import.meta.dirname, "..");
const BLOCK = /(<!-- printed -->\n)[\s\S]*?(<!-- \/printed -->)/;

/** file → what it should be */
export const TELEMETRY_FILES: Readonly<Record<string, () => string>> = {
  "ops/alerts.yml": () => alertsYaml(),
  "ops/grafana.json": dashboardJson,
  "docs/metrics.md": () => within("docs/metrics.md", metricTable()),
  "docs/alerts.md": () => within("docs/alerts.md", alertSections()),
};

function within(file: string, print: string): string {
  const text = readFileSync(resolve(ROOT, file), "utf8");
  if (!BLOCK.test(text)) throw new Error(`${file} has no place for what is printed`);
  return text.replace(BLOCK, (_, begin: string, end: string) => `${begin}\n${print}\n\n${end}`);
}

if (process.argv[1] === import.meta.filename) {
  for (const [file, text] of Object.entries(TELEMETRY_FILES)) {
    const path = resolve(ROOT, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text());
  }
}
