import { expect, test } from "vitest";
import { inOrder, markdown, pageParts } from "./markdown.js";
import { about, sample } from "./sample.js";

test("the page has the bars, every scenario's figures, and who took part with what settings", () => {
  const page = markdown([sample()], new Set(["drain"]));
  expect(page).toContain("| drain | over the best peer | 3.68 × | ✓ ≥ 3 × (23 % better) | ✗ ≥ 4 × (8 % short) |");
  expect(page).toContain("![drain](drain.svg)");
  expect(page).toContain("| pawl | 103k/s |");
  expect(page).toContain("Abacus, 2 cores, 4 GB, Linux 6, fsync 0.2 ms");
  expect(page).toContain("| Pawl (`pawl`) | 1.2.3 | batches of 500 |");
  expect(page).toContain("- postgres: 18.4, fsync on");
});

test("the page about performance has the bars, the charts and the settings, by links from where it stands", () => {
  const { bars, scenarios, systems } = pageParts([sample()], new Set(["drain"]), "../bench/results/");
  expect(bars).toContain("| drain | over the best peer | 3.68 × |");
  expect(scenarios).toContain("### drain");
  expect(scenarios).toContain("![drain](../bench/results/drain.svg)");
  expect(scenarios).toContain("[All figures](../bench/results/drain.json)");
  expect(systems).toContain("| Pawl (`pawl`) | 1.2.3 | batches of 500 |");
});

test("a scenario without a chart shows none", () => {
  expect(markdown([sample()], new Set())).not.toContain(".svg");
});

test("systems of the newest report win over those of older ones", () => {
  const old = sample({ scenario: "enqueue", date: "2026-01-01T00:00:00.000Z", systems: [{ ...about("pawl", "Pawl"), version: "0.0.1" }] });
  const page = markdown([sample(), old], new Set());
  expect(page).toContain("| Pawl (`pawl`) | 1.2.3 |");
  expect(page).not.toContain("0.0.1");
});

test("what was left out is named with its reason", () => {
  expect(markdown([sample({ skipped: { celery: "not installed" } })], new Set())).toContain("- celery: not installed");
});

test("scenarios come in the order of their bars, and those without a bar last", () => {
  const order = inOrder(["zebra", "idle", "drain", "enqueue"].map((scenario) => sample({ scenario })));
  expect(order.map(({ scenario }) => scenario)).toEqual(["enqueue", "drain", "idle", "zebra"]);
});

test("a bar inside a cell does not end it", () => {
  const page = markdown([sample({ systems: [{ ...about("pawl", "Pawl"), settings: "a | b" }] })], new Set());
  expect(page).toContain("| a \\| b |");
});
