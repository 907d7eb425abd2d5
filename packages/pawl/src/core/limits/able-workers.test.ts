import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Lane } from "../jobs/lane.js";
import { type AbleWorkers, ableWorkersOf, startOf } from "./able-workers.js";
import type { Serves } from "./capacity.js";
import { type Durations, type RunningHandler, type SlotNumbers, slotUse } from "./slot-use.js";

const NOW = Date.UTC(2030, 0, 1);
const LANE: Lane = { queue: "mail", priority: 5, tenant: "acme", task: "send" };
const SECOND = 1_000;

const serves = (more: Partial<Serves> = {}): Serves => ({
  tasks: ["send"],
  provides: { capabilities: [], resources: {} },
  concurrency: { total: 2 },
  ...more,
});
const handler = (ranFor: number, more: Partial<RunningHandler> = {}): RunningHandler => ({
  task: "send",
  since: NOW - ranFor,
  ranFor,
  ...more,
});
const TOOK = { took: 10 * SECOND, longest: 12 * SECOND };
const slotUseOf = (
  running: readonly RunningHandler[],
  more: Partial<Pick<SlotNumbers, "total" | "free" | "overruns">> & { readonly durations?: Readonly<Record<string, Durations>> } = {},
) => {
  const { total = 2, free = total - running.length, overruns = [], durations = { send: TOOK } } = more;
  return slotUse({ total, free, draining: false, stuck: false, shut: [], running, overruns, durations: new Map(Object.entries(durations)) });
};

describe("what a worker says of its slots", () => {
  it("is how many are in use, by which tasks and since when, and when they should be free", () => {
    const durations = { send: TOOK, scan: { took: 20 * SECOND, longest: 20 * SECOND }, rare: TOOK };
    expect(slotUseOf([handler(4 * SECOND), handler(SECOND, { task: "scan" })], { total: 3, durations })).toEqual({
      total: 3,
      inUse: 2,
      overrun: 0,
      tasks: [
        { task: "send", running: 1, since: NOW - 4 * SECOND, ...TOOK },
        { task: "scan", running: 1, since: NOW - SECOND, took: 20 * SECOND, longest: 20 * SECOND },
        { task: "rare", running: 0, ...TOOK },
      ],
      ends: [NOW + 6 * SECOND, NOW + 19 * SECOND],
    });
  });

  it("gives a handler that is late as much again as it is late", () => {
    expect(slotUseOf([handler(25 * SECOND)]).ends).toEqual([NOW + 15 * SECOND]);
  });

  it("does not say when a handler ends of whose task none has ended, nor an overrun that keeps a slot", () => {
    const overruns = [
      { ...handler(400 * SECOND), overdue: NOW - 100 * SECOND },
      { ...handler(350 * SECOND), overdue: NOW - 50 * SECOND },
    ];
    const use = slotUseOf([handler(SECOND, { task: "new" }), handler(SECOND)], { total: 3, free: 0, overruns });
    expect(use.ends).toEqual([NOW + 9 * SECOND, null, null]);
    expect(use).toMatchObject({
      inUse: 3,
      overrun: 2,
      tasks: [{ running: 1, overrun: 2, overdue: NOW - 100 * SECOND, since: NOW - 400 * SECOND }, { task: "new" }],
    });
  });

  it("stays short, however many slots and tasks there are", () => {
    const many = Array.from({ length: 5_000 }, (_, n) => handler(n, { task: `t${n % 500}` }));
    const durations = Object.fromEntries(many.map(({ task }) => [task, TOOK]));
    const use = slotUseOf(many, { total: 5_000, durations });
    expect(use.tasks).toHaveLength(20);
    expect(use.ends).toHaveLength(32);
    expect([use.ends[0], use.ends.at(-1)], "the first and the last among them").toEqual([NOW + 10 * SECOND - 4_999, NOW + 10 * SECOND]);
    expect(JSON.stringify(use).length).toBeLessThan(3_000);
  });
});

describe("the workers of a lane", () => {
  it("are those that can run it, taken together", () => {
    const workers = [
      serves({ slots: slotUseOf([handler(3 * SECOND)]) }),
      serves({ slots: slotUseOf([handler(5 * SECOND), handler(5 * SECOND)]) }),
      serves({ tasks: ["scan"], slots: slotUseOf([], { total: 100 }) }),
    ];
    expect(ableWorkersOf(LANE, {}, workers)).toMatchObject({ workers: 2, slots: 4, free: 1, oldest: NOW - 5 * SECOND, took: 10 * SECOND });
  });

  it("count only where a slot is of use to it", () => {
    const shut = { ...slotUseOf([handler(SECOND)], { total: 8 }), shut: [LANE] };
    expect(ableWorkersOf(LANE, {}, [serves({ slots: shut })])).toMatchObject({ workers: 0, shut: 1, slots: 0, free: 0, ends: [] });
    expect(ableWorkersOf({ ...LANE, tenant: "other" }, {}, [serves({ slots: shut })])).toMatchObject({ workers: 1, shut: 0, slots: 8, free: 7 });
  });

  it("are not judged where one of them does not say how full it is", () => {
    expect(ableWorkersOf(LANE, {}, [serves({ slots: slotUseOf([]) }), serves()])).toBeUndefined();
    expect(ableWorkersOf(LANE, {}, [])).toBeUndefined();
  });
});

describe("the start of a job by the slots", () => {
  const ableWorkers = (free: number, ends: readonly (number | null)[], took?: number): Pick<AbleWorkers, "free" | "ends" | "took"> => ({
    free,
    ends: ends.map((at) => ({ at: at === null ? null : NOW + at, slots: 1 })),
    ...(took === undefined ? {} : { took }),
  });

  it("is now where a slot is free, and else when the first one is", () => {
    expect(startOf(ableWorkers(1, [50 * SECOND]), 0, NOW)).toBe(NOW);
    expect(startOf(ableWorkers(0, [50 * SECOND, 9 * SECOND, null]), 0, NOW)).toBe(NOW + 9 * SECOND);
    expect(startOf(ableWorkers(0, [null, null], 5), 0, NOW)).toBeUndefined();
  });

  it("is not foreseen beyond the first round where nobody knows how long its task takes", () => {
    expect(startOf(ableWorkers(1, [SECOND]), 1, NOW)).toBe(NOW + SECOND);
    expect(startOf(ableWorkers(1, [SECOND]), 2, NOW)).toBeUndefined();
  });

  it("is in the next round where a slot should have been free before", () => {
    expect(startOf(ableWorkers(0, [-3 * SECOND], 10 * SECOND), 0, NOW)).toBe(NOW + 7 * SECOND);
  });

  it("is what comes out when the slots are played through one by one, to a hundredth", () => {
    const situations = fc.record({
      free: fc.nat({ max: 3 }),
      ends: fc.array(fc.nat({ max: 100_000 }), { minLength: 1, maxLength: 20 }),
      took: fc.integer({ min: 1, max: 60_000 }),
      ahead: fc.nat({ max: 300 }),
    });
    fc.assert(
      fc.property(situations, ({ free, ends, took, ahead }) => {
        const slots = [...Array.from({ length: free }, () => 0), ...ends];
        let start = 0;
        for (let n = 0; n <= ahead; n++) {
          const next = slots.indexOf(Math.min(...slots));
          start = slots[next] as number;
          slots[next] = start + took;
        }
        const found = (startOf(ableWorkers(free, ends, took), ahead, NOW) as number) - NOW;
        expect(Math.abs(found - start)).toBeLessThanOrEqual(2 + 0.02 * start);
      }),
    );
  });
});
