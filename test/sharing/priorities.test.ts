import { expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { storeTime } from "../support/shares.js";
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

async function passes(stage: Stage, until: number): Promise<void> {
  await eventually("time passes", async () => (await storeTime(stage)) >= until, 60_000);
}

describeOn("embedded18", () => {
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
