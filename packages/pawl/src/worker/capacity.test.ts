import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Needs } from "../core/capacity.js";
import type { Lane } from "../core/lane.js";
import { Capacity } from "./capacity.js";
import { Caps } from "./caps.js";

const PATIENCE = 5_000;
const lane = (task: string): Lane => ({ queue: "default", band: 5, tenant: "acme", task });

function capacity(needs: Readonly<Record<string, Needs>>, amounts: Readonly<Record<string, number>> = { memory: 8 }, tags: readonly string[] = []) {
  const time = { now: 0 };
  return { time, cap: new Capacity({ has: { tags, amounts }, needs: new Map(Object.entries(needs)), now: () => time.now, patience: PATIENCE }) };
}

const SMALL: Needs = { amounts: { memory: 1 } };
const LARGE: Needs = { amounts: { memory: 6 } };

describe("room", () => {
  test("what a task needs is taken from what is there, and given back", () => {
    const { cap } = capacity({ small: SMALL, half: { amounts: { memory: 0.5 } } });
    expect([cap.room(lane("small")), cap.room(lane("half")), cap.room(lane("none"))]).toEqual([8, 16, Number.POSITIVE_INFINITY]);
    cap.take(lane("small"), 5);
    cap.take(lane("none"), 100);
    expect([cap.room(lane("small")), cap.room(lane("half")), cap.used.memory]).toEqual([3, 6, 5]);
    cap.take(lane("small"), -5);
    expect(cap.used.memory).toBe(0);
  });

  test("parts add up exactly", () => {
    const { cap } = capacity({ tenth: { amounts: { cpu: 0.1 } } }, { cpu: 0.3 });
    for (let n = 0; n < 3; n++) {
      expect(cap.room(lane("tenth"))).toBe(3 - n);
      cap.take(lane("tenth"), 1);
    }
    expect(cap.room(lane("tenth"))).toBe(0);
    cap.take(lane("tenth"), -3);
    expect(cap.room(lane("tenth"))).toBe(3);
  });

  test("a task whose tag or amount the worker has not got is never served", () => {
    const { cap } = capacity(
      { gpu: { tags: ["gpu"] }, eu: { tags: ["eu"] }, huge: { amounts: { memory: 9 } }, disk: { amounts: { disk: 1 } } },
      { memory: 8 },
      ["eu"],
    );
    expect(["gpu", "eu", "huge", "disk", "none"].filter((task) => cap.serves(lane(task)))).toEqual(["eu", "none"]);
    expect(["gpu", "eu", "huge", "disk"].map((task) => cap.room(lane(task)))).toEqual([0, Number.POSITIVE_INFINITY, 0, 0]);
  });

  test("lanes of one claim share what is there", () => {
    const { cap } = capacity({ small: SMALL, large: LARGE });
    const caps = new Caps([cap]);
    const granted = caps.reserve(["small", "large", "none"].map((task) => ({ lane: lane(task), quota: 5 })));
    expect(granted.map((one) => [one.lane.task, one.quota])).toEqual([
      ["small", 5],
      ["none", 5],
    ]);
    caps.unreserve(granted);
    expect(cap.used.memory).toBe(0);
  });

  test("it is given back when the handler has ended", () => {
    const { cap } = capacity({ small: SMALL });
    const caps = new Caps([cap]);
    caps.taken(lane("small"));
    expect(cap.used.memory).toBe(1);
    caps.ended(lane("small"));
    expect(cap.used.memory).toBe(0);
  });

  test("a suspect may be of any task that has room, and takes what the greediest needs", () => {
    const { cap } = capacity({ small: SMALL, large: LARGE });
    cap.take(lane("small"), 1);
    expect(cap.admits(["small", "large", "none"])).toEqual(["small", "large", "none"]);
    cap.takeAny(["small", "large", "none"], 1);
    expect(cap.used.memory).toBe(7);
    expect(cap.admits(["small", "large", "none"])).toEqual(["small", "none"]);
    cap.takeAny(["small", "large", "none"], -1);
    expect(cap.used.memory).toBe(1);
  });
});

describe("a large task beside a stream of small ones", () => {
  /** Small jobs of 1 s each, one started every 125 ms: the memory is full. Answers how long the large one, which comes then, waits. */
  function waitOfLarge(patience: number): number | undefined {
    const comesAt = 2_000;
    const time = { now: 0 };
    const cap = new Capacity({
      has: { tags: [], amounts: { memory: 8 } },
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
        cap.take(lane("small"), -1);
      }
      if (time.now >= comesAt && cap.room(lane("large")) > 0) return time.now - comesAt;
      if (cap.room(lane("small")) > 0) {
        cap.take(lane("small"), 1);
        ends.push(time.now + 1_000);
      }
      cap.refreshed([lane("small"), lane("large")]);
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
    const { cap, time } = capacity({ small: SMALL, large: LARGE }, { memory: 10 });
    cap.take(lane("small"), 6);
    expect(cap.room(lane("large"))).toBe(0);
    time.now = PATIENCE;
    expect([cap.room(lane("large")), cap.room(lane("small"))]).toEqual([0, 0]);
    cap.take(lane("small"), -4);
    expect([cap.room(lane("large")), cap.room(lane("small"))]).toEqual([1, 2]);
    cap.take(lane("large"), 1);
    expect(cap.room(lane("small")), "it has started: what is left is free again").toBe(2);
  });

  test("nothing is kept any more when others have taken its jobs", () => {
    const { cap, time } = capacity({ small: SMALL, large: LARGE });
    cap.take(lane("small"), 4);
    expect(cap.room(lane("large"))).toBe(0);
    time.now = PATIENCE;
    expect(cap.room(lane("small"))).toBe(0);
    cap.refreshed([lane("small")]);
    expect(cap.room(lane("small"))).toBe(4);
  });

  test("of two that wait, the one that has waited longer is first, then the other", () => {
    const { cap, time } = capacity({ small: SMALL, large: LARGE, other: { amounts: { memory: 8 } } });
    cap.take(lane("small"), 8);
    expect(cap.room(lane("other"))).toBe(0);
    time.now = 1;
    expect(cap.room(lane("large"))).toBe(0);
    time.now = PATIENCE + 1;
    cap.take(lane("small"), -7);
    expect([cap.room(lane("large")), cap.room(lane("other"))]).toEqual([0, 0]);
    cap.take(lane("small"), -1);
    expect(cap.room(lane("other"))).toBe(1);
    cap.take(lane("other"), 1);
    cap.take(lane("other"), -1);
    expect([cap.room(lane("large")), cap.room(lane("small"))]).toEqual([1, 2]);
  });
});

test("whatever is claimed and ends: never more is used than there is, and at the end nothing", () => {
  const needs = { small: SMALL, large: LARGE, mixed: { amounts: { memory: 2.5, cpu: 1 } } };
  const tasks = ["small", "large", "mixed", "none"] as const;
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...tasks), fc.integer({ min: 1, max: 9 }), fc.nat(3_000)), { maxLength: 80 }), (steps) => {
      const { cap, time } = capacity(needs, { memory: 8, cpu: 3 });
      const caps = new Caps([cap]);
      const running: Lane[] = [];
      for (const [task, count, later] of steps) {
        time.now += later;
        const quotas = caps.reserve([{ lane: lane(task), quota: count }]);
        caps.unreserve(quotas);
        for (const { lane: of, quota } of quotas) {
          for (let n = 0; n < quota; n++) {
            caps.taken(of);
            running.push(of);
          }
        }
        expect(cap.used.memory).toBeLessThanOrEqual(8);
        expect(cap.used.cpu).toBeLessThanOrEqual(3);
        if (count % 2 === 0) for (const of of running.splice(0, count)) caps.ended(of);
      }
      for (const of of running) caps.ended(of);
      expect(cap.used).toEqual({ memory: 0, cpu: 0 });
    }),
    { numRuns: 300 },
  );
});
