import { expect, test } from "vitest";
import { BARS, type Bar } from "../bars.js";
import { reachText, valueText, verdictsOf } from "./verdict.js";

const rate: Bar = { scenario: "drain", figure: "ratio", what: "over the best peer", better: "higher", must: 3, aim: 4 };
const late: Bar = { scenario: "drain", figure: "p99Ms", what: "p99", better: "lower", must: 100, aim: 50 };
const none: Bar = { scenario: "drain", figure: "twice", what: "run twice", better: "lower", must: 0 };

function only(bar: Bar, ratio: number | null, parts: Readonly<Record<string, number>> = {}) {
  const [verdict] = verdictsOf({ scenario: "drain", ratio, parts }, [bar]);
  if (verdict === undefined) throw new Error("no verdict");
  return verdict;
}

test("a figure between its bars meets the must, and the text says by how much it misses the aim", () => {
  const verdict = only(rate, 3.6);
  expect(reachText("must", verdict, verdict.must)).toBe("✓ must ≥ 3 × (20 % better)");
  expect(reachText("aim", verdict, verdict.aim)).toBe("✗ aim ≥ 4 × (10 % short)");
});

test("where less is better, more is over the bar", () => {
  const verdict = only(late, null, { p99Ms: 75 });
  expect(reachText("must", verdict, verdict.must)).toBe("✓ must ≤ 100 ms (25 % better)");
  expect(reachText("aim", verdict, verdict.aim)).toBe("✗ aim ≤ 50 ms (50 % over)");
});

test("a figure at its bar meets it", () => {
  expect(only(rate, 3).must).toEqual({ target: 3, met: true, distance: "just so" });
});

test("a bar of zero is missed by a count, not by a percentage", () => {
  expect(only(none, null, { twice: 2 }).must).toEqual({ target: 0, met: false, distance: "2 too many" });
});

test("a miss of less than one percent is still a miss", () => {
  expect(only(rate, 2.999).must).toEqual({ target: 3, met: false, distance: "under 1 % short" });
});

test("what was not measured is neither met nor missed", () => {
  const verdict = only(rate, null);
  expect(valueText(verdict)).toBe("not measured");
  expect(verdict.must).toBeUndefined();
  expect(reachText("must", verdict, verdict.must)).toBe("");
});

test("a scenario answers to its own bars only", () => {
  expect(verdictsOf({ scenario: "idle", ratio: null, parts: { queriesPerSecond: 1.5 } }, BARS).map(({ bar }) => bar.figure)).toEqual([
    "queriesPerSecond",
  ]);
});

test("no aim is easier than its must", () => {
  const easier = BARS.filter(({ must, aim, better }) => must !== undefined && aim !== undefined && (better === "higher" ? aim < must : aim > must));
  expect(easier).toEqual([]);
});
