import { expect, test } from "vitest";
import { sample } from "./sample.js";
import { printed, resultsGrid } from "./table.js";

test("the terminal shows every system, the figure behind the bar, and how the bars were reached", () => {
  expect(printed(sample())).toBe(`drain  100k jobs, 3 runs
  system    per second
  pawl          103k/s
  pg-boss        28k/s

  over the best peer: 3.68 ×   ✓ must ≥ 3 × (23 % better)   ✗ aim ≥ 4 × (8 % short)`);
});

test("a trial shows the figure and no bars: they are for runs in full", () => {
  const text = printed(sample(), { whole: false });
  expect(text).toContain("over the best peer: 3.68 ×\n  a trial: bars are for runs in full");
  expect(text).not.toMatch(/must|aim/);
});

test("a system without a figure that others have shows a dash", () => {
  const grid = resultsGrid([
    { system: "pawl", perSecond: 10, claimP99Ms: 2 },
    { system: "pg-boss", perSecond: 5 },
  ]);
  expect(grid).toEqual([
    ["system", "per second", "claim p99"],
    ["pawl", "10/s", "2 ms"],
    ["pg-boss", "5/s", "–"],
  ]);
});

test("cases get a column of their own where a scenario has them", () => {
  const grid = resultsGrid([
    { system: "pawl", case: "1k ready", perSecond: 10 },
    { system: "pawl", case: "1M ready", perSecond: 9 },
  ]);
  expect(grid.map((row) => row[1])).toEqual(["case", "1k ready", "1M ready"]);
});

test("colours mark what was met and what was missed", () => {
  const wrap = (name: string) => (text: string) => `<${name}>${text}</${name}>`;
  const text = printed(sample(), { paint: { good: wrap("good"), bad: wrap("bad"), strong: wrap("strong"), faint: wrap("faint") } });
  expect(text).toContain("<good>✓ must ≥ 3 × (23 % better)</good>");
  expect(text).toContain("<bad>✗ aim ≥ 4 × (8 % short)</bad>");
  expect(text).toMatch(/<strong>pawl .*<\/strong>/);
  expect(text).not.toMatch(/<strong>pg-boss/);
});
