import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Lane } from "../../core/jobs/lane.js";
import type { Needs } from "../../core/limits/capacity.js";
import { Capacity } from "./capacity.js";
import { WorkerLimits } from "./worker-limits.js";

const PATIENCE = 5_000;
const lane = (task: string): Lane => ({ queue: "default", priority: 5, tenant: "acme", task });

function capacity(
  needs: Readonly<Record<string, Needs>>,
  resources: Readonly<Record<string, number>> = { memory: 8 },
  capabilities: readonly string[] = [],
) {
  const time = { now: 0 };
  return {
    time,
    limit: new Capacity({ has: { capabilities, resources }, needs: new Map(Object.entries(needs)), now: () => time.now, patience: PATIENCE }),
  };
}

const SMALL: Needs = { resources: { memory: 1 } };
const LARGE: Needs = { resources: { memory: 6 } };

describe("room", () => {
  test("what a task needs is taken from what is there, and given back", () => {
    const { limit } = capacity({ small: SMALL, half: { resources: { memory: 0.5 } } });
    expect([limit.room(lane("small")), limit.room(lane("half")), limit.room(lane("none"))]).toEqual([8, 16, Number.POSITIVE_INFINITY]);
    limit.take(lane("small"), 5);
    limit.take(lane("none"), 100);
    expect([limit.room(lane("small")), limit.room(lane("half")), limit.used.memory]).toEqual([3, 6, 5]);
    limit.take(lane("small"), -5);
    expect(limit.used.memory).toBe(0);
  });

  test("parts add up exactly", () => {
    const { limit } = capacity({ tenth: { resources: { cpu: 0.1 } } }, { cpu: 0.3 });
    for (let n = 0; n < 3; n++) {
      expect(limit.room(lane("tenth"))).toBe(3 - n);
      limit.take(lane("tenth"), 1);
    }
    expect(limit.room(lane("tenth"))).toBe(0);
    limit.take(lane("tenth"), -3);
    expect(limit.room(lane("tenth"))).toBe(3);
  });

  test("a task that needs a capability or a resource the worker has not got is never served", () => {
    const { limit } = capacity(
      { gpu: { capabilities: ["gpu"] }, eu: { capabilities: ["eu"] }, huge: { resources: { memory: 9 } }, disk: { resources: { disk: 1 } } },
      { memory: 8 },
      ["eu"],
    );
    expect(["gpu", "eu", "huge", "disk", "none"].filter((task) => limit.serves(lane(task)))).toEqual(["eu", "none"]);
    expect(["gpu", "eu", "huge", "disk"].map((task) => limit.room(lane(task)))).toEqual([0, Number.POSITIVE_INFINITY, 0, 0]);
  });

  test("lanes of one claim share what is there", () => {
    const { limit } = capacity({ small: SMALL, large: LARGE });
    const limits = new WorkerLimits([limit]);
    const reserved = ["small", "large", "none"].map((task) => [task, limits.reserve(lane(task), 5)] as const);
    expect(reserved).toEqual([
      ["small", 5],
      ["large", 0],
      ["none", 5],
    ]);
    for (const [task, jobs] of reserved) limits.unreserve(lane(task), jobs);
    expect(limit.used.memory).toBe(0);
  });

  test("it is given back when the handler has ended", () => {
    const { limit } = capacity({ small: SMALL });
    const limits = new WorkerLimits([limit]);
    limits.addJobs(lane("small"));
    expect(limit.used.memory).toBe(1);
    limits.removeJobs(lane("small"));
    expect(limit.used.memory).toBe(0);
  });

  test("a suspect may be of any task that has room, and takes what the greediest needs", () => {
    const { limit } = capacity({ small: SMALL, large: LARGE });
    limit.take(lane("small"), 1);
    expect(limit.admits(["small", "large", "none"])).toEqual(["small", "large", "none"]);
    limit.takeAny(["small", "large", "none"], 1);
    expect(limit.used.memory).toBe(7);
    expect(limit.admits(["small", "large", "none"])).toEqual(["small", "none"]);
    limit.takeAny(["small", "large", "none"], -1);
    expect(limit.used.memory).toBe(1);
  });
});

describe("a large task beside a stream of small ones", () => {
  /** Small jobs of 1 s each, one started every 125 ms: the memory is full. Answers how long the large one, which comes then, waits. */
  function waitOfLarge(patience: number): number | undefined {
    const comesAt = 2_000;
    const time = { now: 0 };
    const limit = new Capacity({
      has: { capabilities: [], resources: { memory: 8 } },
      needs: new Map([
        ["small", SMALL],
        ["large", LARGE],
      ]),
      now: () => time.now,
      patience,
    });
    const ends: number[] = [];
    for (; time.now < 60_000; time.now += 125) {
      while (ends.length > 0 && (ends[0] as number) <= time.now) {
        ends.shift();
        limit.take(lane("small"), -1);
      }
      if (time.now >= comesAt && limit.room(lane("large")) > 0) return time.now - comesAt;
      if (limit.room(lane("small")) > 0) {
        limit.take(lane("small"), 1);
        ends.push(time.now + 1_000);
      }
      limit.refreshed([lane("small"), lane("large")]);
    }
    return undefined;
  }

  test("starts within the patience and the longest of what runs by then", () => {
    expect(waitOfLarge(PATIENCE)).toBeLessThanOrEqual(PATIENCE + 1_000 + 500);
  });

  test("and would wait for ever if nothing were kept for it", () => {
    expect(waitOfLarge(Number.POSITIVE_INFINITY)).toBeUndefined();
  });

  test("small ones go on beside what is kept, where there is room for both", () => {
    const { limit, time } = capacity({ small: SMALL, large: LARGE }, { memory: 10 });
    limit.take(lane("small"), 6);
    expect(limit.room(lane("large"))).toBe(0);
    time.now = PATIENCE;
    expect([limit.room(lane("large")), limit.room(lane("small"))]).toEqual([0, 0]);
    limit.take(lane("small"), -4);
    expect([limit.room(lane("large")), limit.room(lane("small"))]).toEqual([1, 2]);
    limit.take(lane("large"), 1);
    expect(limit.room(lane("small")), "it has started: what is left is free again").toBe(2);
  });

  test("nothing is kept any more when others have taken its jobs", () => {
    const { limit, time } = capacity({ small: SMALL, large: LARGE });
    limit.take(lane("small"), 4);
    expect(limit.room(lane("large"))).toBe(0);
    time.now = PATIENCE;
    expect(limit.room(lane("small"))).toBe(0);
    limit.refreshed([lane("small")]);
    expect(limit.room(lane("small"))).toBe(4);
  });

  test("of two that wait, the one that has waited longer is first, then the other", () => {
    const { limit, time } = capacity({ small: SMALL, large: LARGE, other: { resources: { memory: 8 } } });
    limit.take(lane("small"), 8);
    expect(limit.room(lane("other"))).toBe(0);
    time.now = 1;
    expect(limit.room(lane("large"))).toBe(0);
    time.now = PATIENCE + 1;
    limit.take(lane("small"), -7);
    expect([limit.room(lane("large")), limit.room(lane("other"))]).toEqual([0, 0]);
    limit.take(lane("small"), -1);
    expect(limit.room(lane("other"))).toBe(1);
    limit.take(lane("other"), 1);
    limit.take(lane("other"), -1);
    expect([limit.room(lane("large")), limit.room(lane("small"))]).toEqual([1, 2]);
  });
});

test("whatever is claimed and ends: never more is used than there is, and at the end nothing", () => {
  const needs = { small: SMALL, large: LARGE, mixed: { resources: { memory: 2.5, cpu: 1 } } };
  const tasks = ["small", "large", "mixed", "none"] as const;
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...tasks), fc.integer({ min: 1, max: 9 }), fc.nat(3_000)), { maxLength: 80 }), (steps) => {
      const { limit, time } = capacity(needs, { memory: 8, cpu: 3 });
      const limits = new WorkerLimits([limit]);
      const running: Lane[] = [];
      for (const [task, count, later] of steps) {
        time.now += later;
        const of = lane(task);
        const reserved = limits.reserve(of, count);
        limits.unreserve(of, reserved);
        for (let n = 0; n < reserved; n++) {
          limits.addJobs(of);
          running.push(of);
        }
        expect(limit.used.memory).toBeLessThanOrEqual(8);
        expect(limit.used.cpu).toBeLessThanOrEqual(3);
        if (count % 2 === 0) for (const of of running.splice(0, count)) limits.removeJobs(of);
      }
      for (const of of running) limits.removeJobs(of);
      expect(limit.used).toEqual({ memory: 0, cpu: 0 });
    }),
    { numRuns: 300 },
  );
});
