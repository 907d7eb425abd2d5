import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Outcome } from "../jobs/outcome.js";
import {
  BREAKER_STATES,
  type Breaker,
  type BreakerRule,
  CHECKING_MS,
  evidence,
  force,
  newBreaker,
  type ObservedOutcomes,
  observe,
  probe,
  recent,
  total,
} from "./breaker.js";
import { breakerRule } from "./breaker-check.js";

const RULE: BreakerRule = { failureRate: 0.9, window: 300_000, minOutcomes: 20, probeInterval: 60_000 };
const START = 1_000_000_000;

const saw = (succeeded: number, failed: number, ago = 0): ObservedOutcomes => ({ samples: [{ succeeded, failed, ago }] });
const probed = (opening: number, succeeded: number, failed: number): ObservedOutcomes => ({ samples: [], probes: { opening, succeeded, failed } });
const open = (): Breaker => observe(observe(newBreaker(START), RULE, saw(0, 20), START), RULE, saw(0, 1), START + CHECKING_MS);
const closing = (): Breaker => observe(open(), RULE, probed(1, 1, 0), START + 70_000);

describe("the defaults of the design", () => {
  test("open at 90 % failures over 5 minutes with at least 20 outcomes, a probe a minute", () => {
    expect(breakerRule("breaker", undefined)).toEqual(RULE);
  });

  const cases: readonly [what: string, succeeded: number, failed: number, state: string][] = [
    ["no outcome", 0, 0, "closed"],
    ["19 failures and nothing else", 0, 19, "closed"],
    ["20 failures and nothing else", 0, 20, "checking"],
    ["18 of 20", 2, 18, "checking"],
    ["17 of 20", 3, 17, "closed"],
    ["89.9 % of many", 101, 899, "closed"],
    ["90 % of many", 100, 900, "checking"],
  ];
  test.each(cases)("%s: %i succeeded, %i failed", (_, succeeded, failed, state) => {
    expect(observe(newBreaker(START), RULE, saw(succeeded, failed), START).state).toBe(state);
  });
});

describe("doubt", () => {
  const checking = observe(newBreaker(START), RULE, saw(0, 20), START);

  test("others have three seconds to say that it works for them", () => {
    expect(observe(checking, RULE, saw(0, 5), START + CHECKING_MS - 1).state).toBe("checking");
    expect(observe(checking, RULE, saw(3, 0), START + 1_000)).toMatchObject({ state: "closed", opening: 0 });
    expect(observe(checking, RULE, saw(0, 1), START + CHECKING_MS)).toMatchObject({
      state: "open",
      opening: 1,
      probeAt: START + CHECKING_MS + RULE.probeInterval,
    });
  });

  test("successes of the last minute count; those from before do not, where the minute has outcomes enough by itself", () => {
    expect(observe(checking, RULE, saw(3, 0, 29_000), START).state).toBe("closed");
    for (const ago of [91_000, 240_000, 300_000]) expect(observe(checking, RULE, saw(3_000, 0, ago), START).state, `${ago}`).toBe("checking");
  });

  test("with little traffic, successes of some minutes ago count, and those older than the window do not", () => {
    const slowly = (ago: number) => {
      const some = observe(newBreaker(START), RULE, saw(0, 10, 200_000), START);
      return observe(observe(some, RULE, saw(3, 0, ago), START), RULE, saw(0, 12), START).state;
    };
    expect(slowly(240_000)).toBe("closed");
    expect(slowly(330_000)).toBe("checking");
  });

  test("failures are forgotten when their window has passed", () => {
    const before = observe(newBreaker(START), RULE, saw(0, 19), START);
    expect(observe(before, RULE, saw(0, 1), START + 200_000).state).toBe("checking");
    expect(observe(before, RULE, saw(0, 1), START + 330_000)).toMatchObject({ state: "closed", counts: [{ failed: 1 }] });
  });
});

describe("open", () => {
  test("one probe a minute, and one that is lost is given again", () => {
    const one = open();
    const at = START + CHECKING_MS + RULE.probeInterval;
    expect(probe(one, RULE, at - 1)).toBeUndefined();
    const probing = probe(one, RULE, at) as Breaker;
    expect(probing.probeAt).toBe(at + RULE.probeInterval);
    expect(probe(probing, RULE, at + 1)).toBeUndefined();
    expect(probe(probing, RULE, at + RULE.probeInterval), "its worker died with it").toBeDefined();
    expect(probe(newBreaker(START), RULE, at)).toBeUndefined();
  });

  test("a failed probe is followed by another a minute after its end", () => {
    expect(observe(open(), RULE, probed(1, 0, 1), START + 80_000)).toMatchObject({ state: "open", opening: 1, probeAt: START + 140_000 });
  });

  test("what was claimed before it opened decides nothing", () => {
    expect(observe(open(), RULE, saw(50, 0), START + 10_000)).toEqual(open());
    expect(observe(open(), RULE, probed(0, 50, 0), START + 10_000)).toEqual(open());
  });
});

describe("half_open", () => {
  test("each step that holds makes room for twice as many, until it is closed", () => {
    let breaker = closing();
    const limits: (number | undefined)[] = [];
    while (breaker.state === "half_open") {
      limits.push(breaker.limit);
      breaker = observe(breaker, RULE, probed(1, breaker.limit ?? 0, 0), START + 100_000);
    }
    expect(limits).toEqual([1, 2, 4, 8, 16, 32]);
    expect(breaker).toEqual({ state: "closed", forced: false, opening: 1, since: START + 100_000, counts: [] });
  });

  test("a step at which as many fail as would open it opens it again, as an opening of its own", () => {
    expect(observe(closing(), RULE, probed(1, 0, 1), START + 90_000)).toMatchObject({ state: "open", opening: 2, probeAt: START + 150_000 });
  });

  test("a few failures among successes do not", () => {
    const second = observe(closing(), RULE, probed(1, 1, 0), START + 90_000);
    expect(observe(second, RULE, probed(1, 1, 1), START + 91_000)).toMatchObject({ state: "half_open", limit: 4 });
  });

  test("a step waits for as many outcomes as it has room for", () => {
    const second = observe(closing(), RULE, probed(1, 1, 0), START + 90_000);
    const half = observe(second, RULE, probed(1, 1, 0), START + 91_000);
    expect(half).toMatchObject({ state: "half_open", limit: 2 });
    expect(observe(half, RULE, probed(1, 1, 0), START + 92_000)).toMatchObject({ limit: 4, counts: [] });
  });
});

describe("forced", () => {
  test("one that is forced stays so whatever is reported, and is never probed", () => {
    const forced = force(newBreaker(START), "open", START);
    expect(forced).toMatchObject({ state: "open", forced: true, opening: 1 });
    expect(observe(forced, RULE, probed(1, 9, 0), START + 1)).toBe(forced);
    expect(probe(forced, RULE, START + 10 * RULE.probeInterval)).toBeUndefined();
    const shut = force(forced, "closed", START + 5);
    expect(observe(shut, RULE, saw(0, 500), START + 6)).toBe(shut);
    expect(force(shut, "closed", START + 9), "again is the same").toBe(shut);
  });

  test("reset, it begins anew by itself, and remembers its openings", () => {
    expect(force(force(open(), "open", START), "reset", START + 7)).toEqual({
      state: "closed",
      forced: false,
      opening: 2,
      since: START + 7,
      counts: [],
    });
  });
});

test("whatever happens: openings never go back, only an open one is probed, and only steps that held close it", () => {
  const counter = fc.record({ succeeded: fc.nat(40), failed: fc.nat(40) });
  const event = fc.oneof(
    fc.record({ kind: fc.constant("saw" as const), counter, ago: fc.nat(400_000) }),
    fc.record({ kind: fc.constant("passed" as const), counter, opening: fc.nat(4) }),
    fc.record({ kind: fc.constant("probe" as const) }),
    fc.record({ kind: fc.constant("force" as const), how: fc.constantFrom("open" as const, "closed" as const, "reset" as const) }),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(event, fc.nat(90_000)), { maxLength: 60 }), (events) => {
      let now = START;
      let breaker = newBreaker(now);
      for (const [happens, later] of events) {
        now += later;
        const before = breaker;
        if (happens.kind === "saw") breaker = observe(breaker, RULE, { samples: [{ ...happens.counter, ago: happens.ago }] }, now);
        else if (happens.kind === "passed")
          breaker = observe(breaker, RULE, probed(happens.opening, happens.counter.succeeded, happens.counter.failed), now);
        else if (happens.kind === "probe") breaker = probe(breaker, RULE, now) ?? breaker;
        else breaker = force(breaker, happens.how, now);
        expect(BREAKER_STATES).toContain(breaker.state);
        expect(breaker.opening).toBeGreaterThanOrEqual(before.opening);
        expect(breaker.probeAt !== undefined).toBe(breaker.state === "open" && !breaker.forced);
        expect(breaker.limit !== undefined).toBe(breaker.state === "half_open");
        expect(breaker.since).toBeLessThanOrEqual(now);
        if (breaker.state === "open" && before.state !== "open") expect(breaker.opening).toBe(before.opening + 1);
        if (happens.kind === "saw" && breaker.state === "open" && before.state !== "open") {
          expect(before.state, "it is checking first").toBe("checking");
          expect(now - before.since).toBeGreaterThanOrEqual(CHECKING_MS);
        }
        if (happens.kind === "passed" && before.state === "half_open" && breaker.state === "closed") {
          expect(before.limit).toBe(32);
          expect(happens.opening).toBe(before.opening);
        }
        if (breaker.state === "closed" && !breaker.forced && breaker !== before) {
          // The last fifth of the window decides where it has outcomes enough.
          const lately = total(recent(breaker.counts, RULE.window / 5, now));
          const { succeeded, failed } = lately.succeeded + lately.failed >= RULE.minOutcomes ? lately : total(breaker.counts);
          expect(succeeded + failed < RULE.minOutcomes || failed / (succeeded + failed) < RULE.failureRate).toBe(true);
        }
      }
    }),
    { numRuns: 500 },
  );
});

describe("evidence", () => {
  const thrown = { kind: "error", name: "TypeError", message: "fetch failed" } as const;
  const cases: readonly [what: string, outcome: Outcome, seen: string | undefined][] = [
    ["a success", { kind: "succeeded" }, "succeeded"],
    ["a failure that is retried", { kind: "failed", failure: thrown, retryable: true }, "failed"],
    ["a timeout", { kind: "failed", failure: { kind: "timeout", name: "timeout", message: "" }, retryable: true }, "failed"],
    ["a failure that cannot be mended", { kind: "failed", failure: thrown, retryable: false }, undefined],
    ["a service that says when to come back", { kind: "failed", failure: thrown, retryable: true, retryAfter: 30_000 }, undefined],
    ["Pawl's own store", { kind: "failed", failure: { ...thrown, name: "PawlError" }, retryable: true }, undefined],
    ["a snooze", { kind: "snoozed", delay: 1 }, undefined],
    ["a release", { kind: "released" }, undefined],
    ["a cancellation", { kind: "cancelled" }, undefined],
    ["a crash", { kind: "crashed", alone: true }, undefined],
  ];
  test.each(cases)("%s", (_, outcome, seen) => expect(evidence(outcome)).toBe(seen));
});

describe("bad options", () => {
  const cases: readonly [object, RegExp][] = [
    [{ failureRate: 0 }, /breaker.failureRate is invalid: 0/],
    [{ failureRate: 1.1 }, /breaker.failureRate is invalid: 1.1/],
    [{ failureRate: Number.NaN }, /breaker.failureRate is invalid: NaN/],
    [{ failureRate: "90%" }, /breaker.failureRate is invalid: "90%"/],
    [{ window: "5s" }, /breaker.window/],
    [{ window: "soon" }, /breaker.window/],
    [{ minOutcomes: 0 }, /breaker.minOutcomes is invalid: 0/],
    [{ minOutcomes: 1.5 }, /breaker.minOutcomes is invalid: 1.5/],
    [{ probeInterval: 0 }, /breaker.probeInterval/],
    [{ treshold: 1 }, /breaker.treshold/],
  ];
  test.each(cases)("%j is refused by name", (given, message) => {
    expect(() => breakerRule("breaker", given as never)).toThrow(message);
  });
  test.each([[true], [5], ["no"], [[]], [null]])("%j is no breaker", (given) => {
    expect(() => breakerRule("breaker", given as never)).toThrow(/breaker/);
  });
  test("none at all is false", () => expect(breakerRule("breaker", false)).toBeUndefined());
});
