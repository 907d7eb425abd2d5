import { expect, it } from "vitest";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { fairnessIndex, settledUntil, storeTimeMs, waitUntil, workedBetween } from "../support/fixtures/worker-time-shares.js";
import { describeOn } from "../support/servers/servers.js";

const WORKERS = 4;
const SLOTS = 6;

/** Work of one tenant for so many seconds of all slots, in jobs of so many ms. */
async function backlog(fixture: ProcessFixture, tenant: string, ms: number, seconds: number, task = "slow 0", priority = 5): Promise<void> {
  await fixture.enqueueMany(task, Math.ceil((seconds * 1_000 * WORKERS * SLOTS) / ms), { ms }, { tenant, priority });
}

describeOn("embedded18", () => {
  it("tenants with a backlog get worker time by weight, through a crash, and by new weights when they are set", async () => {
    await using fixture = await freshFixture();
    const tenants = [
      { name: "one", weight: 1, ms: 60 },
      { name: "two", weight: 2, ms: 25 },
      { name: "three", weight: 3, ms: 150 },
      { name: "four", weight: 4, ms: 40 },
    ];
    for (const { name, weight, ms } of tenants) {
      await fixture.pawl.tenants.update(name, { weight });
      await backlog(fixture, name, ms, 14);
    }
    const workers = await Promise.all(
      Array.from({ length: WORKERS }, () => fixture.worker({ ...STEADY_LEASES.work, concurrency: SLOTS }, STEADY_LEASES.open)),
    );
    const from = (await storeTimeMs(fixture)) + 1_000;
    await waitUntil(fixture, from + 3_000);
    await Promise.all([workers[0]?.kill(), fixture.worker({ ...STEADY_LEASES.work, concurrency: SLOTS }, STEADY_LEASES.open)]);
    await settledUntil(fixture, from + 10_000);
    const had = await workedBetween(fixture, "j.tenant", from, from + 10_000);
    const total = [...had.values()].reduce((sum, ms) => sum + ms, 0);
    const parts = tenants.map(({ name, weight }) => (had.get(name) ?? 0) / total / (weight / 10));
    expect(fairnessIndex(parts), `parts of their due: ${parts}`).toBeGreaterThanOrEqual(0.95);
    for (const part of parts) expect(Math.abs(part - 1), `parts of their due: ${parts}`).toBeLessThanOrEqual(0.1);

    await fixture.pawl.tenants.update("one", { weight: 12 });
    await fixture.pawl.tenants.update("four", { weight: null });
    const changed = (await storeTimeMs(fixture)) + 2_500;
    await settledUntil(fixture, changed + 3_000);
    const then = await workedBetween(fixture, "j.tenant", changed, changed + 3_000);
    const all = [...then.values()].reduce((sum, ms) => sum + ms, 0);
    expect((then.get("one") ?? 0) / all, "12 of 18").toBeGreaterThan(0.6);
    expect((then.get("one") ?? 0) / all, "12 of 18").toBeLessThan(0.73);
  }, 150_000);

  it("fifty tasks buy a tenant no bigger share than one, and the lowest priority gets one part in a hundred under a flood of all others, through a crash", async () => {
    await using fixture = await freshFixture();
    const seconds = 8;
    for (const priority of [9, 8, 7, 6, 4, 3, 2, 1, 0]) await backlog(fixture, "flood", 20 + priority * 5, seconds, "slow 0", priority);
    await backlog(fixture, "one", 45, seconds);
    for (let no = 0; no < 50; no++) await fixture.enqueueMany(`slow ${no}`, 100, { ms: 5 + no }, { tenant: "many" });
    const start = () => fixture.worker({ ...STEADY_LEASES.work, concurrency: SLOTS }, STEADY_LEASES.open);
    const workers = await Promise.all(Array.from({ length: WORKERS }, start));
    const from = (await storeTimeMs(fixture)) + 1_000;
    await waitUntil(fixture, from + 2_000);
    await Promise.all([workers[0]?.kill(), start()]);
    await settledUntil(fixture, from + seconds * 1_000);
    const byTenant = await workedBetween(fixture, "case when j.priority = 5 then j.tenant else 'other' end", from, from + seconds * 1_000);
    const ratio = (byTenant.get("many") ?? 0) / (byTenant.get("one") ?? 1);
    expect(ratio, "fifty tasks beside one").toBeGreaterThan(0.9);
    expect(ratio, "fifty tasks beside one").toBeLessThan(1.1);
    const byPriority = await workedBetween(fixture, "j.priority", from, from + seconds * 1_000);
    const total = [...byPriority.values()].reduce((sum, ms) => sum + ms, 0);
    expect((byPriority.get("0") ?? 0) / total, "the lowest priority").toBeGreaterThanOrEqual(0.008);
    expect((byPriority.get("9") ?? 0) / total, "the highest").toBeGreaterThan(0.3);
  }, 150_000);

  it("a new job of a small tenant starts within a second, whatever backlog another has", async () => {
    await using fixture = await freshFixture();
    await fixture.enqueueMany("slow 0", 50_000, { ms: 50 }, { tenant: "big" });
    await Promise.all(Array.from({ length: WORKERS }, () => fixture.worker({ concurrency: SLOTS })));
    const started = await storeTimeMs(fixture);
    await waitUntil(fixture, started + 1_000);
    const waits: number[] = [];
    for (let no = 0; no < 99; no++) {
      const { id } = await fixture.enqueue("slow", { ms: 50 - (no % 50) }, { tenant: `small ${no}` });
      const from = Date.now();
      await fixture.started(id, 10_000);
      waits.push((fixture.handlerLog.of(id, "start")[0]?.at as number) - from);
    }
    waits.sort((a, b) => a - b);
    expect(waits.at(-1), `the longest; half of them within ${waits[49]} ms`).toBeLessThan(1_000);
  }, 150_000);
});
