import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BREAKER_STATES,
  type Breaker,
  type BreakerRule,
  DOUBT,
  evidence,
  force,
  newBreaker,
  type Observed,
  observe,
  probe,
  total,
} from "./breaker.js";
import { breakerRule } from "./breaker-check.js";
import type { Outcome } from "./outcome.js";

const RULE: BreakerRule = { failures: 0.9, window: 300_000, minimum: 20, probe: 60_000 };
const START = 1_000_000_000;

const saw = (succeeded: number, failed: number, ago = 0): Observed => ({ samples: [{ succeeded, failed, ago }] });
const passed = (turn: number, succeeded: number, failed: number): Observed => ({ samples: [], passes: { turn, succeeded, failed } });
const open = (): Breaker => observe(observe(newBreaker(START), RULE, saw(0, 20), START), RULE, saw(0, 1), START + DOUBT);
const closing = (): Breaker => observe(open(), RULE, passed(1, 1, 0), START + 70_000);

describe("the defaults of the design", () => {
  test("open at 90 % failures over 5 minutes with at least 20 outcomes, a probe a minute", () => {
    expect(breakerRule("breaker", undefined)).toEqual(RULE);
  });

  const cases: readonly [what: string, succeeded: number, failed: number, state: string][] = [
    ["no outcome", 0, 0, "closed"],
    ["19 failures and nothing else", 0, 19, "closed"],
    ["20 failures and nothing else", 0, 20, "doubted"],
    ["18 of 20", 2, 18, "doubted"],
    ["17 of 20", 3, 17, "closed"],
    ["89.9 % of many", 101, 899, "closed"],
    ["90 % of many", 100, 900, "doubted"],
  ];
  test.each(cases)("%s: %i succeeded, %i failed", (_, succeeded, failed, state) => {
    expect(observe(newBreaker(START), RULE, saw(succeeded, failed), START).state).toBe(state);
  });
});

describe("doubt", () => {
  const doubted = observe(newBreaker(START), RULE, saw(0, 20), START);

  test("others have three seconds to say that it works for them", () => {
    expect(observe(doubted, RULE, saw(0, 5), START + DOUBT - 1).state).toBe("doubted");
    expect(observe(doubted, RULE, saw(3, 0), START + 1_000)).toMatchObject({ state: "closed", turn: 0 });
    expect(observe(doubted, RULE, saw(0, 1), START + DOUBT)).toMatchObject({ state: "open", turn: 1, probeAt: START + DOUBT + RULE.probe });
  });

  test("successes of the last minute count; those from before do not, where the minute has outcomes enough by itself", () => {
    expect(observe(doubted, RULE, saw(3, 0, 29_000), START).state).toBe("closed");
    for (const ago of [91_000, 240_000, 300_000]) expect(observe(doubted, RULE, saw(3_000, 0, ago), START).state, `${ago}`).toBe("doubted");
  });

  test("with little traffic, successes of some minutes ago count, and those older than the window do not", () => {
    const slowly = (ago: number) => {
      const some = observe(newBreaker(START), RULE, saw(0, 10, 200_000), START);
      return observe(observe(some, RULE, saw(3, 0, ago), START), RULE, saw(0, 12), START).state;
    };
    expect(slowly(240_000)).toBe("closed");
    expect(slowly(330_000)).toBe("doubted");
  });

  test("failures are forgotten when their window has passed", () => {
    const before = observe(newBreaker(START), RULE, saw(0, 19), START);
    expect(observe(before, RULE, saw(0, 1), START + 200_000).state).toBe("doubted");
    expect(observe(before, RULE, saw(0, 1), START + 330_000)).toMatchObject({ state: "closed", counts: [{ failed: 1 }] });
  });
});

describe("open", () => {
  test("one probe a minute, and one that is lost is given again", () => {
    const one = open();
    const at = START + DOUBT + RULE.probe;
    expect(probe(one, RULE, at - 1)).toBeUndefined();
    const probing = probe(one, RULE, at) as Breaker;
    expect(probing.probeAt).toBe(at + RULE.probe);
    expect(probe(probing, RULE, at + 1)).toBeUndefined();
    expect(probe(probing, RULE, at + RULE.probe), "its worker died with it").toBeDefined();
    expect(probe(newBreaker(START), RULE, at)).toBeUndefined();
  });

  test("a failed probe is followed by another a minute after its end", () => {
    expect(observe(open(), RULE, passed(1, 0, 1), START + 80_000)).toMatchObject({ state: "open", turn: 1, probeAt: START + 140_000 });
  });

  test("what was claimed before it opened decides nothing", () => {
    expect(observe(open(), RULE, saw(50, 0), START + 10_000)).toEqual(open());
    expect(observe(open(), RULE, passed(0, 50, 0), START + 10_000)).toEqual(open());
  });
});

describe("closing", () => {
  test("each step that holds makes room for twice as many, until it is closed", () => {
    let breaker = closing();
    const limits: (number | undefined)[] = [];
    while (breaker.state === "closing") {
      limits.push(breaker.limit);
      breaker = observe(breaker, RULE, passed(1, breaker.limit ?? 0, 0), START + 100_000);
    }
    expect(limits).toEqual([1, 2, 4, 8, 16, 32]);
    expect(breaker).toEqual({ state: "closed", forced: false, turn: 1, since: START + 100_000, counts: [] });
  });

  test("a step at which as many fail as would open it opens it again, in a turn of its own", () => {
    expect(observe(closing(), RULE, passed(1, 0, 1), START + 90_000)).toMatchObject({ state: "open", turn: 2, probeAt: START + 150_000 });
  });

  test("a few failures among successes do not", () => {
    const second = observe(closing(), RULE, passed(1, 1, 0), START + 90_000);
    expect(observe(second, RULE, passed(1, 1, 1), START + 91_000)).toMatchObject({ state: "closing", limit: 4 });
  });

  test("a step waits for as many outcomes as it has room for", () => {
    const second = observe(closing(), RULE, passed(1, 1, 0), START + 90_000);
    const half = observe(second, RULE, passed(1, 1, 0), START + 91_000);
    expect(half).toMatchObject({ state: "closing", limit: 2 });
    expect(observe(half, RULE, passed(1, 1, 0), START + 92_000)).toMatchObject({ limit: 4, counts: [] });
  });
});

describe("forced", () => {
  test("one that is forced stays so whatever is reported, and is never probed", () => {
    const forced = force(newBreaker(START), "open", START);
    expect(forced).toMatchObject({ state: "open", forced: true, turn: 1 });
    expect(observe(forced, RULE, passed(1, 9, 0), START + 1)).toBe(forced);
    expect(probe(forced, RULE, START + 10 * RULE.probe)).toBeUndefined();
    const shut = force(forced, "closed", START + 5);
    expect(observe(shut, RULE, saw(0, 500), START + 6)).toBe(shut);
    expect(force(shut, "closed", START + 9), "again is the same").toBe(shut);
  });

  test("reset, it begins anew by itself, and remembers its turns", () => {
    expect(force(force(open(), "open", START), "reset", START + 7)).toEqual({
      state: "closed",
      forced: false,
      turn: 2,
      since: START + 7,
      counts: [],
    });
  });
});

test("whatever happens: turns never go back, only an open one is probed, and only steps that held close it", () => {
  const tally = fc.record({ succeeded: fc.nat(40), failed: fc.nat(40) });
  const event = fc.oneof(
    fc.record({ kind: fc.constant("saw" as const), tally, ago: fc.nat(400_000) }),
    fc.record({ kind: fc.constant("passed" as const), tally, turn: fc.nat(4) }),
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
        if (happens.kind === "saw") breaker = observe(breaker, RULE, { samples: [{ ...happens.tally, ago: happens.ago }] }, now);
        else if (happens.kind === "passed")
          breaker = observe(breaker, RULE, passed(happens.turn, happens.tally.succeeded, happens.tally.failed), now);
        else if (happens.kind === "probe") breaker = probe(breaker, RULE, now) ?? breaker;
        else breaker = force(breaker, happens.how, now);
        expect(BREAKER_STATES).toContain(breaker.state);
        expect(breaker.turn).toBeGreaterThanOrEqual(before.turn);
        expect(breaker.probeAt !== undefined).toBe(breaker.state === "open" && !breaker.forced);
        expect(breaker.limit !== undefined).toBe(breaker.state === "closing");
        expect(breaker.since).toBeLessThanOrEqual(now);
        if (breaker.state === "open" && before.state !== "open") expect(breaker.turn).toBe(before.turn + 1);
        if (happens.kind === "saw" && breaker.state === "open" && before.state !== "open") {
          expect(before.state, "it is doubted first").toBe("doubted");
          expect(now - before.since).toBeGreaterThanOrEqual(DOUBT);
        }
        if (happens.kind === "passed" && before.state === "closing" && breaker.state === "closed") {
          expect(before.limit).toBe(32);
          expect(happens.turn).toBe(before.turn);
        }
        if (breaker.state === "closed" && !breaker.forced) {
          const { succeeded, failed } = total(breaker.counts);
          expect(succeeded + failed < RULE.minimum || failed / (succeeded + failed) < RULE.failures).toBe(true);
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
    [{ failures: 0 }, /breaker.failures/],
    [{ failures: 1.1 }, /breaker.failures/],
    [{ failures: Number.NaN }, /breaker.failures/],
    [{ failures: "90%" }, /breaker.failures/],
    [{ window: "5s" }, /breaker.window/],
    [{ window: "soon" }, /breaker.window/],
    [{ minimum: 0 }, /breaker.minimum/],
    [{ minimum: 1.5 }, /breaker.minimum/],
    [{ probe: 0 }, /breaker.probe/],
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
