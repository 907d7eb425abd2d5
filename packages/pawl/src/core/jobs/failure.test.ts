import { describe, expect, it } from "vitest";
import { failure, failureOf, NonRetryable, RetryAfter, Snooze } from "./failure.js";

const trap = new Proxy(
  {},
  {
    get() {
      throw new Error("hands off");
    },
    getPrototypeOf() {
      throw new Error("hands off");
    },
  },
);
const revoked = Proxy.revocable({}, {});
revoked.revoke();

const circular = new Error("round");
circular.cause = circular;

class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code = 503;
}

/** Anything can be thrown. */
const THROWN: readonly [name: string, value: unknown, expected: object][] = [
  ["an error", new TypeError("no"), { name: "TypeError", message: "no", stack: expect.stringContaining("TypeError: no") }],
  ["an error with a code", Object.assign(new Error("no"), { code: "ECONNRESET" }), { name: "Error", code: "ECONNRESET" }],
  ["an error of a class of its own", new HttpError("down"), { name: "HttpError", message: "down", code: "503" }],
  ["null", null, { name: "null", message: "null" }],
  ["undefined", undefined, { name: "undefined", message: "undefined" }],
  ["a text", "oops", { name: "string", message: "oops" }],
  ["a number", 5, { name: "number", message: "5" }],
  ["a BigInt", 5n, { name: "bigint", message: "5" }],
  ["a symbol", Symbol("s"), { name: "symbol", message: "Symbol(s)" }],
  ["a plain object", { a: 1 }, { name: "Object", message: "[object Object]" }],
  ["an object without a prototype", Object.create(null), { name: "Error", message: "(unprintable)" }],
  ["a frozen object", Object.freeze({ name: "Cold", message: "brr" }), { name: "Cold", message: "brr" }],
  ["a function", function thrower() {}, { name: "thrower" }],
  ["an object that throws when it is looked at", trap, { name: "Error", message: "(unprintable)" }],
  ["a revoked proxy", revoked.proxy, { name: "Error", message: "(unprintable)" }],
  [
    "an error whose parts are no texts",
    Object.assign(new Error("x"), { name: 5, message: {}, stack: [], code: {} }),
    { name: "Error", message: expect.any(String) },
  ],
  ["an error without a name", Object.assign(new Error("x"), { name: "" }), { name: "Error", message: "x" }],
  ["texts that cannot be stored", Object.assign(new Error("a\u0000b\ud800"), { name: "N\u0000" }), { name: "N\ufffd", message: "a\ufffdb\ufffd" }],
];

describe("failureOf", () => {
  it.each(THROWN)("records %s", (_name, thrown, expected) => {
    const recorded = failureOf(thrown);
    expect(recorded).toMatchObject({ kind: "error", ...expected });
    expect(JSON.parse(JSON.stringify(recorded)), "plain data").toEqual(recorded);
  });

  it("has a kind that says why", () => {
    expect(failureOf(new Error("slow"), "timeout").kind).toBe("timeout");
    expect(failure("poison", "bad")).toEqual({ kind: "poison", name: "poison", message: "bad" });
  });

  it("follows causes, but not for ever", () => {
    const root = new Error("root");
    const middle = new TypeError("middle", { cause: root });
    const top = failureOf(new Error("top", { cause: middle }));
    expect(top.causes?.map(({ name, message }) => `${name}: ${message}`)).toEqual(["TypeError: middle", "Error: root"]);
    expect(failureOf(circular).causes?.length).toBeLessThanOrEqual(4);
    expect(failureOf(new Error("x", { cause: null })).causes).toBeUndefined();
    expect(failureOf(new Error("x", { cause: "why" })).causes).toEqual([{ name: "string", message: "why" }]);
    expect(failureOf(new Error("x", { cause: trap })).causes).toEqual([{ name: "Error", message: "(unprintable)" }]);
  });

  it("keeps within bounds what is endless", () => {
    const endless = Object.assign(new Error("😀".repeat(100_000)), {
      name: "N".repeat(10_000),
      code: "C".repeat(10_000),
      stack: "s".repeat(1_000_000),
    });
    const recorded = failureOf(endless);
    expect(JSON.stringify(recorded).length).toBeLessThan(40_000);
    expect(recorded.message.isWellFormed()).toBe(true);
  });

  it("changes nothing of what was thrown", () => {
    const thrown = Object.freeze(Object.assign(new Error("x"), { extra: 1 }));
    failureOf(thrown);
    expect(Object.keys(thrown)).toEqual(["extra"]);
  });
});

describe("what handlers throw to say more", () => {
  it("are errors with names of their own", () => {
    expect(new NonRetryable("never")).toMatchObject({ name: "NonRetryable", message: "never" });
    expect(new RetryAfter("5m")).toMatchObject({ name: "RetryAfter", delay: "5m" });
    expect(new Snooze(5)).toMatchObject({ name: "Snooze", delay: 5 });
    for (const error of [new NonRetryable("x"), new RetryAfter(1), new Snooze(1)]) expect(error).toBeInstanceOf(Error);
  });
});
