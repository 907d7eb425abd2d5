import { describe, expect, it } from "vitest";
import { isPawlError } from "./error.js";
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
    expect(change("queue", { strict: false }, { strict: true })).toEqual({});
  });

  it("of a queue says how its bands share", () => {
    expect(change("queue", { weights: { 9: 10, 0: 0.5 }, minimum: { 0: 0.05 }, aging: "5m" })).toEqual({
      weights: { 9: 10, 0: 0.5 },
      minimum: { 0: 0.05 },
      aging: 300_000,
    });
    expect(change("queue", { minimum: { 0: 0.4, 1: 0.6 } })).toEqual({ minimum: { 0: 0.4, 1: 0.6 } });
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
    ["bands of a tenant", "tenant", { strict: true }, /strict/],
    ["something that is no policy", "queue", 5, /policy.*object/],
    ["no policy at all", "queue", null, /policy/],
    ["a band that does not exist", "queue", { weights: { 10: 1 } }, /weights\.10/],
    ["weights of no band", "queue", { weights: {} }, /weights/],
    ["a band's weight of 0", "queue", { weights: { 3: 0 } }, /weights\.3/],
    ["a minimum of more than all", "queue", { minimum: { 3: 1.5 } }, /minimum\.3/],
    ["a minimum of nothing", "queue", { minimum: { 3: 0 } }, /minimum\.3/],
    ["minimum shares over 100 %", "queue", { minimum: { 0: 0.6, 1: 0.6 } }, /120 %/],
    ["strict bands with weights", "queue", { strict: true, weights: { 9: 2 } }, /strict.*weights/],
    ["strict bands with a minimum", "queue", { strict: true, minimum: { 0: 0.1 } }, /strict.*minimum/],
    ["strict bands where weights were set before", "queue", { strict: true }, /strict.*weights/, { weights: { 9: 2 } }],
    ["weights where bands are strict", "queue", { weights: { 9: 2 } }, /strict/, { strict: true }],
    ["aging in no time", "queue", { aging: 0 }, /aging/],
    ["strict as a word", "queue", { strict: "yes" }, /strict/],
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
    expect(change("queue", { strict: false, weights: { 9: 2 } }, { strict: true })).toEqual({ weights: { 9: 2 } });
  });
});
