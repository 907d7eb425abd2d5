import { expect, test } from "vitest";
import type { Lane } from "../../core/jobs/lane.js";
import type { BreakerRule } from "../../core/limits/breaker.js";
import { BreakerCounts } from "./breaker-counts.js";

const RULE: BreakerRule = { failureRate: 0.9, window: 300_000, minOutcomes: 20, probeInterval: 60_000 };
const lane = (tenant: string, task = "charge"): Lane => ({ queue: "default", priority: 5, tenant, task });
const counts = () => new BreakerCounts(new Map([["charge", RULE]]));

test("successes alone are not reported; with a failure they are, as old as they are", () => {
  const seen = counts();
  for (let n = 0; n < 5; n++) seen.record(lane("acme"), "succeeded", 0, undefined);
  seen.record(lane("acme"), "succeeded", 100_000, undefined);
  expect([seen.isDue, seen.take(10, 100_000)]).toEqual([false, []]);
  seen.record(lane("acme"), "failed", 120_000, undefined);
  expect(seen.isDue).toBe(true);
  expect(seen.take(10, 121_000)).toEqual([
    {
      tenant: "acme",
      task: "charge",
      rule: RULE,
      samples: [
        { succeeded: 5, failed: 0, ago: 121_000 },
        { succeeded: 1, failed: 0, ago: 31_000 },
        { succeeded: 0, failed: 1, ago: 1_000 },
      ],
    },
  ]);
  expect(seen.take(10, 121_000), "each once").toEqual([]);
});

test("what is older than the window is let go", () => {
  const seen = counts();
  seen.record(lane("acme"), "succeeded", 0, undefined);
  seen.record(lane("acme"), "failed", 400_000, undefined);
  expect(seen.take(10, 400_000)[0]?.samples).toMatchObject([{ succeeded: 0, failed: 1 }]);
});

test("somebody who asks is told of successes, and of nothing if there are none", () => {
  const seen = counts();
  seen.record(lane("acme"), "succeeded", 0, undefined);
  seen.requestReport("acme", "charge");
  seen.requestReport("umbrella", "charge");
  seen.requestReport("acme", "nothing");
  expect(seen.take(10, 1_000)).toMatchObject([{ tenant: "acme", samples: [{ succeeded: 1, failed: 0 }] }]);
});

test("what a breaker let through is told apart, by its newest turn", () => {
  const seen = counts();
  seen.record(lane("acme"), "failed", 0, 1);
  seen.record(lane("acme"), "succeeded", 0, 2);
  seen.record(lane("acme"), "failed", 0, 2);
  expect(seen.take(10, 0)).toMatchObject([{ samples: [], probes: { opening: 2, succeeded: 1, failed: 1 } }]);
});

test("tasks without a breaker are not counted", () => {
  const seen = counts();
  seen.record(lane("acme", "other"), "failed", 0, undefined);
  expect(seen.isDue).toBe(false);
});

test("a report has its limit, and the rest is for the next", () => {
  const seen = counts();
  for (const tenant of ["a", "b", "c"]) seen.record(lane(tenant), "failed", 0, undefined);
  expect(seen.take(2, 0).map(({ tenant }) => tenant)).toEqual(["a", "b"]);
  expect(seen.isDue).toBe(true);
  expect(seen.take(2, 0).map(({ tenant }) => tenant)).toEqual(["c"]);
});

test("however many tenants there are, ten thousand are counted: the newest", () => {
  const seen = counts();
  for (let n = 0; n < 30_000; n++) seen.record(lane(`t${n}`), "failed", 0, undefined);
  const reported = seen.take(100_000, 0);
  expect(reported).toHaveLength(10_000);
  expect(reported.at(-1)?.tenant).toBe("t29999");
});
