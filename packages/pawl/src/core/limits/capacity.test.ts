import { describe, expect, test } from "vitest";
import type { Lane } from "../jobs/lane.js";
import { lackInWords, lacksOf, type Needs, type Provides, type Serves } from "./capacity.js";
import { checkCapabilities, checkNeeds, checkResources } from "./capacity-check.js";

const LANE: Lane = { queue: "films", priority: 5, tenant: "acme", task: "encode" };
const ANY: Serves = { tasks: ["encode", "mail"], provides: { capabilities: ["gpu", "eu"], resources: { memory: 8_192 } }, concurrency: { total: 4 } };
const providing = (provides: Provides): Serves => ({ ...ANY, provides: { ...ANY.provides, ...provides } });
const NEEDS: Needs = { capabilities: ["gpu"], resources: { memory: 4_096 } };

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
    ["no live worker that has its task serves the priority 5", {}, [{ ...ANY, priorities: [9] }]],
    ["no live worker that has its task serves the tenant acme", {}, [{ ...ANY, tenants: ["umbrella"] }]],
    ["no live worker that has its task has the capability arm", { capabilities: ["gpu", "arm"] }, [ANY]],
    [
      "it needs 9000 of memory, and the live workers that have its task have 8192 at most",
      { resources: { memory: 9_000 } },
      [providing({ resources: { memory: 1 } }), ANY],
    ],
    ["it needs 1 of disk, and the live workers that have its task have 0 at most", { resources: { disk: 1 } }, [ANY]],
    ["no one live worker has all of gpu, memory", NEEDS, [providing({ capabilities: [] }), providing({ resources: { memory: 1 } })]],
  ];
  test.each(cases)("%s", (words, needs, workers) => {
    expect(lacksOf(LANE, needs, workers).map(lackInWords)).toEqual([words]);
  });

  test("all that is missing is told", () => {
    const lacks = lacksOf(LANE, { capabilities: ["a", "b"], resources: { memory: 9_000, cpu: 1 } }, [ANY]);
    expect(lacks.map(({ kind }) => kind)).toEqual(["capability", "capability", "resource", "resource"]);
  });

  test("nothing, if one worker has all it takes", () => {
    expect(lacksOf(LANE, NEEDS, [providing({ capabilities: [] }), ANY])).toEqual([]);
    expect(
      lacksOf(LANE, {}, [{ ...ANY, queues: ["films"], priorities: [5], tenants: ["acme"], provides: { capabilities: [], resources: {} } }]),
    ).toEqual([]);
  });

  test("names of an object's own kind are names like any other", () => {
    expect(lacksOf(LANE, { resources: { toString: 1 } }, [ANY])).toEqual([{ kind: "resource", resource: "toString", needs: 1, most: 0 }]);
  });
});

describe("needs", () => {
  test("what says the same is the same, in whatever order it was said", () => {
    expect(checkNeeds("needs", { capabilities: ["b", "a", "b"], resources: { y: 1, x: 0.5 } })).toEqual({
      capabilities: ["a", "b"],
      resources: { x: 0.5, y: 1 },
    });
    expect(Object.keys(checkResources("resources", { y: 1, x: 2 }))).toEqual(["x", "y"]);
    expect(checkNeeds("needs", { capabilities: [], resources: {} })).toEqual({});
  });

  const bad: readonly [what: string, value: unknown, message: RegExp][] = [
    ["no object", 5, /needs/],
    ["an unknown option", { capabilitys: ["gpu"] }, /needs.capabilitys is invalid.*did you mean capabilities/],
    ["capabilities that are no array", { capabilities: "gpu" }, /needs.capabilities/],
    ["an empty capability", { capabilities: [""] }, /capability/],
    ["more capabilities than there may be", { capabilities: Array.from({ length: 21 }, (_, n) => `t${n}`) }, /needs.capabilities/],
    ["resources that are no object", { resources: [1] }, /needs.resources/],
    ["an amount of nothing", { resources: { memory: 0 } }, /needs.resources.memory/],
    ["a negative amount", { resources: { memory: -1 } }, /needs.resources.memory/],
    ["not a number", { resources: { memory: Number.NaN } }, /needs.resources.memory/],
    ["an amount without end", { resources: { memory: Number.POSITIVE_INFINITY } }, /needs.resources.memory/],
    ["a text", { resources: { memory: "2 GB" } }, /needs.resources.memory/],
    ["an amount finer than a thousandth", { resources: { cpu: 0.0001 } }, /needs.resources.cpu/],
    ["a resource without a name", { resources: { "": 1 } }, /resource/],
  ];
  test.each(bad)("%s is refused by name", (_, value, message) => {
    expect(() => checkNeeds("needs", value)).toThrow(message);
  });
  test("capabilities that are missing are none", () => expect(checkCapabilities("capabilities", undefined)).toEqual([]));
});
