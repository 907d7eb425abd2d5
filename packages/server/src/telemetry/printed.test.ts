import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { TELEMETRY_FILES } from "../../../../scripts/print-telemetry.js";
import { alerts } from "./metrics/alerts.js";
import { dashboardQueries } from "./metrics/dashboard.js";
import { METRICS } from "./metrics/metric-table.js";

const ROOT = resolve(import.meta.dirname, "../../../..");

test.each(Object.keys(TELEMETRY_FILES))("%s is as the code says; npm run docs:states prints it", (file) => {
  expect(readFileSync(resolve(ROOT, file), "utf8")).toBe(TELEMETRY_FILES[file]?.());
});

test("alerts and dashboard ask for metrics that there are", () => {
  const used = [...alerts(), ...dashboardQueries()].flatMap(({ expr }) => expr.match(/pawl_[a-z_]+/g) ?? []);
  const defined = new Set(Object.keys(METRICS));
  expect([...new Set(used)].filter((name) => !defined.has(name.replace(/_(bucket|sum|count)$/, "")))).toEqual([]);
});

test("every time of the rules is shorter by the one factor, and nothing else is", () => {
  const [whole, tenth] = [alerts(), alerts(0.1)];
  const times = (expr: string) => [...expr.matchAll(/\[(\d+)ms\]/g)].map(([, ms]) => Number(ms));
  for (const [index, rule] of whole.entries()) {
    const scaled = tenth[index];
    expect(scaled?.for).toBeCloseTo(rule.for / 10);
    expect(times(scaled?.expr ?? "")).toEqual(times(rule.expr).map((ms) => ms / 10));
  }
});
