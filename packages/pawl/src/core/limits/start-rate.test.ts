import { describe, expect, test } from "vitest";
import type { Priority } from "../jobs/job.js";
import { addStarts, laneShareOfStarts, START_RATE_FORGOTTEN_MS, type StartRate, startsPerMs, type TenantRates } from "./start-rate.js";

/** Starts at a steady rate, told once per `every` ms. */
function steady(perSecond: number, ms: number, every = 1_000, pace?: StartRate): StartRate {
  let now = pace?.at ?? 0;
  let after = pace;
  for (const end = now + ms; now < end; ) {
    now += every;
    after = addStarts(after, (perSecond * every) / 1_000, now);
  }
  return after as StartRate;
}

const perSecond = (pace: StartRate, later = 0) => (startsPerMs(pace, pace.at + later) ?? Number.NaN) * 1_000;

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
    expect(startsPerMs(addStarts(undefined, 1, 0), 0)).toBeUndefined();
    const pace = steady(10, 60_000);
    expect(startsPerMs(pace, pace.at + 1_000)).toBeDefined();
    expect(startsPerMs(pace, pace.at + 3_600_000)).toBeUndefined();
  });

  test("begins anew after a rest, and is not held down by it", () => {
    const rested: StartRate = steady(10, 60_000);
    const again = addStarts(rested, 100, rested.at + START_RATE_FORGOTTEN_MS + 1);
    expect(again).toEqual({ starts: 100, at: rested.at + START_RATE_FORGOTTEN_MS + 1, since: rested.at + START_RATE_FORGOTTEN_MS + 1 - 1_000 });
    expect(perSecond(steady(100, 5_000, 1_000, again)) / 100).toBeCloseTo(1, 1);
  });

  test("does not mind a clock that went back", () => {
    const pace = addStarts({ starts: 10, at: 5_000, since: 0 }, 10, 4_000);
    expect(pace).toEqual({ starts: 20, at: 5_000, since: 0 });
  });
});

describe("a lane's part of it", () => {
  const lane = (tenant: string, priority: Priority = 5) => ({ queue: "q", priority, tenant, task: "t" });
  const one: TenantRates = { weightOf: () => 1, tookOf: () => undefined };

  test("is all where it is alone", () => {
    expect(laneShareOfStarts(lane("a"), [], {}, one)).toBe(1);
  });

  test("is by the weights of the tenants of its priority, and of the priorities", () => {
    expect(laneShareOfStarts(lane("a"), [lane("b"), lane("c")], {}, one)).toBeCloseTo(1 / 3);
    expect(laneShareOfStarts(lane("a"), [lane("b")], {}, { ...one, weightOf: (tenant) => (tenant === "a" ? 3 : 1) })).toBeCloseTo(0.75);
    expect(laneShareOfStarts(lane("a"), [lane("a", 9)], { priorityWeights: { 5: 1, 9: 3 } }, one)).toBeCloseTo(0.25);
    expect(laneShareOfStarts(lane("a"), [lane("b"), lane("a", 9)], { priorityWeights: { 5: 1, 9: 1 } }, one)).toBeCloseTo(0.25);
  });

  test("is less the longer its jobs take beside others, and those nobody knows of take as long as the rest", () => {
    const took = new Map([
      ["short", 10],
      ["long", 90],
    ]);
    const tenants: TenantRates = { ...one, tookOf: (tenant) => took.get(tenant) };
    expect(laneShareOfStarts(lane("long"), [lane("short")], {}, tenants)).toBeCloseTo(0.1);
    expect(laneShareOfStarts(lane("short"), [lane("long")], {}, tenants)).toBeCloseTo(0.9);
    expect(laneShareOfStarts(lane("new"), [lane("short"), lane("long")], {}, tenants)).toBeCloseTo(1 / 50 / (1 / 10 + 1 / 90 + 1 / 50));
    expect(laneShareOfStarts(lane("long"), [lane("short", 9)], { priorityWeights: { 5: 1, 9: 1 } }, tenants)).toBeCloseTo(0.1);
  });

  test("is nothing behind a more urgent priority of a strict queue", () => {
    expect(laneShareOfStarts(lane("a"), [lane("b", 9)], { strictPriority: true }, one)).toBe(0);
    expect(laneShareOfStarts(lane("a", 9), [lane("b")], { strictPriority: true }, one)).toBe(1);
  });
});
