import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { admitFromQueue, type LimitKeyState, slotsLeft, tryAdmit, updateClosed } from "./admission.js";
import { type JobLimit, type LimitKeyId, type LimitRule, limitKeyId, requirementsOf } from "./limit-rule.js";

const KEY = limitKeyId("acme", { limit: "l", key: "k" });

function limitKeyOf(rule: LimitRule, more: Partial<LimitKeyState> = {}): LimitKeyState {
  return { rule, holders: 0, waitingForWorker: 0, fullAt: undefined, pausedUntil: undefined, closed: false, ...more };
}

function requirements(rule: LimitRule, cost = 1) {
  return requirementsOf("acme", [{ limit: "l", key: "k", rule, cost }]);
}

describe("admission", () => {
  it("lets in as many as there are slots, whatever order they come and go in", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.boolean(), { maxLength: 60 }), (concurrency, comings) => {
        const limitKey = limitKeyOf({ concurrency });
        for (const comes of comings) {
          if (comes) tryAdmit(requirements(limitKey.rule), false, new Map([[KEY, limitKey]]), 0);
          else limitKey.holders = Math.max(0, limitKey.holders - 1);
          expect(limitKey.holders).toBeLessThanOrEqual(concurrency);
        }
      }),
    );
  });

  it("lets in no more than a burst and the rate times the time, over any time", () => {
    const steps = fc.array(fc.record({ after: fc.integer({ min: 0, max: 400 }), cost: fc.integer({ min: 1, max: 3 }) }), { maxLength: 80 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 3, max: 8 }), steps, (limit, burst, given) => {
        const rule: LimitRule = { rate: { limit, per: 1_000, burst } };
        const limitKey = limitKeyOf(rule);
        const taken: { at: number; cost: number }[] = [];
        let now = 1_700_000_000_000;
        for (const { after, cost } of given) {
          now += after;
          limitKey.waitingForWorker = 0;
          if (tryAdmit(requirements(rule, cost), false, new Map([[KEY, limitKey]]), now).kind === "admitted") taken.push({ at: now, cost });
        }
        for (const [first, { at: from }] of taken.entries()) {
          let sum = 0;
          for (const { at, cost } of taken.slice(first)) {
            sum += cost;
            expect(sum).toBeLessThanOrEqual(burst + ((at - from) * limit) / 1_000 + 0.01);
          }
        }
      }),
    );
  });

  it("says when there will be a token, and then there is", () => {
    const rule: LimitRule = { rate: { limit: 10, per: 1_000, burst: 1 } };
    const limitKeys = new Map([[KEY, limitKeyOf(rule)]]);
    expect(tryAdmit(requirements(rule), false, limitKeys, 0).kind).toBe("admitted");
    (limitKeys.get(KEY) as LimitKeyState).waitingForWorker = 0;
    const verdict = tryAdmit(requirements(rule), false, limitKeys, 30);
    expect(verdict).toMatchObject({ kind: "waits", reason: "rate", until: 100 });
    expect(tryAdmit(requirements(rule), false, limitKeys, 100).kind).toBe("admitted");
  });

  it("takes nothing of one limit key while another is closed", () => {
    const [a, b] = ["a", "b"].map((key) => limitKeyId("acme", { limit: "l", key })) as [LimitKeyId, LimitKeyId];
    const limitKeys = new Map([
      [a, limitKeyOf({ concurrency: 1, rate: { limit: 1, per: 1_000, burst: 1 } })],
      [b, limitKeyOf({ concurrency: 1 }, { holders: 1 })],
    ]);
    const both = requirementsOf(
      "acme",
      [...limitKeys].map(([, { rule }], index) => ({ limit: "l", key: "ab"[index] as string, rule })),
    );
    expect(tryAdmit(both, false, limitKeys, 0)).toMatchObject({ kind: "waits", at: { limitKey: b }, slots: [] });
    expect(limitKeys.get(a)).toMatchObject({ holders: 0, waitingForWorker: 0, fullAt: undefined });
  });

  it("keeps the slot of a serial key for whoever came first, while another limit key is closed to it", () => {
    const serialKey = limitKeyId("acme", { limit: "z", key: "k" });
    const other = limitKeyId("acme", { limit: "a", key: "k" });
    const limits = [
      { limit: "a", key: "k", rule: { concurrency: 1 } },
      { limit: "z", key: "k", rule: { serial: true } },
    ] as const;
    const limitKeys = new Map([
      [serialKey, limitKeyOf({ serial: true })],
      [other, limitKeyOf({ concurrency: 1 }, { holders: 1 })],
    ]);
    const both = requirementsOf("acme", limits);
    expect(both.map(({ limitKey }) => limitKey)).toEqual([serialKey, other]);
    expect(tryAdmit(both, false, limitKeys, 0)).toMatchObject({
      kind: "waits",
      at: { limitKey: other },
      slots: [{ kind: "serial", limitKey: serialKey }],
    });
    expect(tryAdmit([both[0] as (typeof both)[number]], false, limitKeys, 0)).toMatchObject({ kind: "waits", reason: "serial" });
    (limitKeys.get(other) as LimitKeyState).holders = 0;
    expect(tryAdmit(both, true, limitKeys, 0)).toEqual({ kind: "admitted", slots: [{ kind: "key", limitKey: other }] });
  });

  it("ends a round at the first that this limit key is closed to, so that nobody overtakes it", () => {
    const rule: LimitRule = { rate: { limit: 1, per: 1_000, burst: 3 } };
    const line = [2, 2, 1].map((cost, job) => ({ job, requirements: requirements(rule, cost), holdsSerialSlot: false }));
    const round = admitFromQueue(KEY, line, new Map([[KEY, limitKeyOf(rule)]]), 0);
    expect(round).toMatchObject({ admitted: [{ job: 0 }], waiting: [{ job: 1 }], closed: true });
    expect(round.limitChecks.get(KEY)).toBeGreaterThan(0);
  });

  it("tells those that waited from those that found it open", () => {
    const rule: LimitRule = { concurrency: 2 };
    const limitKey = limitKeyOf(rule);
    const limitKeys = new Map([[KEY, limitKey]]);
    const line = (...jobs: number[]) => jobs.map((job) => ({ job, requirements: requirements(rule), holdsSerialSlot: false }));
    expect(admitFromQueue(KEY, line(1), limitKeys, 0)).toMatchObject({ admitted: [{ job: 1 }], waited: false });
    expect(limitKey.closed, "there is a slot left").toBe(false);
    expect(admitFromQueue(KEY, line(2), limitKeys, 0)).toMatchObject({ admitted: [{ job: 2 }], waited: false });
    expect(limitKey.closed).toBe(true);
    limitKey.holders = 0;
    expect(admitFromQueue(KEY, line(3), limitKeys, 0)).toMatchObject({ admitted: [{ job: 3 }], waited: true });
    expect(limitKey.closed, "those behind it have waited as well").toBe(true);
    updateClosed(limitKey);
    expect(limitKey.closed, "nobody is left").toBe(false);
  });

  it("of two limit keys, the one that was closed is known by who waits there", () => {
    const [here, there] = ["here", "there"].map((limit): JobLimit => ({ limit, key: "k", rule: { concurrency: 9 } })) as [JobLimit, JobLimit];
    const [a, b] = [limitKeyId("acme", here), limitKeyId("acme", there)];
    const limitKeys = new Map([
      [a, limitKeyOf(here.rule)],
      [b, limitKeyOf(there.rule, { holders: 9 })],
    ]);
    admitFromQueue(a, [{ job: 1, requirements: requirementsOf("acme", [here, there]), holdsSerialSlot: false }], limitKeys, 0);
    expect([limitKeys.get(a)?.closed, limitKeys.get(b)?.closed]).toEqual([false, true]);
  });

  it("stays closed to those who wait there, and looks at nobody once it is full, whoever comes through another limit key", () => {
    const here: JobLimit = { limit: "here", key: "k", rule: { concurrency: 9 } };
    const there: JobLimit = { limit: "there", key: "k", rule: { concurrency: 2, rate: { limit: 1, per: 1_000, burst: 3 } } };
    const [a, b] = [limitKeyId("acme", here), limitKeyId("acme", there)];
    const limitKeys = new Map([
      [a, limitKeyOf(here.rule)],
      [b, limitKeyOf(there.rule)],
    ]);
    const comes = [{ job: 1, requirements: requirementsOf("acme", [here, there]), holdsSerialSlot: false }];
    const waits = [{ job: 2, requirements: requirementsOf("acme", [{ ...there, cost: 3 }]), holdsSerialSlot: false }];
    admitFromQueue(a, comes, limitKeys, 0);
    expect(admitFromQueue(b, waits, limitKeys, 0)).toMatchObject({ waiting: [{ job: 2, reason: "rate" }] });
    (limitKeys.get(b) as LimitKeyState).holders = 0;
    admitFromQueue(a, comes, limitKeys, 0);
    expect(limitKeys.get(b)?.closed, "there is a slot, and no token yet").toBe(true);
    admitFromQueue(a, comes, limitKeys, 0);
    expect(admitFromQueue(b, waits, limitKeys, 0)).toMatchObject({ admitted: [], waiting: [], closed: true });
  });

  it("is closed while its key rests, and says until when", () => {
    const limitKeys = new Map([[KEY, limitKeyOf({ concurrency: 9 }, { pausedUntil: 50 })]]);
    expect(tryAdmit(requirements({ concurrency: 9 }), false, limitKeys, 49)).toMatchObject({ reason: "key_paused", until: 50 });
    expect(tryAdmit(requirements({ concurrency: 9 }), false, limitKeys, 50).kind).toBe("admitted");
  });

  it("looks at no more of a line than could pass", () => {
    expect(slotsLeft(limitKeyOf({ concurrency: 5 }, { holders: 2 }), 100)).toBe(3);
    expect(slotsLeft(limitKeyOf({ concurrency: 2 }, { holders: 5 }), 100)).toBe(0);
    expect(slotsLeft(limitKeyOf({ rate: { limit: 1, per: 1, burst: 1 } }), 100)).toBe(100);
  });
});
