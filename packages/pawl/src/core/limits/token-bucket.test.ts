import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPawlError } from "../values/error.js";
import { checkRate, type Rate, spend, tokens, tokensIn } from "./token-bucket.js";

const START = Date.UTC(2026, 0, 15, 12);
const DAY = 86_400_000;

describe("a rate", () => {
  it("lets a burst go at once, and then one per interval", () => {
    const rate = checkRate("rate", { limit: 10, per: "1s", burst: 3 });
    let tat: number | undefined;
    expect(tokens(rate, tat, START)).toBe(3);
    tat = spend(rate, tat, START, 3);
    expect(tokens(rate, tat, START)).toBe(0);
    expect(tokensIn(rate, tat, START, 1)).toBeCloseTo(100);
    expect(tokensIn(rate, tat, START, 2)).toBeCloseTo(200);
    expect(tokens(rate, tat, START + 100)).toBe(1);
    expect(tokens(rate, tat, START + 3_600_000), "nothing is saved beyond the burst").toBe(3);
    expect(tokensIn(rate, tat, START, 4), "more than there ever are").toBe(Number.POSITIVE_INFINITY);
  });

  it("has a burst of one period unless it says otherwise", () => {
    expect(checkRate("rate", { limit: 100, per: "1m" })).toEqual({ limit: 100, per: 60_000, burst: 100 });
  });

  it("can be a text: so many per time", () => {
    expect(checkRate("rate", "100/5m")).toEqual({ limit: 100, per: 300_000, burst: 100 });
    expect(checkRate("rate", "10/s")).toEqual({ limit: 10, per: 1_000, burst: 10 });
    expect(checkRate("rate", "1/1h30m")).toEqual({ limit: 1, per: 5_400_000, burst: 1 });
  });

  it.each([
    "",
    "10",
    "10/",
    "/s",
    "0/s",
    "10/0s",
    "-1/s",
    "1.5/s",
    "10 / s",
    "10/s ",
    "10/fortnight",
    "10/-5m",
    "99999999999/s",
    "9999999999/s",
    "10/s/s",
  ])("is refused as the text %j, with a text that is right", (text) => {
    expect(() => checkRate("rate", text)).toThrow(expect.objectContaining({ code: "option_invalid", message: expect.stringContaining("100/5m") }));
  });

  it("that is slow is early by no more than a clock can tell", () => {
    const rate: Rate = { limit: 1, per: DAY, burst: 1 };
    const tat = spend(rate, undefined, START, 1);
    expect(tokens(rate, tat, START + DAY - 1)).toBe(0);
    expect(tokensIn(rate, tat, START + DAY - 1, 1)).toBe(1);
    expect(tokens(rate, tat, START + DAY)).toBe(1);
  });

  it("that is fast has a token when it is said to be there, though instants are hardly finer than it", () => {
    const rate: Rate = { limit: 116, per: 5, burst: 13 };
    const tat = spend(rate, spend(rate, undefined, START, 10), START, 3);
    expect(tokens(rate, tat, START + tokensIn(rate, tat, START, 1))).toBeGreaterThanOrEqual(1);
  });

  it("that is fast lets a burst go and no more, also one by one", () => {
    const rate: Rate = { limit: 500, per: 1, burst: 1_000 };
    let tat: number | undefined;
    let count = 0;
    for (; tokens(rate, tat, START) > 0; count++) tat = spend(rate, tat, START, 1);
    expect(count).toBeLessThanOrEqual(rate.burst);
    expect(tokens(rate, tat, START + DAY), "nothing is saved beyond the burst").toBe(rate.burst);
  });

  it("never lets more go, in any time, than its burst and what comes in that time", () => {
    const rates: fc.Arbitrary<Rate> = fc.record({
      limit: fc.integer({ min: 1, max: 1_000 }),
      per: fc.oneof(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 1, max: 10 }), fc.constant(DAY)),
      burst: fc.integer({ min: 1, max: 50 }),
    });
    const asks = fc.array(fc.record({ after: fc.integer({ min: 0, max: 2_000 }), count: fc.integer({ min: 1, max: 60 }) }), { maxLength: 60 });
    fc.assert(
      fc.property(rates, asks, (rate, all) => {
        let now = START;
        let tat: number | undefined;
        const spent: { at: number; count: number }[] = [];
        for (const { after, count } of all) {
          now += after;
          const take = Math.min(count, tokens(rate, tat, now));
          if (take > 0) tat = spend(rate, tat, now, take);
          spent.push({ at: now, count: take });
          if (take < count && count <= rate.burst) {
            const wait = tokensIn(rate, tat, now, 1);
            if (wait > 0) expect(tokens(rate, tat, now + wait), "it is there when it is said to be").toBeGreaterThanOrEqual(1);
          }
        }
        spent.forEach((first, from) => {
          let sum = 0;
          for (const { at, count } of spent.slice(from)) {
            sum += count;
            // A microsecond early, and what a number of ms leaves of one.
            expect(sum).toBeLessThanOrEqual(rate.burst + ((at - first.at + 0.0015) * rate.limit) / rate.per);
          }
        });
      }),
    );
  });

  it.each([
    [undefined, /rate.*not an object/],
    [{ limit: 0, per: "1s" }, /rate\.limit.*0/],
    [{ limit: 1.5, per: "1s" }, /rate\.limit/],
    [{ limit: Number.NaN, per: "1s" }, /rate\.limit/],
    [{ limit: 1, per: 0 }, /rate\.per/],
    [{ limit: 1, per: "soon" }, /rate\.per/],
    [{ limit: 1 }, /rate\.per/],
    [{ limit: 1, per: "1s", burst: 0 }, /rate\.burst/],
    [{ limit: 1, per: "1s", brust: 2 }, /rate\.brust.*did you mean burst/],
  ])("refuses %j", (given, text) => {
    const refused = () => checkRate("rate", given);
    expect(refused).toThrow(text);
    try {
      refused();
    } catch (error) {
      expect(isPawlError(error)).toBe(true);
    }
  });
});
