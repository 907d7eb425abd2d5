import { describe, expect, test } from "vitest";
import { lackInWords, lacksOf, type Needs, type Serves } from "./capacity.js";
import { checkAmounts, checkNeeds, checkTags } from "./capacity-check.js";
import type { Lane } from "./lane.js";

const LANE: Lane = { queue: "films", band: 5, tenant: "acme", task: "encode" };
const ANY: Serves = { tasks: ["encode", "mail"], tags: ["gpu", "eu"], amounts: { memory: 8_192 }, concurrency: 4 };
const NEEDS: Needs = { tags: ["gpu"], amounts: { memory: 4_096 } };

describe("why nobody runs the jobs of a lane", () => {
  const cases: readonly [words: string, needs: Needs, workers: readonly Serves[]][] = [
    ["no worker is live", {}, []],
    ["no live worker has the task encode", {}, [{ ...ANY, tasks: ["mail"] }]],
    [
      "no live worker that has its task serves the queue films",
      {},
      [
        { ...ANY, queues: ["mail"] },
        { ...ANY, tasks: ["mail"] },
      ],
    ],
    ["no live worker that has its task serves the band 5", {}, [{ ...ANY, bands: [9] }]],
    ["no live worker that has its task serves the tenant acme", {}, [{ ...ANY, tenants: ["umbrella"] }]],
    ["no live worker that has its task has the tag arm", { tags: ["gpu", "arm"] }, [ANY]],
    [
      "it needs 9000 of memory, and the live workers that have its task have 8192 at most",
      { amounts: { memory: 9_000 } },
      [{ ...ANY, amounts: { memory: 1 } }, ANY],
    ],
    ["it needs 1 of disk, and the live workers that have its task have 0 at most", { amounts: { disk: 1 } }, [ANY]],
    [
      "no one live worker has all of gpu, memory",
      NEEDS,
      [
        { ...ANY, tags: [] },
        { ...ANY, amounts: { memory: 1 } },
      ],
    ],
  ];
  test.each(cases)("%s", (words, needs, workers) => {
    expect(lacksOf(LANE, needs, workers).map(lackInWords)).toEqual([words]);
  });

  test("all that is missing is told", () => {
    const lacks = lacksOf(LANE, { tags: ["a", "b"], amounts: { memory: 9_000, cpu: 1 } }, [ANY]);
    expect(lacks.map(({ kind }) => kind)).toEqual(["tag", "tag", "amount", "amount"]);
  });

  test("nothing, if one worker has all it takes", () => {
    expect(lacksOf(LANE, NEEDS, [{ ...ANY, tags: [] }, ANY])).toEqual([]);
    expect(lacksOf(LANE, {}, [{ ...ANY, queues: ["films"], bands: [5], tenants: ["acme"], tags: [], amounts: {} }])).toEqual([]);
  });

  test("names of an object's own kind are names like any other", () => {
    expect(lacksOf(LANE, { amounts: { toString: 1 } }, [ANY])).toEqual([{ kind: "amount", amount: "toString", needs: 1, most: 0 }]);
  });
});

describe("needs", () => {
  test("what says the same is the same, in whatever order it was said", () => {
    expect(checkNeeds("needs", { tags: ["b", "a", "b"], amounts: { y: 1, x: 0.5 } })).toEqual({ tags: ["a", "b"], amounts: { x: 0.5, y: 1 } });
    expect(Object.keys(checkAmounts("amounts", { y: 1, x: 2 }))).toEqual(["x", "y"]);
    expect(checkNeeds("needs", { tags: [], amounts: {} })).toEqual({});
  });

  const bad: readonly [what: string, value: unknown, message: RegExp][] = [
    ["no object", 5, /needs/],
    ["an unknown option", { tag: ["gpu"] }, /needs.tag is invalid.*did you mean tags/],
    ["tags that are no array", { tags: "gpu" }, /needs.tags/],
    ["an empty tag", { tags: [""] }, /tag/],
    ["more tags than there may be", { tags: Array.from({ length: 21 }, (_, n) => `t${n}`) }, /needs.tags/],
    ["amounts that are no object", { amounts: [1] }, /needs.amounts/],
    ["an amount of nothing", { amounts: { memory: 0 } }, /needs.amounts.memory/],
    ["a negative amount", { amounts: { memory: -1 } }, /needs.amounts.memory/],
    ["not a number", { amounts: { memory: Number.NaN } }, /needs.amounts.memory/],
    ["an amount without end", { amounts: { memory: Number.POSITIVE_INFINITY } }, /needs.amounts.memory/],
    ["a text", { amounts: { memory: "2 GB" } }, /needs.amounts.memory/],
    ["an amount finer than a thousandth", { amounts: { cpu: 0.0001 } }, /needs.amounts.cpu/],
    ["an amount without a name", { amounts: { "": 1 } }, /amount/],
  ];
  test.each(bad)("%s is refused by name", (_, value, message) => {
    expect(() => checkNeeds("needs", value)).toThrow(message);
  });
  test("tags that are missing are none", () => expect(checkTags("tags", undefined)).toEqual([]));
});
