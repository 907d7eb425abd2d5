import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Gate, letIn, lookedAt, pass, roomOf } from "./admission.js";
import { type GateKey, gateKey, type JobLimit, type LimitRule, passesOf } from "./limit.js";

const KEY = gateKey("acme", { limit: "l", key: "k" });

function gateOf(rule: LimitRule, more: Partial<Gate> = {}): Gate {
  return { rule, held: 0, unstarted: 0, fullAt: undefined, pausedUntil: undefined, closed: false, ...more };
}

function passes(rule: LimitRule, cost = 1) {
  return passesOf("acme", [{ limit: "l", key: "k", rule, cost }]);
}

describe("admission", () => {
  it("lets in as many as there are places, whatever order they come and go in", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.boolean(), { maxLength: 60 }), (concurrency, comings) => {
        const gate = gateOf({ concurrency });
        for (const comes of comings) {
          if (comes) pass(passes(gate.rule), false, new Map([[KEY, gate]]), 0);
          else gate.held = Math.max(0, gate.held - 1);
          expect(gate.held).toBeLessThanOrEqual(concurrency);
        }
      }),
    );
  });

  it("lets in no more than a burst and the rate times the time, over any time", () => {
    const steps = fc.array(fc.record({ after: fc.integer({ min: 0, max: 400 }), cost: fc.integer({ min: 1, max: 3 }) }), { maxLength: 80 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 3, max: 8 }), steps, (limit, burst, given) => {
        const rule: LimitRule = { rate: { limit, per: 1_000, burst } };
        const gate = gateOf(rule);
        const taken: { at: number; cost: number }[] = [];
        let now = 1_700_000_000_000;
        for (const { after, cost } of given) {
          now += after;
          gate.unstarted = 0;
          if (pass(passes(rule, cost), false, new Map([[KEY, gate]]), now).kind === "admitted") taken.push({ at: now, cost });
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
    const gates = new Map([[KEY, gateOf(rule)]]);
    expect(pass(passes(rule), false, gates, 0).kind).toBe("admitted");
    (gates.get(KEY) as Gate).unstarted = 0;
    const verdict = pass(passes(rule), false, gates, 30);
    expect(verdict).toMatchObject({ kind: "waits", reason: "rate", until: 100 });
    expect(pass(passes(rule), false, gates, 100).kind).toBe("admitted");
  });

  it("takes nothing of one gate while another is closed", () => {
    const [a, b] = ["a", "b"].map((key) => gateKey("acme", { limit: "l", key })) as [GateKey, GateKey];
    const gates = new Map([
      [a, gateOf({ concurrency: 1, rate: { limit: 1, per: 1_000, burst: 1 } })],
      [b, gateOf({ concurrency: 1 }, { held: 1 })],
    ]);
    const both = passesOf(
      "acme",
      [...gates].map(([, { rule }], index) => ({ limit: "l", key: "ab"[index] as string, rule })),
    );
    expect(pass(both, false, gates, 0)).toMatchObject({ kind: "waits", at: { gate: b }, slots: [] });
    expect(gates.get(a)).toMatchObject({ held: 0, unstarted: 0, fullAt: undefined });
  });

  it("keeps the turn of a serial key for whoever came first, while another gate is closed to it", () => {
    const turn = gateKey("acme", { limit: "z", key: "k" });
    const other = gateKey("acme", { limit: "a", key: "k" });
    const limits = [
      { limit: "a", key: "k", rule: { concurrency: 1 } },
      { limit: "z", key: "k", rule: { serial: true } },
    ] as const;
    const gates = new Map([
      [turn, gateOf({ serial: true })],
      [other, gateOf({ concurrency: 1 }, { held: 1 })],
    ]);
    const both = passesOf("acme", limits);
    expect(both.map(({ gate }) => gate)).toEqual([turn, other]);
    expect(pass(both, false, gates, 0)).toMatchObject({ kind: "waits", at: { gate: other }, slots: [{ kind: "serial", gate: turn }] });
    expect(pass([both[0] as (typeof both)[number]], false, gates, 0)).toMatchObject({ kind: "waits", reason: "serial" });
    (gates.get(other) as Gate).held = 0;
    expect(pass(both, true, gates, 0)).toEqual({ kind: "admitted", slots: [{ kind: "key", gate: other }] });
  });

  it("ends a round at the first that this gate is closed to, so that nobody overtakes it", () => {
    const rule: LimitRule = { rate: { limit: 1, per: 1_000, burst: 3 } };
    const line = [2, 2, 1].map((cost, job) => ({ job, passes: passes(rule, cost), keepsTurn: false }));
    const round = letIn(KEY, line, new Map([[KEY, gateOf(rule)]]), 0);
    expect(round).toMatchObject({ admitted: [{ job: 0 }], waiting: [{ job: 1 }], closed: true });
    expect(round.knocks.get(KEY)).toBeGreaterThan(0);
  });

  it("tells those that waited from those that found it open", () => {
    const rule: LimitRule = { concurrency: 2 };
    const gate = gateOf(rule);
    const gates = new Map([[KEY, gate]]);
    const line = (...jobs: number[]) => jobs.map((job) => ({ job, passes: passes(rule), keepsTurn: false }));
    expect(letIn(KEY, line(1), gates, 0)).toMatchObject({ admitted: [{ job: 1 }], waited: false });
    expect(gate.closed, "there is a place left").toBe(false);
    expect(letIn(KEY, line(2), gates, 0)).toMatchObject({ admitted: [{ job: 2 }], waited: false });
    expect(gate.closed).toBe(true);
    gate.held = 0;
    expect(letIn(KEY, line(3), gates, 0)).toMatchObject({ admitted: [{ job: 3 }], waited: true });
    expect(gate.closed, "those behind it have waited as well").toBe(true);
    lookedAt(gate);
    expect(gate.closed, "nobody is left").toBe(false);
  });

  it("of two gates, the one that was closed is known by who waits there", () => {
    const [here, there] = ["here", "there"].map((limit): JobLimit => ({ limit, key: "k", rule: { concurrency: 9 } })) as [JobLimit, JobLimit];
    const [a, b] = [gateKey("acme", here), gateKey("acme", there)];
    const gates = new Map([
      [a, gateOf(here.rule)],
      [b, gateOf(there.rule, { held: 9 })],
    ]);
    letIn(a, [{ job: 1, passes: passesOf("acme", [here, there]), keepsTurn: false }], gates, 0);
    expect([gates.get(a)?.closed, gates.get(b)?.closed]).toEqual([false, true]);
  });

  it("stays closed to those who wait there, and looks at nobody once it is full, whoever comes through another gate", () => {
    const here: JobLimit = { limit: "here", key: "k", rule: { concurrency: 9 } };
    const there: JobLimit = { limit: "there", key: "k", rule: { concurrency: 2, rate: { limit: 1, per: 1_000, burst: 3 } } };
    const [a, b] = [gateKey("acme", here), gateKey("acme", there)];
    const gates = new Map([
      [a, gateOf(here.rule)],
      [b, gateOf(there.rule)],
    ]);
    const comes = [{ job: 1, passes: passesOf("acme", [here, there]), keepsTurn: false }];
    const waits = [{ job: 2, passes: passesOf("acme", [{ ...there, cost: 3 }]), keepsTurn: false }];
    letIn(a, comes, gates, 0);
    expect(letIn(b, waits, gates, 0)).toMatchObject({ waiting: [{ job: 2, reason: "rate" }] });
    (gates.get(b) as Gate).held = 0;
    letIn(a, comes, gates, 0);
    expect(gates.get(b)?.closed, "there is a place, and no token yet").toBe(true);
    letIn(a, comes, gates, 0);
    expect(letIn(b, waits, gates, 0)).toMatchObject({ admitted: [], waiting: [], closed: true });
  });

  it("is closed while its key rests, and says until when", () => {
    const gates = new Map([[KEY, gateOf({ concurrency: 9 }, { pausedUntil: 50 })]]);
    expect(pass(passes({ concurrency: 9 }), false, gates, 49)).toMatchObject({ reason: "key_paused", until: 50 });
    expect(pass(passes({ concurrency: 9 }), false, gates, 50).kind).toBe("admitted");
  });

  it("looks at no more of a line than could pass", () => {
    expect(roomOf(gateOf({ concurrency: 5 }, { held: 2 }), 100)).toBe(3);
    expect(roomOf(gateOf({ concurrency: 2 }, { held: 5 }), 100)).toBe(0);
    expect(roomOf(gateOf({ rate: { limit: 1, per: 1, burst: 1 } }), 100)).toBe(100);
  });
});
