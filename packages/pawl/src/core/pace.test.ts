import { describe, expect, test } from "vitest";
import type { Priority } from "./job.js";
import { PACE_FORGOTTEN, type Pace, paced, partOf, startsPerMs, type Tenants } from "./pace.js";

/** Starts at a steady rate, told once per `every` ms. */
function steady(perSecond: number, ms: number, every = 1_000, pace?: Pace): Pace {
  let now = pace?.at ?? 0;
  let after = pace;
  for (const end = now + ms; now < end; ) {
    now += every;
    after = paced(after, (perSecond * every) / 1_000, now);
  }
  return after as Pace;
}

const perSecond = (pace: Pace, later = 0) => (startsPerMs(pace, pace.at + later) ?? Number.NaN) * 1_000;

describe("the pace of a queue", () => {
  test.each([2_000, 10_000, 60_000, 600_000])("is right within a few percent after %i ms of steady starts", (ms) => {
    for (const rate of [10, 1_000]) expect(perSecond(steady(rate, ms)) / rate).toBeCloseTo(1, 1);
  });

  test("is right within a factor of two just before and just after a start that comes every 15 s", () => {
    const pace = steady(1 / 15, 600_000, 15_000);
    expect(perSecond(pace) * 15).toBeLessThan(2);
    expect(perSecond(pace, 14_999) * 15).toBeGreaterThan(0.5);
  });

  test("follows a change within a minute or so", () => {
    const faster = steady(100, 60_000, 1_000, steady(10, 300_000));
    expect(perSecond(faster) / 100).toBeGreaterThan(0.8);
    const slower = steady(10, 90_000, 1_000, steady(100, 300_000));
    expect(perSecond(slower) / 10).toBeLessThan(1.6);
  });

  test("is not known from one start, nor when the last ones are long ago", () => {
    expect(startsPerMs(paced(undefined, 1, 0), 0)).toBeUndefined();
    const pace = steady(10, 60_000);
    expect(startsPerMs(pace, pace.at + 1_000)).toBeDefined();
    expect(startsPerMs(pace, pace.at + 3_600_000)).toBeUndefined();
  });

  test("begins anew after a rest, and is not held down by it", () => {
    const rested: Pace = steady(10, 60_000);
    const again = paced(rested, 100, rested.at + PACE_FORGOTTEN + 1);
    expect(again).toEqual({ starts: 100, at: rested.at + PACE_FORGOTTEN + 1, since: rested.at + PACE_FORGOTTEN + 1 - 1_000 });
    expect(perSecond(steady(100, 5_000, 1_000, again)) / 100).toBeCloseTo(1, 1);
  });

  test("does not mind a clock that went back", () => {
    const pace = paced({ starts: 10, at: 5_000, since: 0 }, 10, 4_000);
    expect(pace).toEqual({ starts: 20, at: 5_000, since: 0 });
  });
});

describe("a lane's part of it", () => {
  const lane = (tenant: string, band: Priority = 5) => ({ queue: "q", band, tenant, task: "t" });
  const one: Tenants = { weightOf: () => 1, tookOf: () => undefined };

  test("is all where it is alone", () => {
    expect(partOf(lane("a"), [], {}, one)).toBe(1);
  });

  test("is by the weights of the tenants of its band, and of the bands", () => {
    expect(partOf(lane("a"), [lane("b"), lane("c")], {}, one)).toBeCloseTo(1 / 3);
    expect(partOf(lane("a"), [lane("b")], {}, { ...one, weightOf: (tenant) => (tenant === "a" ? 3 : 1) })).toBeCloseTo(0.75);
    expect(partOf(lane("a"), [lane("a", 9)], { weights: { 5: 1, 9: 3 } }, one)).toBeCloseTo(0.25);
    expect(partOf(lane("a"), [lane("b"), lane("a", 9)], { weights: { 5: 1, 9: 1 } }, one)).toBeCloseTo(0.25);
  });

  test("is less the longer its jobs take beside others, and those nobody knows of take as long as the rest", () => {
    const took = new Map([
      ["short", 10],
      ["long", 90],
    ]);
    const tenants: Tenants = { ...one, tookOf: (tenant) => took.get(tenant) };
    expect(partOf(lane("long"), [lane("short")], {}, tenants)).toBeCloseTo(0.1);
    expect(partOf(lane("short"), [lane("long")], {}, tenants)).toBeCloseTo(0.9);
    expect(partOf(lane("new"), [lane("short"), lane("long")], {}, tenants)).toBeCloseTo(1 / 50 / (1 / 10 + 1 / 90 + 1 / 50));
    expect(partOf(lane("long"), [lane("short", 9)], { weights: { 5: 1, 9: 1 } }, tenants)).toBeCloseTo(0.1);
  });

  test("is nothing behind a more urgent band of a strict queue", () => {
    expect(partOf(lane("a"), [lane("b", 9)], { strict: true }, one)).toBe(0);
    expect(partOf(lane("a", 9), [lane("b")], { strict: true }, one)).toBe(1);
  });
});
