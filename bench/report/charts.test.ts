import { expect, test } from "vitest";
import { barPanel } from "./bar-panel.js";
import { chartOf, summaryOf } from "./charts.js";
import { ceiling, linePanel } from "./line-panel.js";
import { about, sample } from "./sample.js";
import { card } from "./svg.js";

const widths = (svg: string) => [...svg.matchAll(/<rect class="(?:ours|theirs)"[^>]* width="([\d.]+)"/g)].map((match) => Number(match[1]));
const texts = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map((match) => match[1]);

test("bars are as long as their values say", () => {
  const row = (value: number) => ({ label: "a", value, caption: "", ours: false });
  const [long = 0, half = 0, nothing = 0] = widths(barPanel("", [row(100), row(50), row(0)]).body);
  expect(half / long).toBeCloseTo(0.5, 2);
  expect(nothing).toBe(1);
});

test("the longest bar leaves room for its caption", () => {
  const [width = 0] = widths(barPanel("", [{ label: "a label of some length", value: 1, caption: "103k/s", ours: true }]).body);
  expect(width).toBeLessThan(500);
});

test("systems are drawn by their label, the fastest first, Pawl in its own colour", () => {
  const svg =
    chartOf(
      sample({
        results: [
          { system: "slow", perSecond: 10 },
          { system: "pawl", perSecond: 30 },
          { system: "quick", perSecond: 20 },
        ],
        systems: [about("pawl", "Pawl"), about("slow", "Slow on Redis"), about("quick", "Quick")],
      }),
    ) ?? "";
  expect(texts(svg).filter((text) => /Pawl|Slow|Quick/.test(text ?? ""))).toEqual(["Pawl", "Quick", "Slow on Redis"]);
  expect(svg.match(/class="ours"/g)).toHaveLength(1);
});

test("the shortest time is drawn first", () => {
  const results = [
    { system: "slow", p50Ms: 10, p99Ms: 20 },
    { system: "pawl", p50Ms: 3, p99Ms: 9 },
  ];
  expect(texts(chartOf(sample({ scenario: "latency", results })) ?? "").filter((text) => /Pawl|slow/.test(text ?? ""))).toEqual([
    "Pawl",
    "slow",
    "Pawl",
    "slow",
  ]);
});

test("cases keep their order and need no system where there is only one", () => {
  const results = [
    { system: "pawl", case: "1M ready", perSecond: 9 },
    { system: "pawl", case: "1k ready", perSecond: 10 },
  ];
  const drawn = texts(chartOf(sample({ scenario: "backlog", results })) ?? "");
  expect(drawn.filter((text) => text?.endsWith("ready"))).toEqual(["1M ready", "1k ready"]);
});

test("the small print says what it was measured on", () => {
  expect(chartOf(sample())).toContain("100k jobs, 3 runs · Abacus, 2 cores, 4 GB, Linux 6, fsync 0.2 ms · Node v22.1.0 · 2026-11-15");
});

test("a report without figures to draw has no chart", () => {
  expect(chartOf(sample({ results: [] }))).toBeUndefined();
});

test("curves are drawn in place of bars", () => {
  const svg = chartOf(sample({ curves: [{ head: "RSS", stops: ["1", "2"], lines: [{ name: "pawl", values: [1, 2] }] }] })) ?? "";
  expect(svg).toContain("<polyline");
  expect(widths(svg)).toEqual([]);
});

test("a line starts at the left, ends at the right, and leaves out what is missing", () => {
  const { body } = linePanel({ head: "", stops: ["1", "2", "3"], lines: [{ name: "a", values: [0, null, 10] }] });
  const points = body.match(/points="([^"]*)"/)?.[1]?.split(" ") ?? [];
  expect(points).toHaveLength(2);
  const [x0, y0] = (points[0] ?? "").split(",").map(Number);
  const [x1, y1] = (points[1] ?? "").split(",").map(Number);
  expect(x1).toBeGreaterThan(x0 ?? Number.POSITIVE_INFINITY);
  expect(y1).toBeLessThan(y0 ?? Number.NEGATIVE_INFINITY);
});

test("the axis ends at a round number no smaller than the largest value", () => {
  expect([0, 0.7, 1, 9.4, 130, 200, 201, 99_000].map(ceiling)).toEqual([1, 0.8, 1, 10, 200, 200, 400, 100_000]);
});

test("names cannot break out of the picture", () => {
  const svg = card('<b>&"', [], "");
  expect(svg).toContain("&lt;b&gt;&amp;&quot;");
  expect(svg).not.toContain("<b>");
});

test("the summary shows drain and enqueue beside each other, from whichever of them is there", () => {
  const drain = sample();
  const enqueue = sample({ scenario: "enqueue" });
  expect(summaryOf([])).toBeUndefined();
  expect(widths(summaryOf([drain]) ?? "")).toHaveLength(2);
  expect(widths(summaryOf([enqueue, drain]) ?? "")).toHaveLength(4);
});
