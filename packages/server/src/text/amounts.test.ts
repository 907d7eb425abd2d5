import { expect, test } from "vitest";
import { duration, fromNow } from "./amounts.js";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1.0 s"],
  [12_400, "12 s"],
  [60_000, "1 min"],
  [7_199_000, "120 min"],
  [7_200_000, "2 h"],
  [172_800_000, "2 d"],
])("%i ms are %s", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test("what is to come and what is past are told apart", () => {
  const now = new Date(0);
  expect([fromNow(new Date(5_000), now), fromNow(new Date(-5_000), now)]).toEqual(["in 5.0 s", "5.0 s ago"]);
});
