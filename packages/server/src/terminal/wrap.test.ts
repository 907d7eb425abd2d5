import { expect, test } from "vitest";
import { wrap } from "./wrap.js";

test("text is broken between words, a word too long where it must be, and nothing of it is lost", () => {
  expect(wrap("one two three", 8)).toEqual(["one two", "three"]);
  expect(wrap("abcdefghijkl", 5)).toEqual(["abcde", "fghij", "kl"]);
  expect(wrap("a\nb\r\nc", 5)).toEqual(["a", "b", "c"]);
  expect(wrap("", 5)).toEqual([""]);
  expect(wrap("\u001b[2Jgone", 20)).toEqual([" [2Jgone"]);
});
