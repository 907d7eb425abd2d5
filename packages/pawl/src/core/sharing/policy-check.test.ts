import { describe, expect, it } from "vitest";
import { isPawlError } from "../values/error.js";
import type { PolicyKind } from "./policy.js";
import { changedPolicy } from "./policy-check.js";

const change = (kind: PolicyKind, changes: unknown, before: object = {}) => changedPolicy(kind, before as never, changes as never);

describe("a policy", () => {
  it("keeps what a change leaves out, and loses what it sets to null", () => {
    const first = change("tenant", { weight: 3, concurrency: 10, rate: { limit: 100, per: "1s", burst: 200 } });
    expect(first).toEqual({ weight: 3, concurrency: 10, rate: { limit: 100, per: 1_000, burst: 200 } });
    expect(change("tenant", { weight: 2, rate: undefined }, first)).toEqual({ ...first, weight: 2 });
    expect(change("tenant", { rate: null, concurrency: null }, first)).toEqual({ weight: 3 });
    expect(change("tenant", { weight: null }, { weight: 3 })).toEqual({});
    expect(change("queue", { strictPriority: false }, { strictPriority: true })).toEqual({});
  });

  it("of a queue says how its priorities share", () => {
    expect(change("queue", { priorityWeights: { 9: 10, 0: 0.5 }, priorityMinimum: { 0: 0.05 }, aging: "5m" })).toEqual({
      priorityWeights: { 9: 10, 0: 0.5 },
      priorityMinimum: { 0: 0.05 },
      aging: 300_000,
    });
    expect(change("queue", { priorityMinimum: { 0: 0.4, 1: 0.6 } })).toEqual({ priorityMinimum: { 0: 0.4, 1: 0.6 } });
  });

  const refused: readonly [string, PolicyKind, unknown, RegExp, object?][] = [
    ["a weight of 0", "tenant", { weight: 0 }, /weight.*0/],
    ["a negative weight", "tenant", { weight: -1 }, /weight/],
    ["a weight that is no number", "tenant", { weight: Number.NaN }, /weight.*NaN/],
    ["an endless weight", "tenant", { weight: Number.POSITIVE_INFINITY }, /weight/],
    ["a weight in words", "tenant", { weight: "3" }, /weight/],
    ["a concurrency of 0", "tenant", { concurrency: 0 }, /concurrency/],
    ["half a job", "task", { concurrency: 1.5 }, /concurrency/],
    ["a rate of nothing", "queue", { rate: { limit: 0, per: "1s" } }, /rate\.limit/],
    ["a rate in no time", "queue", { rate: { limit: 1, per: 0 } }, /rate\.per/],
    ["an option nobody knows", "tenant", { wieght: 3 }, /wieght.*did you mean weight/],
    ["an option of another kind", "task", { weight: 3 }, /weight/],
    ["priorities of a tenant", "tenant", { strictPriority: true }, /strictPriority/],
    ["something that is no policy", "queue", 5, /policy.*object/],
    ["no policy at all", "queue", null, /policy/],
    ["a priority that does not exist", "queue", { priorityWeights: { 10: 1 } }, /priorityWeights\.10/],
    ["weights of no priority", "queue", { priorityWeights: {} }, /priorityWeights/],
    ["a priority's weight of 0", "queue", { priorityWeights: { 3: 0 } }, /priorityWeights\.3/],
    ["a minimum of more than all", "queue", { priorityMinimum: { 3: 1.5 } }, /priorityMinimum\.3/],
    ["a minimum of nothing", "queue", { priorityMinimum: { 3: 0 } }, /priorityMinimum\.3/],
    ["minimum shares over 100 %", "queue", { priorityMinimum: { 0: 0.6, 1: 0.6 } }, /120 %/],
    ["strict priorities with weights", "queue", { strictPriority: true, priorityWeights: { 9: 2 } }, /strictPriority is invalid.*weights/],
    ["strict priorities with a minimum", "queue", { strictPriority: true, priorityMinimum: { 0: 0.1 } }, /strictPriority is invalid.*minimum/],
    [
      "strict priorities where weights were set before",
      "queue",
      { strictPriority: true },
      /strictPriority is invalid.*weights/,
      { priorityWeights: { 9: 2 } },
    ],
    ["weights where priorities are strict", "queue", { priorityWeights: { 9: 2 } }, /strictPriority/, { strictPriority: true }],
    ["aging in no time", "queue", { aging: 0 }, /aging/],
    ["strict as a word", "queue", { strictPriority: "yes" }, /strictPriority/],
  ];
  it.each(refused)("is refused: %s", (_what, kind, changes, text, before = {}) => {
    let thrown: unknown;
    try {
      change(kind, changes, before);
    } catch (error) {
      thrown = error;
    }
    expect(isPawlError(thrown), String(thrown)).toBe(true);
    expect(String(thrown)).toMatch(text);
  });

  it("that was strict may have weights in the change that ends it", () => {
    expect(change("queue", { strictPriority: false, priorityWeights: { 9: 2 } }, { strictPriority: true })).toEqual({ priorityWeights: { 9: 2 } });
  });
});
