import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { milliseconds } from "./duration.js";

describe("milliseconds", () => {
  it.each([
    [0, 0],
    [250, 250],
    [1.6, 2],
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["24h", 86_400_000],
    ["7d", 604_800_000],
    ["2w", 1_209_600_000],
    ["1h30m", 5_400_000],
    ["1m5s", 65_000],
    ["1.5h", 5_400_000],
    ["0s", 0],
  ])("reads %s as %d", (duration, ms) => {
    expect(milliseconds(duration)).toBe(ms);
  });

  it.each([
    "",
    " ",
    "5",
    "m",
    "5 m",
    "-5m",
    "5M",
    "1h30",
    "h1",
    "1e3s",
    "soon",
    "5m ",
    "1..5s",
    ".5s",
    "٥m",
    "1m\n",
    `${"1s".repeat(40)}`,
    "200y",
    "36600d",
  ])("refuses %j", (duration) => {
    expect(() => milliseconds(duration)).toThrow(expect.objectContaining({ code: "duration_invalid" }));
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e15, null, undefined, {}, [], true, 5n])("refuses %o", (duration) => {
    expect(() => milliseconds(duration as number)).toThrow(expect.objectContaining({ code: "duration_invalid" }));
  });

  it("adds up its parts", () => {
    fc.assert(
      fc.property(fc.nat({ max: 99 }), fc.nat({ max: 99 }), fc.nat({ max: 99 }), (h, m, s) => {
        expect(milliseconds(`${h}h${m}m${s}s`)).toBe(((h * 60 + m) * 60 + s) * 1_000);
      }),
    );
  });
});
