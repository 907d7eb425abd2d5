import { describe, expect, it } from "vitest";
import { checkLimits, limitsOf, publishedLimits } from "./limit-options.js";

const rate = { limit: 10, per: "1s", burst: 5 };
const one = (limit: object) => () => checkLimits("mail", [limit]);
const under = (limit: object, input: unknown, own?: Record<string, never>) => limitsOf("mail", checkLimits("mail", [limit]), input, own);

describe("the limits of a task", () => {
  it.each([
    ["no array", () => checkLimits("mail", {}), /not an array/],
    ["a limit of 0", one({ key: "a", concurrency: 0 }), /concurrency.*whole number from 1/],
    ["a negative one", one({ key: "a", concurrency: -1 }), /concurrency/],
    ["half a place", one({ key: "a", concurrency: 1.5 }), /concurrency/],
    ["a rate of 0", one({ key: "a", rate: { limit: 0, per: "1s" } }), /rate.limit/],
    ["a rate per nothing", one({ key: "a", rate: { limit: 1, per: 0 } }), /rate.per/],
    ["serial and concurrency", one({ key: "a", serial: true, concurrency: 5 }), /choose one/],
    ["nothing to limit by", one({ key: "a" }), /limits nothing/],
    ["no key", one({ concurrency: 1 }), /neither a function nor the path/],
    ["a misspelt option", one({ key: "a", concurency: 1 }), /did you mean concurrency/],
    ["a cost without a rate", one({ key: "a", concurrency: 1, cost: 2 }), /nothing without rate/],
    ["a cost above the burst", one({ key: "a", rate, cost: 6 }), /wait for ever/],
    ["a cost of 0", one({ key: "a", rate, cost: 0 }), /above 0/],
    ["an empty name", one({ name: "", key: "a", concurrency: 1 }), /limit/],
    [
      "two without a name",
      () =>
        checkLimits(
          "mail",
          [1, 2].map(() => ({ key: "a", concurrency: 1 })),
        ),
      /a name of its own/,
    ],
    [
      "two that are serial",
      () =>
        checkLimits(
          "mail",
          ["a", "b"].map((name) => ({ name, key: "a", serial: true })),
        ),
      /two are serial/,
    ],
  ])("refuses %s", (_, given, because) => {
    expect(given).toThrow(because);
  });

  it("are called like the task unless they have a name", () => {
    expect(under({ key: "a", concurrency: 1 }, { a: "x" })).toEqual([{ limit: "mail", key: "x", rule: { concurrency: 1 } }]);
  });

  it.each([
    ["a text", "x", "x"],
    ["a number", 7, "7"],
    ["nothing", undefined, undefined],
    ["null", null, undefined],
  ])("take %s for a key", (_, answer, key) => {
    expect(under({ key: () => answer, concurrency: 1 }, {})?.[0]?.key).toBe(key);
  });

  it.each([
    ["an object", {}],
    ["NaN", Number.NaN],
    ["an empty text", ""],
    ["true", true],
    ["a text of a thousand characters", "x".repeat(1_000)],
    ["a control character", "a\u0001b"],
  ])("refuse %s for a key", (_, answer) => {
    expect(() => under({ key: () => answer, concurrency: 1 }, {})).toThrow(expect.objectContaining({ code: "limit_key_invalid" }));
  });

  it("refuse a key or a cost whose function throws, with what it threw", () => {
    const thrown = new TypeError("no account");
    const fail = () => {
      throw thrown;
    };
    expect(() => under({ key: fail, concurrency: 1 }, {})).toThrow(
      expect.objectContaining({ code: "limit_key_invalid", cause: thrown, message: expect.stringContaining(thrown.message) }),
    );
    expect(() => under({ key: "a", rate, cost: fail }, { a: 1 })).toThrow(expect.objectContaining({ code: "limit_cost_invalid", cause: thrown }));
    expect(() => under({ key: "a", rate, cost: () => 99 }, { a: 1 })).toThrow(expect.objectContaining({ code: "limit_cost_invalid" }));
  });

  it("read a path in the input, and only its own fields", () => {
    expect(under({ key: "customer.id", concurrency: 1 }, { customer: { id: 3 } })?.[0]?.key).toBe("3");
    expect(under({ key: "customer.id", concurrency: 1 }, { customer: null })).toBeUndefined();
    expect(under({ key: "constructor.name", concurrency: 1 }, {})).toBeUndefined();
  });

  it("are known by name alone where their keys are paths, and ask for the others", () => {
    const published = publishedLimits(
      checkLimits("mail", [
        { name: "path", key: "a", concurrency: 1 },
        { name: "code", key: () => "x", rate, cost: () => 2 },
      ]),
    );
    expect(JSON.parse(JSON.stringify(published))).toEqual(published);
    const known = checkLimits("mail", published);
    expect(() => limitsOf("mail", known, { a: "x" })).toThrow(expect.objectContaining({ code: "limit_key_missing" }));
    expect(limitsOf("mail", known, { a: "x" }, { code: "y" })?.map(({ key }) => key)).toEqual(["x", "y"]);
    expect(limitsOf("mail", known, { a: "x" }, { code: null })?.map(({ key }) => key)).toEqual(["x"]);
    expect(() => limitsOf("mail", known, {}, { cod: "y" })).toThrow(/no limit/);
  });
});
