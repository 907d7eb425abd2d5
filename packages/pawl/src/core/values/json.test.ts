import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decode, encode } from "./json.js";

const circular: Record<string, unknown> = {};
circular.self = circular;

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let n = 0; n < levels; n++) value = [value];
  return value;
}

const throws = (error: unknown) => ({
  toJSON() {
    throw error;
  },
});
const hostile = new Error("x");
Object.defineProperty(hostile, "message", {
  get() {
    throw new Error("no message for you");
  },
});

/** What must be refused, and a word of the reason. */
const POISON: readonly [name: string, value: unknown, reason: RegExp][] = [
  ["NUL in a text", "a\u0000b", /NUL/],
  ["NUL in a key", { "a\u0000": 1 }, /NUL/],
  ["NUL after something that looks like one", ["\\u0000", "\u0000"], /NUL/],
  ["NUL after a backslash", "\\\u0000", /NUL/],
  ["a lone high surrogate", "a\ud800", /surrogate/],
  ["a lone low surrogate", "\udc00a", /surrogate/],
  ["surrogates the wrong way round", "\udc00\ud800", /surrogate/],
  ["a lone surrogate in a key", { "\udfff": 1 }, /surrogate/],
  ["a lone surrogate deep down", { a: [{ b: "x\ud83d" }] }, /surrogate/],
  ["a BigInt", 5n, /BigInt/],
  ["a BigInt inside", { a: [1, 5n] }, /BigInt/],
  ["a boxed BigInt", { a: Object(5n) }, /BigInt/],
  ["NaN", Number.NaN, /NaN/],
  ["NaN inside", [Number.NaN], /NaN/],
  ["infinity", { a: Number.NEGATIVE_INFINITY }, /Infinity/],
  ["a function", () => 1, /function/],
  ["a function inside", { a: () => 1 }, /function/],
  ["a symbol", Symbol("a"), /symbol/],
  ["a symbol inside", [Symbol("a")], /symbol/],
  ["a class", class A {}, /function/],
  ["a circle", circular, /circular/],
  ["a thing a hundred thousand levels deep", deep(100_000), /./],
  ["a toJSON that throws", throws(new Error("not today")), /not today/],
  ["a toJSON that throws null", throws(null), /./],
  ["a toJSON that throws something hostile", throws(hostile), /./],
  ["a toJSON that throws an error without words", throws(new Error("")), /it throws/],
  ["a toJSON that answers nothing", { toJSON: () => undefined }, /./],
  [
    "a getter that throws",
    {
      get a() {
        throw new Error("keep out");
      },
    },
    /keep out/,
  ],
  ["a map", new Map([[1, 2]]), /Map/],
  ["a set inside", { a: new Set([1]) }, /Set/],
];

describe("encode", () => {
  it.each(POISON)("refuses %s", (_name, value, reason) => {
    const encoded = encode(value);
    expect(encoded.ok).toBe(false);
    if (!encoded.ok) {
      expect(encoded.reason).toMatch(reason);
      expect(encoded.reason).not.toContain("\n");
    }
  });

  it.each([
    ["nothing", undefined, "null"],
    ["null", null, "null"],
    ["a text that looks like an escape", "\\u0000 \\ud800", '"\\\\u0000 \\\\ud800"'],
    ["many texts that look like escapes", ["\\u0000", "\\\\u0000"], '["\\\\u0000","\\\\\\\\u0000"]'],
    ["a whole surrogate pair", "😀", '"😀"'],
    ["control characters other than NUL", "\u0001\u001f\u007f", '"\\u0001\\u001f\u007f"'],
    ["line separators", "\u2028\u2029", '"\u2028\u2029"'],
    ["a date", new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ["missing parts", { a: undefined, b: [undefined] }, '{"b":[null]}'],
    ["a thing a thousand levels deep", deep(1_000), `${"[".repeat(1_000)}1${"]".repeat(1_000)}`],
    ["the edge of numbers", [1e308, -0, 5e-324, Number.MAX_SAFE_INTEGER], "[1e+308,0,5e-324,9007199254740991]"],
  ])("takes %s", (_name, value, text) => {
    expect(encode(value)).toEqual({ ok: true, text });
  });

  it("keeps __proto__ as a key like any other, and pollutes nothing", () => {
    const encoded = encode(JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":1}}'));
    expect(encoded).toEqual({ ok: true, text: '{"__proto__":{"admin":true},"constructor":{"prototype":1}}' });
    const back = decode('{"__proto__":{"admin":true}}') as Record<string, unknown>;
    expect(Object.hasOwn(back, "__proto__")).toBe(true);
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
    expect(back.admin).toBeUndefined();
  });

  it("reads back what it wrote, or refuses it", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }), (value) => {
        const encoded = encode(value);
        const text = JSON.stringify(value);
        const unstorable = holds(value, (part) => part.includes("\u0000") || !part.isWellFormed());
        expect(encoded).toEqual(unstorable ? { ok: false, reason: expect.any(String) } : { ok: true, text });
        if (encoded.ok) expect(JSON.stringify(decode(encoded.text))).toBe(text);
      }),
    );
  });
});

/** Whether any text in a JSON value, keys included, is of that kind: a slow and simple oracle. */
function holds(value: unknown, kind: (text: string) => boolean): boolean {
  if (typeof value === "string") return kind(value);
  if (Array.isArray(value)) return value.some((part) => holds(part, kind));
  if (typeof value === "object" && value !== null) return Object.entries(value).some(([key, part]) => kind(key) || holds(part, kind));
  return false;
}
