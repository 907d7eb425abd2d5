import { expect, it } from "vitest";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { passes, settledUntil, storeTime, workedBetween } from "../support/shares.js";
import { STEADY, type Stage } from "../support/stage.js";
import { Standstill } from "../support/standstill.js";

const WORKERS = 4;
const SLOTS = 6;
/** ms */
const AGING = 500;

/** When jobs of the band were started between two instants of the store's clock, in order. */
async function startsOf(stage: Stage, band: number, from: number, to: number): Promise<readonly number[]> {
  const rows = await stage.rows<{ at: number }>(
    `select (extract(epoch from a.started_at) * 1000)::float8 as at from pawl.any_attempt a join pawl.any_job j on j.id = a.job
     where j.band = $1 and a.started_at >= to_timestamp($2::float8 / 1000) and a.started_at < to_timestamp($3::float8 / 1000) order by 1`,
    [band, from, to],
  );
  return rows.map(({ at }) => at);
}

describeOn("embedded18", () => {
  it("bands get worker time by the weights and the minimum of their queue, with jobs of unequal length, through a crash", async () => {
    await using stage = await freshStage();
    await stage.pawl.queues.set("default", { weights: { 9: 60, 5: 39, 0: 1 }, minimum: { 0: 0.1 } });
    // The lowest gets its minimum, and the others share what it leaves.
    const bands = [
      { band: 9, ms: 25, part: (0.9 * 60) / 99 },
      { band: 5, ms: 120, part: (0.9 * 39) / 99 },
      { band: 0, ms: 60, part: 0.1 },
    ];
    for (const { band, ms } of bands)
      for (const tenant of ["one", "two"])
        await stage.enqueueMany("slow 0", Math.ceil((7_000 * WORKERS * SLOTS) / ms), { ms }, { tenant, priority: band });
    const workers = await Promise.all(Array.from({ length: WORKERS }, () => stage.worker({ ...STEADY.work, concurrency: SLOTS }, STEADY.open)));
    const from = (await storeTime(stage)) + 1_000;
    await passes(stage, from + 2_500);
    await Promise.all([workers[0]?.kill(), stage.worker({ ...STEADY.work, concurrency: SLOTS }, STEADY.open)]);
    await settledUntil(stage, from + 8_000);
    const had = await workedBetween(stage, "j.band", from, from + 8_000);
    const total = [...had.values()].reduce((sum, ms) => sum + ms, 0);
    const parts = bands.map(({ band, part }) => (had.get(String(band)) ?? 0) / total / part);
    for (const part of parts) expect(Math.abs(part - 1), `parts of their due: ${parts}`).toBeLessThanOrEqual(0.15);
  }, 150_000);

  it("in a strict queue the lower band starts nothing beside a flood, through a crash; with aging its head waits no longer than that", async () => {
    await using stage = await freshStage();
    await stage.pawl.queues.set("default", { strict: true });
    // More than all slots can do in the time: of unequal length, and of two tenants.
    for (const [tenant, ms] of [
      ["one", 20],
      ["two", 70],
    ] as const)
      await stage.enqueueMany("slow 0", Math.ceil((14_000 * WORKERS * SLOTS) / ms), { ms }, { tenant, priority: 9 });
    await stage.enqueueMany("slow 0", 2_000, { ms: 30 }, { priority: 5 });
    const workers = await Promise.all(Array.from({ length: WORKERS }, () => stage.worker({ ...STEADY.work, concurrency: SLOTS }, STEADY.open)));
    const from = await storeTime(stage);
    await passes(stage, from + 1_500);
    await Promise.all([workers[0]?.kill(), stage.worker({ ...STEADY.work, concurrency: SLOTS }, STEADY.open)]);
    await passes(stage, from + 4_000);
    await stage.pawl.queues.set("default", { aging: AGING });
    const aging = (await storeTime(stage)) + 2_500;
    using still = new Standstill();
    await passes(stage, aging + 4_000 + 1_500);

    expect(await startsOf(stage, 5, from - 10_000, from + 4_000), "started beside the flood").toEqual([]);
    expect((await startsOf(stage, 9, from, from + 4_000)).length, "the flood goes on").toBeGreaterThan(100);
    const starts = await startsOf(stage, 5, aging, aging + 4_000);
    const gaps = [aging, ...starts, aging + 4_000].slice(1).map((at, place, all) => at - (place === 0 ? aging : (all[place - 1] as number)));
    // Each worker asks for the lane when its head has waited for so long; what it has claimed waits for a slot: 70 ms, and the next claim.
    expect(Math.max(...gaps), "the longest time without a start of the lower band").toBeLessThan(AGING + 500 + still.ms);
    expect((await startsOf(stage, 9, aging, aging + 4_000)).length, "and aging is no flood of its own").toBeGreaterThan(3 * starts.length);
  }, 150_000);
});
