import { describe, expect, test } from "vitest";
import type { Samples } from "../contract/scenario.js";
import { median, outcomeOf, overBestPeer, partsOf, rowsOf } from "./figures.js";

const samples: Samples = new Map([
  [
    "pawl",
    [
      { perSecond: 90, p99Ms: 4 },
      { perSecond: 110, p99Ms: 8 },
      { perSecond: 500, p99Ms: 6 },
    ],
  ],
  [
    "slow",
    [
      { perSecond: 10, p99Ms: 9 },
      { perSecond: 11, p99Ms: 3 },
      { perSecond: 12, p99Ms: 7 },
    ],
  ],
  [
    "quick",
    [
      { perSecond: 20, p99Ms: 50 },
      { perSecond: 22, p99Ms: 60 },
      { perSecond: 18, p99Ms: 70 },
    ],
  ],
]);

describe("figures", () => {
  test("Pawl's is the median of the repetitions, a peer's its best one", () => {
    expect(rowsOf(samples)).toEqual([
      { system: "pawl", perSecond: 110, p99Ms: 6 },
      { system: "slow", perSecond: 12, p99Ms: 3 },
      { system: "quick", perSecond: 22, p99Ms: 50 },
    ]);
  });

  test("a rate is compared with the highest peer's, a time with the lowest, and more than one means Pawl is better", () => {
    expect(overBestPeer(samples, "perSecond")).toBe(5);
    expect(overBestPeer(samples, "p99Ms")).toBe(0.5);
  });

  test("a ratio over some peers leaves the others out", () => {
    expect(overBestPeer(samples, "p99Ms", (name) => name === "quick")).toBe(8.3333);
  });

  test("there is no ratio without Pawl, without peers, and over a peer that never finished", () => {
    const of = (...names: string[]): Samples => new Map([...samples].filter(([name]) => names.includes(name)));
    expect(overBestPeer(of("slow", "quick"), "perSecond")).toBeNull();
    expect(overBestPeer(of("pawl"), "perSecond")).toBeNull();
    expect(overBestPeer(new Map([...of("pawl"), ["gone", []]]), "perSecond")).toBeNull();
    expect(outcomeOf(of("pawl")).ratio).toBeNull();
  });

  test("the median of an even number is the mean of the middle two", () => {
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  test("parts hold only what was measured", () => {
    expect(partsOf({ a: 1.234567, b: null, c: undefined, d: Number.NaN })).toEqual({ a: 1.2346 });
  });
});
