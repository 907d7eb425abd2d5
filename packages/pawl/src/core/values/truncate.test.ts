import fc from "fast-check";
import { expect, test } from "vitest";
import { cut, cutJson } from "./truncate.js";

test("a text within its bound stays as it is", () => {
  expect(cut("hello", 5)).toBe("hello");
  expect(cutJson('{"a":1}', 7)).toBe('{"a":1}');
});

test("a text that is cut says how much of it is missing", () => {
  expect(cut("x".repeat(5_000), 100)).toMatch(/^x{60,}… \(49\d\d more characters were cut\)$/);
  expect(JSON.parse(cutJson(JSON.stringify({ text: "x".repeat(5_000) }), 100))).toMatch(/^\{"text":"x+… \(49\d\d more characters were cut\)$/);
});

test("whatever is cut fits its bound, can be stored, and is cut no further the next time", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 2_000 }), fc.integer({ min: 60, max: 500 }), (text, most) => {
      const short = cut(text, most);
      expect(short.length).toBeLessThanOrEqual(most);
      expect(short.isWellFormed() && !short.includes("\u0000")).toBe(true);
      expect(cut(short, most)).toBe(short);
      const json = cutJson(JSON.stringify({ text }), most);
      expect(Buffer.byteLength(json)).toBeLessThanOrEqual(most);
      expect(cutJson(json, most)).toBe(json);
      JSON.parse(json);
    }),
  );
});

test("what is cut of JSON is little more than what does not fit, also of quotes and other alphabets", () => {
  for (const unit of ["x", '"', "ж", "漢", "😀"]) {
    const json = cutJson(JSON.stringify(unit.repeat(20_000)), 10_000);
    expect(Buffer.byteLength(json), unit).toBeGreaterThan(5_000);
  }
});
