import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DuePlan, duePlan, firstTick, ticksBetween } from "./due-ticks.js";
import type { Definition, MissedPolicy, OverlapPolicy } from "./schedule.js";

const START = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;

function definition(given: { overlap: OverlapPolicy; every?: number; jitter?: number } & Partial<MissedPolicy>): Definition {
  const { overlap, every = MINUTE, jitter, ...missed } = given;
  return {
    rule: { kind: "every", every },
    ...(jitter === undefined ? {} : { jitter }),
    overlap,
    job: { lane: { queue: "q", priority: 5, tenant: "t", task: "k" }, input: "null", options: undefined },
    missed: { policy: "latest", tolerance: MINUTE, window: 60 * MINUTE, max: 100, pace: 1_000, ...missed },
  };
}

const SITUATIONS = fc.record({
  policy: fc.constantFrom<MissedPolicy["policy"]>("skip", "latest", "all"),
  overlap: fc.constantFrom<OverlapPolicy>("allow", "skip", "wait", "cancel"),
  every: fc.constantFrom(1_000, 10_000, MINUTE, 7 * MINUTE),
  jitter: fc.constantFrom(0, 500, 90_000),
  tolerance: fc.constantFrom(0, 5_000, MINUTE),
  window: fc.constantFrom(0, 10 * MINUTE, 600 * MINUTE),
  max: fc.integer({ min: 1, max: 50 }),
  away: fc.integer({ min: 0, max: 200 * MINUTE }),
  /** how many jobs are found unfinished, look by look */
  unfinished: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 20 }),
});

describe("what becomes of ticks that are due", () => {
  it("each is accounted for once, in order, whatever the policies and however long nobody looked", () => {
    fc.assert(
      fc.property(SITUATIONS, ({ away, unfinished, ...given }) => {
        const plain = definition(given);
        const accounted: number[] = [];
        let now = START + away;
        let current = firstTick(plain, "s", START);
        let looks = 0;
        for (; current.looksAt !== undefined && current.looksAt <= now; looks++) {
          // What waits for an unfinished job waits for ever if it never ends.
          const standing = looks > 200 ? 0 : (unfinished[looks % unfinished.length] as number);
          const plan: DuePlan = duePlan({ seed: "s", definition: plain, next: current.next as number, unfinished: standing }, now);
          const gaps = plan.gaps.flatMap(({ from, to }) => ticksBetween(plain, "s", from, to, 100_000));
          expect(gaps.length).toBe(plan.gaps.reduce((sum, { count }) => sum + count, 0));
          accounted.push(...[...gaps, ...plan.fires.map(({ at }) => at)].sort((a, b) => a - b));
          if (plan.looksAt !== undefined) expect(plan.looksAt).toBeGreaterThanOrEqual(now);
          if (given.overlap !== "allow") expect(plan.fires.length, "one at a time").toBeLessThanOrEqual(1);
          if (given.overlap === "skip" && standing > 0) expect(plan.fires).toEqual([]);
          current = plan;
          // Time passes while it is caught up with, but no new tick comes due for it.
          now = Math.max(now, Math.min(plan.looksAt ?? now, START + away + given.every - 1));
          if (looks > 20_000) throw new Error("no end");
        }
        const until = accounted.at(-1) ?? START;
        expect(accounted).toEqual(ticksBetween(plain, "s", START + 1, until, 100_000));
        expect(new Set(accounted).size).toBe(accounted.length);
      }),
      { numRuns: 150 },
    );
  });

  it.each([1, 999, 1_000])("a month away is caught up with in a few steps, %i of its minutes one by one", (cap) => {
    const MONTH = 30 * 24 * 60;
    const plain = definition({ overlap: "allow", policy: "all", window: 60 * 24 * 60 * MINUTE, max: cap, pace: 0 });
    const now = START + MONTH * MINUTE;
    let current = firstTick(plain, "s", START);
    const counts = { steps: 0, late: 0, fired: 0, skipped: 0 };
    while (current.looksAt !== undefined && current.looksAt <= now) {
      const plan = duePlan({ seed: "s", definition: plain, next: current.next as number, unfinished: 0 }, now);
      counts.steps += 1;
      for (const { way } of plan.fires) counts[way] += 1;
      for (const { count } of plan.gaps) counts.skipped += count;
      current = plan;
      if (counts.steps > 5_000) throw new Error("no end");
    }
    expect(counts.skipped + counts.late + counts.fired).toBe(MONTH);
    expect(counts.late).toBe(cap);
    expect(counts.steps).toBeLessThan(100 + cap);
  });

  const SECOND = 1_000;
  const OFTEN = { every: 5 * SECOND };
  /** What becomes of the ticks up to so many seconds after the start, seen to at once: when they tick, in seconds. */
  const seenTo = (plain: Definition, seconds: number, unfinished = 0) => {
    const first = ticksBetween(plain, "s", START + 1, START + 3_600 * SECOND, 1)[0] as number;
    const plan = duePlan({ seed: "s", definition: plain, next: first, unfinished }, START + seconds * SECOND);
    const at = (tick: number) => (tick - START) / SECOND;
    return {
      fires: plan.fires.map((fire) => `${at(fire.at)} ${fire.way}`),
      gaps: plan.gaps.map(({ from, to, skipped, mergedInto }) => `${at(from)}–${at(to)} ${skipped ?? `into ${at(mergedInto as number)}`}`),
    };
  };

  it.each<OverlapPolicy>(["allow", "skip", "wait", "cancel"])(
    "ticks more frequent than the tolerance are missed when the next one is due, and get what their policy says (overlap: %s)",
    (overlap) => {
      expect(seenTo(definition({ ...OFTEN, overlap, policy: "skip" }), 32)).toEqual({ fires: ["30 fired"], gaps: ["5–25 missed"] });
      expect(seenTo(definition({ ...OFTEN, overlap, policy: "latest" }), 32)).toEqual({ fires: ["30 fired"], gaps: ["5–25 into 30"] });
      expect(seenTo(definition({ ...OFTEN, overlap, policy: "all" }), 32)).toEqual({ fires: ["5 late"], gaps: [] });
    },
  );

  it("a tick that is late by less than a second is on time, also if the next one is due", () => {
    const both = { fires: ["1 fired", "2 fired"], gaps: [] };
    for (const policy of ["skip", "latest", "all"] as const)
      expect(seenTo(definition({ every: SECOND, overlap: "allow", policy }), 2), policy).toEqual(both);
    expect(seenTo(definition({ every: SECOND, overlap: "allow", policy: "skip" }), 2.001)).toEqual({ fires: ["2 fired"], gaps: ["1–1 missed"] });
  });

  it("where one of several ticks on time can have a job, latest gives it to the newest", () => {
    for (const overlap of ["skip", "wait", "cancel"] as const)
      expect(seenTo(definition({ every: SECOND, overlap, policy: "latest" }), 2), overlap).toEqual({ fires: ["2 fired"], gaps: ["1–1 into 2"] });
    expect(seenTo(definition({ every: SECOND, overlap: "skip", policy: "latest" }), 2, 1).gaps).toEqual(["1–2 overlap"]);
  });

  it("ticks that their jitter brings into another order are on time as long as nobody was late for them", () => {
    const jittered = definition({ overlap: "allow", policy: "skip", every: SECOND, jitter: 20 * SECOND });
    let current = firstTick(jittered, "s", START);
    let missed = 0;
    for (let looks = 0; looks < 500 && current.next !== undefined; looks++) {
      const plan: DuePlan = duePlan({ seed: "s", definition: jittered, next: current.next, unfinished: 0 }, current.looksAt as number);
      missed += plan.gaps.length;
      current = plan;
    }
    expect(missed).toBe(0);
  });

  it("a tick is merged into one that has a job, never into one that is itself too old", () => {
    const ended: Definition = { ...definition({ overlap: "allow", every: 1_000 }), end: START + 2_500_000 };
    let next: number | undefined = START + 1_000;
    const reasons = new Set<unknown>();
    while (next !== undefined) {
      const plan: DuePlan = duePlan({ seed: "s", definition: ended, next, unfinished: 0 }, START + 180 * MINUTE);
      for (const { skipped, mergedInto } of plan.gaps) reasons.add(skipped ?? mergedInto);
      expect(plan.fires).toEqual([]);
      next = plan.next;
    }
    expect([...reasons]).toEqual(["window"]);
  });

  it("a tick that its jitter moved is not looked at before its time", () => {
    const jittered = definition({ overlap: "skip", jitter: 30_000 });
    const { next = 0, looksAt = 0 } = firstTick(jittered, "s", START);
    expect(duePlan({ seed: "s", definition: jittered, next, unfinished: 0 }, looksAt - 1)).toEqual({ fires: [], gaps: [], next, looksAt });
    expect(duePlan({ seed: "s", definition: jittered, next, unfinished: 0 }, looksAt).fires).toHaveLength(1);
  });
});
