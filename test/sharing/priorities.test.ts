import { expect, it } from "vitest";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { settledUntil, storeTimeMs, waitUntil, workedBetween } from "../support/fixtures/worker-time-shares.js";
import { Standstill } from "../support/processes/standstill.js";
import { describeOn } from "../support/servers/servers.js";

const WORKERS = 4;
const SLOTS = 6;
/** ms */
const AGING = 500;

/** When jobs of the priority were started between two instants of the store's clock, in order. */
async function startsOf(fixture: ProcessFixture, priority: number, from: number, to: number): Promise<readonly number[]> {
  const rows = await fixture.rows<{ at: number }>(
    `select (extract(epoch from a.started_at) * 1000)::float8 as at from pawl.any_attempt a join pawl.any_job j on j.id = a.job
     where j.priority = $1 and a.started_at >= to_timestamp($2::float8 / 1000) and a.started_at < to_timestamp($3::float8 / 1000) order by 1`,
    [priority, from, to],
  );
  return rows.map(({ at }) => at);
}

describeOn("embedded18", () => {
  it("priorities get worker time by the weights and the minimum of their queue, with jobs of unequal length, through a crash", async () => {
    await using fixture = await freshFixture();
    await fixture.pawl.queues.update("default", { priorityWeights: { 9: 60, 5: 39, 0: 1 }, priorityMinimum: { 0: 0.1 } });
    // The lowest gets its minimum, and the others share what it leaves.
    const priorities = [
      { priority: 9, ms: 25, part: (0.9 * 60) / 99 },
      { priority: 5, ms: 120, part: (0.9 * 39) / 99 },
      { priority: 0, ms: 60, part: 0.1 },
    ];
    for (const { priority, ms } of priorities)
      for (const tenant of ["one", "two"])
        await fixture.enqueueMany("slow 0", Math.ceil((7_000 * WORKERS * SLOTS) / ms), { ms }, { tenant, priority });
    const workers = await Promise.all(
      Array.from({ length: WORKERS }, () => fixture.worker({ ...STEADY_LEASES.work, concurrency: SLOTS }, STEADY_LEASES.open)),
    );
    const from = (await storeTimeMs(fixture)) + 1_000;
    await waitUntil(fixture, from + 2_500);
    await Promise.all([workers[0]?.kill(), fixture.worker({ ...STEADY_LEASES.work, concurrency: SLOTS }, STEADY_LEASES.open)]);
    await settledUntil(fixture, from + 8_000);
    const had = await workedBetween(fixture, "j.priority", from, from + 8_000);
    const total = [...had.values()].reduce((sum, ms) => sum + ms, 0);
    const parts = priorities.map(({ priority, part }) => (had.get(String(priority)) ?? 0) / total / part);
    for (const part of parts) expect(Math.abs(part - 1), `parts of their due: ${parts}`).toBeLessThanOrEqual(0.15);
  }, 150_000);

  it("in a strict queue the lower priority starts nothing beside a flood, through a crash; with aging its head waits no longer than that", async () => {
    await using fixture = await freshFixture();
    await fixture.pawl.queues.update("default", { strictPriority: true });
    // More than all slots can do in the time: of unequal length, and of two tenants.
    for (const [tenant, ms] of [
      ["one", 20],
      ["two", 70],
    ] as const)
      await fixture.enqueueMany("slow 0", Math.ceil((14_000 * WORKERS * SLOTS) / ms), { ms }, { tenant, priority: 9 });
    await fixture.enqueueMany("slow 0", 2_000, { ms: 30 }, { priority: 5 });
    const workers = await Promise.all(
      Array.from({ length: WORKERS }, () => fixture.worker({ ...STEADY_LEASES.work, concurrency: SLOTS }, STEADY_LEASES.open)),
    );
    const from = await storeTimeMs(fixture);
    await waitUntil(fixture, from + 1_500);
    await Promise.all([workers[0]?.kill(), fixture.worker({ ...STEADY_LEASES.work, concurrency: SLOTS }, STEADY_LEASES.open)]);
    await waitUntil(fixture, from + 4_000);
    await fixture.pawl.queues.update("default", { aging: AGING });
    const aging = (await storeTimeMs(fixture)) + 2_500;
    using still = new Standstill();
    await waitUntil(fixture, aging + 4_000 + 1_500);

    expect(await startsOf(fixture, 5, from - 10_000, from + 4_000), "started beside the flood").toEqual([]);
    expect((await startsOf(fixture, 9, from, from + 4_000)).length, "the flood goes on").toBeGreaterThan(100);
    const starts = await startsOf(fixture, 5, aging, aging + 4_000);
    const gaps = [aging, ...starts, aging + 4_000].slice(1).map((at, place, all) => at - (place === 0 ? aging : (all[place - 1] as number)));
    // Each worker asks for the lane when its head has waited for so long; what it has claimed waits for a slot: 70 ms, and the next claim.
    expect(Math.max(...gaps), "the longest time without a start of the lower priority").toBeLessThan(AGING + 500 + still.ms);
    expect((await startsOf(fixture, 9, aging, aging + 4_000)).length, "and aging is no flood of its own").toBeGreaterThan(3 * starts.length);
  }, 150_000);
});
