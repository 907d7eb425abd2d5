import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULTS } from "../values/defaults.js";
import { type Failure, failure } from "./failure.js";
import { checkRetry, exponential, followup, type RetryPolicy, retryRules, storedRetry } from "./retry.js";

const BROKE = failure("error", "it broke");
const delays = (retry: RetryPolicy, count: number, chance = 0, cause: Failure = BROKE) =>
  Array.from({ length: count }, (_, n) => followup(retry, cause, n + 1, () => chance).delay);
const wrong = (retry: unknown) =>
  expect(() => checkRetry(retry as RetryPolicy), JSON.stringify(retry)).toThrow(expect.objectContaining({ code: "option_invalid" }));

describe("a number of retries", () => {
  it("is ten by default, which last longer than ten minutes and up to fourteen, whatever chance does", () => {
    expect(DEFAULTS.job.retries).toBe(10);
    const lasts = (chance: number) =>
      delays(DEFAULTS.job.retries, DEFAULTS.job.retries, chance).reduce<number>((sum, delay) => sum + Number(delay), 0);
    expect([lasts(0), lasts(0.999_999)].map((ms) => Math.round(ms / 1_000))).toEqual([811, 649]);
    expect([exponential().retries, retryRules({}).otherwise]).toEqual([10, 10]);
  });

  it("uses the default backoff, from a second to five minutes", () => {
    expect(delays(3, 4)).toEqual([1_000, 2_000, 4_000, "stop"]);
    expect(delays(12, 12).at(-1)).toBe(300_000);
  });

  it("may be none", () => {
    expect(delays(0, 1)).toEqual(["stop"]);
  });
});

describe("a list of delays", () => {
  it("gives one delay per retry, then stops", () => {
    expect(delays(["1m", "5m", 10], 4)).toEqual([60_000, 300_000, 10, "stop"]);
    expect(delays([], 1)).toEqual(["stop"]);
  });
});

describe("exponential backoff", () => {
  it("grows by its factor up to its longest delay", () => {
    expect(delays(exponential({ retries: 6, min: "1s", max: "20s", factor: 3, jitter: 0 }), 7)).toEqual([
      1_000,
      3_000,
      9_000,
      20_000,
      20_000,
      20_000,
      "stop",
    ]);
  });

  it("takes away up to its jitter", () => {
    const policy = exponential({ retries: 1, min: 1_000, jitter: 0.5 });
    expect(delays(policy, 1, 0)).toEqual([1_000]);
    expect(delays(policy, 1, 0.5)).toEqual([750]);
    expect(delays(policy, 1, 0.999_999)).toEqual([500]);
  });

  it("is a whole number of ms, never below nothing and never above its longest, whatever the numbers", () => {
    const policy = fc.record({
      retries: fc.integer({ min: 0, max: 1_000 }),
      min: fc.nat({ max: 10_000 }),
      extra: fc.nat({ max: 1e9 }),
      factor: fc.double({ min: 1, max: 100, noNaN: true }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        policy,
        fc.integer({ min: 1, max: 1_001 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        ({ extra, ...options }, attempts, chance) => {
          const max = options.min + extra;
          const { delay } = followup(exponential({ ...options, max }), BROKE, attempts, () => chance);
          if (attempts > options.retries) expect(delay).toBe("stop");
          else {
            expect(Number.isInteger(delay)).toBe(true);
            expect(delay).toBeGreaterThanOrEqual(0);
            expect(delay).toBeLessThanOrEqual(max);
          }
        },
      ),
    );
  });

  it("is nothing where the first delay is nothing, however often it is multiplied", () => {
    expect(followup(exponential({ retries: 1_000, min: 0, factor: 100 }), BROKE, 999, () => 0)).toEqual({ delay: 0 });
  });

  it("refuses what makes no sense", () => {
    for (const options of [
      { retries: -1 },
      { retries: 1.5 },
      { retries: 1_001 },
      { factor: 0.5 },
      { factor: Number.NaN },
      { jitter: 2 },
      { jitter: -0.1 },
      { min: "5m", max: "1m" },
    ]) {
      expect(() => exponential(options), JSON.stringify(options)).toThrow(expect.objectContaining({ code: "option_invalid" }));
    }
    expect(() => exponential({ min: "soon" })).toThrow(expect.objectContaining({ code: "duration_invalid" }));
  });
});

describe("a retry function", () => {
  it("sees the failure and the number of the attempt that failed", () => {
    const seen: unknown[] = [];
    const retry: RetryPolicy = (cause, attempt) => {
      seen.push([cause, attempt]);
      return attempt < 2 ? "1s" : "stop";
    };
    expect(delays(retry, 2)).toEqual([1_000, "stop"]);
    expect(seen).toEqual([
      [BROKE, 1],
      [BROKE, 2],
    ]);
  });
});

describe("a retry function that fails", () => {
  const refuses = () => {
    throw new Error("not to be looked at");
  };
  const NONSENSE: readonly unknown[] = [
    "soon",
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    undefined,
    null,
    {},
    [],
    true,
    "",
    "1 day",
    10n,
    Symbol("s"),
    new Proxy({}, { getPrototypeOf: refuses, get: refuses }),
  ];
  const fails = (thrown: unknown) => () => {
    throw thrown;
  };
  const byDefault = (attempts: number) => followup(DEFAULTS.job.retries, BROKE, attempts, () => 0).delay;

  it("leaves the decision to the default policy, and what it did is told", () => {
    for (const answer of NONSENSE)
      expect(followup((() => answer) as RetryPolicy, BROKE, 2, () => 0)).toEqual({
        delay: byDefault(2),
        fault: expect.stringMatching(/^it answered /),
      });
    expect(followup(fails(new TypeError("of undefined")), BROKE, 1, () => 0)).toEqual({
      delay: byDefault(1),
      fault: "it threw TypeError: of undefined",
    });
    for (const thrown of [undefined, null, "text", Object.create(null)])
      expect(followup(fails(thrown), BROKE, 1, () => 0)).toEqual({ delay: byDefault(1), fault: expect.stringMatching(/^it threw /) });
    expect(followup(fails(1), BROKE, DEFAULTS.job.retries + 1, () => 0)).toMatchObject({ delay: "stop", fault: expect.anything() });
  });

  it("may be one of a rule", () => {
    const policy = retryRules({ timeout: fails("no") }, () => "later");
    expect(followup(policy, failure("timeout", "slow"), 1, () => 0)).toEqual({ delay: byDefault(1), fault: "it threw string: no" });
    expect(followup(policy, BROKE, 1, () => 0)).toMatchObject({ delay: byDefault(1), fault: expect.stringContaining('"later"') });
  });

  it("may be asynchronous by mistake: what its promise is rejected with ends no process", async () => {
    const unhandled: unknown[] = [];
    const hear = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", hear);
    const policy = (async () => {
      throw new Error("nobody waits for this");
    }) as unknown as RetryPolicy;
    expect(followup(policy, BROKE, 1, () => 0)).toMatchObject({ delay: byDefault(1), fault: expect.stringMatching(/^it answered /) });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", hear);
    expect(unhandled).toEqual([]);
  });
});

describe("rules", () => {
  const policy = retryRules({ HttpError: ["1m"], timeout: "stop", E_BUSY: [5, 6] }, [7]);

  it("are chosen by class, kind or code, and otherwise by what is left", () => {
    expect(delays(policy, 2, 0, { ...BROKE, name: "HttpError" })).toEqual([60_000, "stop"]);
    expect(delays(policy, 1, 0, failure("timeout", "too slow"))).toEqual(["stop"]);
    expect(delays(policy, 2, 0, { ...BROKE, code: "E_BUSY" })).toEqual([5, 6]);
    expect(delays(policy, 2)).toEqual([7, "stop"]);
  });

  it("follow the first that matches", () => {
    expect(delays(policy, 1, 0, { ...BROKE, name: "HttpError", code: "E_BUSY" })).toEqual([60_000]);
  });
});

describe("a policy", () => {
  it("is checked where it is written", () => {
    for (const good of [0, 5, [], ["1s"], exponential(), retryRules({ A: "stop" }), () => 1] as RetryPolicy[])
      expect(() => checkRetry(good)).not.toThrow();
    for (const bad of [
      -1,
      1.5,
      Number.NaN,
      "3",
      null,
      undefined,
      {},
      { kind: "linear" },
      Array.from({ length: 101 }, () => 1),
      retryRules({ A: -1 as never }),
    ])
      wrong(bad);
    expect(() => checkRetry(["soon"])).toThrow(expect.objectContaining({ code: "duration_invalid" }));
  });

  it("is stored with a job as plain data", () => {
    expect(storedRetry(["1s", 5])).toEqual([1_000, 5]);
    expect(storedRetry(3)).toBe(3);
    expect(JSON.parse(JSON.stringify(storedRetry(exponential())))).toEqual(exponential());
    for (const code of [() => 1, retryRules({ A: "stop" })] as RetryPolicy[])
      expect(() => storedRetry(code)).toThrow(expect.objectContaining({ code: "option_invalid" }));
  });
});
