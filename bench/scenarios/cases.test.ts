import { expect, test } from "vitest";
import type { Bench, Figures, Samples, Turn, TurnOptions } from "../contract/scenario.js";
import { caseRows, inCases, over } from "./cases.js";

/** A bench that calls back at once, for Pawl, with a turn nobody looks at. */
function benchOf(runs: number, system = "pawl"): Bench & { readonly titles: string[] } {
  const titles: string[] = [];
  return {
    titles,
    jobs: 1,
    runs,
    systems: [],
    say() {},
    async turns<F extends Figures>(measure: (turn: Turn) => Promise<F>, { title = "", round = "" }: TurnOptions = {}): Promise<Samples<F>> {
      titles.push(`${title}, ${round}`);
      return new Map([[system, [await measure({} as Turn)]]]);
    },
  };
}

/** Answers one after the other. */
const answering = (figure: string, ...values: number[]) => {
  const left = [...values];
  return async () => ({ [figure]: left.shift() ?? Number.NaN });
};

test("cases take turns inside each repetition, and one that asks for fewer runs takes part in the first", async () => {
  const bench = benchOf(2);
  await inCases(bench, [
    { name: "small", measure: answering("perSecond", 1, 1) },
    { name: "large", runs: 1, measure: answering("perSecond", 1) },
  ]);
  expect(bench.titles).toEqual(["small, run 1 of 2", "large, run 1 of 1", "small, run 2 of 2"]);
});

test("a case's figure is the median of its repetitions", async () => {
  const figures = await inCases(benchOf(3), [{ name: "small", measure: answering("perSecond", 9, 1, 5) }]);
  expect(caseRows(figures)).toEqual([{ system: "pawl", case: "small", perSecond: 5 }]);
});

test("a fault in one repetition is not averaged away", async () => {
  const figures = await inCases(benchOf(3), [{ name: "small", measure: answering("twice", 0, 1, 0) }]);
  expect(figures.get("small")).toEqual({ twice: 1 });
});

test("one case over another is not measured where either is missing", async () => {
  const figures = await inCases(benchOf(1), [
    { name: "small", measure: answering("perSecond", 10) },
    { name: "large", measure: answering("perSecond", 8) },
  ]);
  expect(over(figures, "perSecond", "large", "small")).toBe(0.8);
  expect(over(figures, "perSecond", "huge", "small")).toBeNull();
});

test("without Pawl there is nothing to say", async () => {
  const figures = await inCases(benchOf(1, "pg-boss"), [{ name: "small", measure: answering("perSecond", 10) }]);
  expect(caseRows(figures)).toEqual([]);
});
