import { expect } from "vitest";
import { spreadOut } from "../../src/core/jobs/spread.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { MINUTE, SECOND, SUCCEEDED } from "../world.js";

export function spreadTests(test: Test): void {
  test("jobs due at one instant with a spread start evenly over it, and none before it", async (w) => {
    const runAt = w.clock.now() + MINUTE;
    const jobs = Array.from({ length: 400 }, () => spreadOut(w.newJob({ runAt, options: { spread: 10 * SECOND } })));
    await w.store.jobs.enqueue(jobs);
    w.clock.advance(MINUTE - 1);
    expect((await dutiesOf(w.store).promote(1_000)).count).toBe(0);
    const starts: number[] = [];
    for (let second = 0; second < 10; second++) {
      w.clock.advance(SECOND);
      await dutiesOf(w.store).promote(1_000);
      const held = await w.holdAll({ limit: 400 });
      if (held.length > 0) await w.settleAll(held, SUCCEEDED);
      starts.push(held.length);
    }
    expect(starts.reduce((a, b) => a + b)).toBe(400);
    // Four standard deviations of a fair draw; the ids are always the same.
    for (const started of starts) expect(Math.abs(started - 40)).toBeLessThan(4 * Math.sqrt(40));
  });
}
