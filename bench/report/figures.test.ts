import { expect, test } from "vitest";
import { formatted, headOf, short } from "./figures.js";

test("a number is shown with three digits, and thousands and millions by letter", () => {
  expect([0, 0.5, 1.234, 12.345, 999.4, 1_234, 12_345, 103_123, 999_600, 10_000_000].map(short)).toEqual([
    "0",
    "0.5",
    "1.23",
    "12.3",
    "999",
    "1,234",
    "12.3k",
    "103k",
    "1M",
    "10M",
  ]);
});

test("a very small number keeps what it has", () => {
  expect(short(0.0012)).toBe("0.0012");
});

test("the end of a figure's name says its unit", () => {
  expect(formatted("perSecond", 103_123)).toBe("103k/s");
  expect(formatted("singlePerSecond", 2_100)).toBe("2,100/s");
  expect(formatted("p99Ms", 12.345)).toBe("12.3 ms");
  expect(formatted("walKB", 0.77)).toBe("0.77 KB");
  expect(formatted("ratio", 3.683)).toBe("3.68 ×");
  expect(formatted("errors", 0)).toBe("0");
});

test("a column's head is the figure's name without its unit", () => {
  expect(["perSecond", "singlePerSecond", "claimP99Ms", "p999Ms", "walKB", "inFlight64PerSecond"].map(headOf)).toEqual([
    "per second",
    "single",
    "claim p99",
    "p99.9",
    "wal",
    "in flight 64",
  ]);
});
