import { expect, it } from "vitest";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { evenness, passes, settledUntil, storeTime, workedBetween } from "../support/shares.js";
import { STEADY, type Stage } from "../support/stage.js";

const WORKERS = 4;
const SLOTS = 6;

/** Work of one tenant for so many seconds of all slots, in jobs of so many ms. */
async function backlog(stage: Stage, tenant: string, ms: number, seconds: number, task = "slow 0", priority = 5): Promise<void> {
  await stage.enqueueMany(task, Math.ceil((seconds * 1_000 * WORKERS * SLOTS) / ms), { ms }, { tenant, priority });
}

describeOn("embedded18", () => {
  it("tenants with a backlog get worker time by weight, through a crash, and by new weights when they are set", async () => {
    await using stage = await freshStage();
    const tenants = [
      { name: "one", weight: 1, ms: 60 },
      { name: "two", weight: 2, ms: 25 },
      { name: "three", weight: 3, ms: 150 },
      { name: "four", weight: 4, ms: 40 },
    ];
    for (const { name, weight, ms } of tenants) {
      await stage.pawl.tenants.set(name, { weight });
      await backlog(stage, name, ms, 14);
    }
    const workers = await Promise.all(Array.from({ length: WORKERS }, () => stage.worker({ ...STEADY.work, concurrency: SLOTS }, STEADY.open)));
    const from = (await storeTime(stage)) + 1_000;
    await passes(stage, from + 3_000);
    await Promise.all([workers[0]?.kill(), stage.worker({ ...STEADY.work, concurrency: SLOTS }, STEADY.open)]);
    await settledUntil(stage, from + 10_000);
    const had = await workedBetween(stage, "j.tenant", from, from + 10_000);
    const total = [...had.values()].reduce((sum, ms) => sum + ms, 0);
    const parts = tenants.map(({ name, weight }) => (had.get(name) ?? 0) / total / (weight / 10));
    expect(evenness(parts), `parts of their due: ${parts}`).toBeGreaterThanOrEqual(0.95);
    for (const part of parts) expect(Math.abs(part - 1), `parts of their due: ${parts}`).toBeLessThanOrEqual(0.1);

    await stage.pawl.tenants.set("one", { weight: 12 });
    await stage.pawl.tenants.set("four", { weight: null });
    const changed = (await storeTime(stage)) + 2_500;
    await settledUntil(stage, changed + 3_000);
    const then = await workedBetween(stage, "j.tenant", changed, changed + 3_000);
    const all = [...then.values()].reduce((sum, ms) => sum + ms, 0);
    expect((then.get("one") ?? 0) / all, "12 of 18").toBeGreaterThan(0.6);
    expect((then.get("one") ?? 0) / all, "12 of 18").toBeLessThan(0.73);
  }, 150_000);

  it("fifty tasks buy a tenant no bigger share than one, and the lowest band gets one part in a hundred under a flood of all others, through a crash", async () => {
    await using stage = await freshStage();
    const seconds = 8;
    for (const band of [9, 8, 7, 6, 4, 3, 2, 1, 0]) await backlog(stage, "flood", 20 + band * 5, seconds, "slow 0", band);
    await backlog(stage, "one", 45, seconds);
    for (let no = 0; no < 50; no++) await stage.enqueueMany(`slow ${no}`, 100, { ms: 5 + no }, { tenant: "many" });
    const start = () => stage.worker({ ...STEADY.work, concurrency: SLOTS }, STEADY.open);
    const workers = await Promise.all(Array.from({ length: WORKERS }, start));
    const from = (await storeTime(stage)) + 1_000;
    await passes(stage, from + 2_000);
    await Promise.all([workers[0]?.kill(), start()]);
    await settledUntil(stage, from + seconds * 1_000);
    const byTenant = await workedBetween(stage, "case when j.band = 5 then j.tenant else 'other' end", from, from + seconds * 1_000);
    const ratio = (byTenant.get("many") ?? 0) / (byTenant.get("one") ?? 1);
    expect(ratio, "fifty tasks beside one").toBeGreaterThan(0.9);
    expect(ratio, "fifty tasks beside one").toBeLessThan(1.1);
    const byBand = await workedBetween(stage, "j.band", from, from + seconds * 1_000);
    const total = [...byBand.values()].reduce((sum, ms) => sum + ms, 0);
    expect((byBand.get("0") ?? 0) / total, "the lowest band").toBeGreaterThanOrEqual(0.008);
    expect((byBand.get("9") ?? 0) / total, "the highest").toBeGreaterThan(0.3);
  }, 150_000);

  it("a new job of a small tenant starts within a second, whatever backlog another has", async () => {
    await using stage = await freshStage();
    await stage.enqueueMany("slow 0", 50_000, { ms: 50 }, { tenant: "big" });
    await Promise.all(Array.from({ length: WORKERS }, () => stage.worker({ concurrency: SLOTS })));
    const started = await storeTime(stage);
    await passes(stage, started + 1_000);
    const waits: number[] = [];
    for (let no = 0; no < 99; no++) {
      const { id } = await stage.enqueue("slow", { ms: 50 - (no % 50) }, { tenant: `small ${no}` });
      const from = Date.now();
      await stage.started(id, 10_000);
      waits.push((stage.sink.of(id, "start")[0]?.at as number) - from);
    }
    waits.sort((a, b) => a - b);
    expect(waits.at(-1), `the longest; half of them within ${waits[49]} ms`).toBeLessThan(1_000);
  }, 150_000);
});
