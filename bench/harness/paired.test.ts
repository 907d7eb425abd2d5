import { describe, expect, test } from "vitest";
import { beginsNow, compared, lowerBound, type Pair } from "./paired.js";

const pair = (now: number, before: number, more: Partial<Pair> = {}): Pair => ({
  system: "pawl",
  now: { perSecond: now },
  before: { perSecond: before },
  ...more,
});

describe("paired turns", () => {
  test("a ratio above one means this tree is better, for rates and for times alike", () => {
    const [rate] = compared([pair(120, 100)]);
    expect(rate).toMatchObject({ figure: "perSecond", now: 120, before: 100, ratio: 1.2, pairs: 1 });
    const [time] = compared([{ system: "pawl", now: { p99Ms: 5 }, before: { p99Ms: 10 } }]);
    expect(time).toMatchObject({ figure: "p99Ms", ratio: 2 });
  });

  test("ratios are taken pair by pair, so a slow minute that meets both sides does not count", () => {
    const [drain] = compared([pair(100, 100), pair(50, 50), pair(10, 10)]);
    expect(drain).toMatchObject({ ratio: 1, pairs: 3 });
  });

  test("cases and systems are compared apart, and faults are not compared", () => {
    const rows = compared([
      { ...pair(2, 1, { case: "1 tenant" }), now: { perSecond: 2, twice: 0 }, before: { perSecond: 1, twice: 0 } },
      pair(1, 2, { case: "100 tenants" }),
      pair(1, 1, { system: "pawl-http" }),
    ]);
    expect(rows.map((row) => [row.system, row.case, row.figure, row.ratio])).toEqual([
      ["pawl", "1 tenant", "perSecond", 2],
      ["pawl", "100 tenants", "perSecond", 0.5],
      ["pawl-http", undefined, "perSecond", 1],
    ]);
  });

  test("the side that begins changes with every pair of a system and case, whatever is measured between", () => {
    const taken = [pair(1, 1), pair(1, 1, { system: "pawl-http" })];
    expect(beginsNow(taken, { system: "pawl" })).toBe(false);
    expect(beginsNow(taken, { system: "pawl-http" })).toBe(false);
    expect(beginsNow(taken, { system: "pawl", case: "1 tenant" })).toBe(true);
    expect(beginsNow([...taken, pair(1, 1)], { system: "pawl" })).toBe(true);
  });

  test("the lower bound of nine pairs is the second smallest, of five the smallest, and of four there is none", () => {
    // P(at most one of nine below the median) = 10/512; P(none of five) = 1/32; P(none of four) = 1/16.
    expect(lowerBound([9, 8, 7, 6, 5, 4, 3, 2, 1])).toBe(2);
    expect(lowerBound([5, 4, 3, 2, 1])).toBe(1);
    expect(lowerBound([4, 3, 2, 1])).toBeUndefined();
  });

  test("the lower bound holds for at least 95 of 100 samples whose true median is known", () => {
    let state = 7;
    const random = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    let held = 0;
    for (let i = 0; i < 2_000; i++) {
      const bound = lowerBound(Array.from({ length: 9 }, () => random() ** 3)) ?? Number.NaN;
      if (bound <= 0.5 ** 3) held++;
    }
    expect(held / 2_000).toBeGreaterThan(0.95);
  });
});
