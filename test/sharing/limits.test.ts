import { expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { type Interval, largestBurst, maxOverlap } from "../support/overlap.js";
import { describeOn } from "../support/servers/servers.js";

/** The most jobs that were held at one instant, by the history: from claim to end where a worker was lost with them. */
async function mostHeld(fixture: ProcessFixture, where: string): Promise<number> {
  const held = await fixture.rows<Interval>(
    `select (extract(epoch from a.started_at) * 1000)::float8 as from, (extract(epoch from a.finished_at) * 1000)::float8 as to
     from pawl.any_attempt a join pawl.any_job j on j.id = a.job where ${where} and a.worker is not null`,
  );
  return maxOverlap(held);
}

async function begun(fixture: ProcessFixture, where: string): Promise<readonly number[]> {
  const rows = await fixture.rows<{ at: number }>(
    `select (extract(epoch from a.started_at) * 1000)::float8 as at from pawl.any_attempt a join pawl.any_job j on j.id = a.job where ${where} and a.worker is not null`,
  );
  return rows.map(({ at }) => at);
}

describeOn("embedded18", () => {
  it("limits of a queue, a task and a tenant are never exceeded by four workers, two of them killed, and no slot is left", async () => {
    await using fixture = await freshFixture();
    await fixture.pawl.queues.update("narrow", { concurrency: 5 });
    await fixture.pawl.tenants.update("small", { concurrency: 3 });
    await fixture.pawl.tasks.update("slow 1", { concurrency: 2, rate: { limit: 20, per: "1s", burst: 2 } });
    for (const ms of [5, 40, 90, 250]) {
      await fixture.enqueueMany("slow 0", 20, { ms }, { queue: "narrow", tenant: "large" });
      await fixture.enqueueMany("slow 0", 8, { ms }, { queue: "narrow", tenant: "small" });
      await fixture.enqueueMany("slow 1", 8, { ms }, { queue: "wide", tenant: "large" });
      await fixture.enqueueMany("slow 2", 50, { ms }, { queue: "wide", tenant: "large" });
    }
    const start = () => fixture.worker({ ...STEADY_LEASES.work, concurrency: 8 }, STEADY_LEASES.open);
    const workers = await Promise.all([start(), start(), start(), start()]);
    const slots = () => fixture.one<number>("select count(*)::int from pawl.slot");
    for (const victim of workers.slice(0, 2)) {
      await eventually("slots are held", async () => (await slots()) >= 5);
      await victim.kill();
    }
    await start();
    await start();
    await fixture.drained();
    expect(await mostHeld(fixture, "j.queue = 'narrow'"), "of the queue").toBe(5);
    expect(await mostHeld(fixture, "j.tenant = 'small'"), "of the tenant").toBeLessThanOrEqual(3);
    expect(await mostHeld(fixture, "j.task = 'slow 1'"), "of the task").toBeLessThanOrEqual(2);
    // Tokens are taken by claims: what two slots hold may begin a little later, and closer together.
    expect(largestBurst(await begun(fixture, "j.task = 'slow 1'"), 20 / 1_000), "of the task's rate").toBeLessThanOrEqual(2 + 2);
    expect(await mostHeld(fixture, "j.task = 'slow 2'"), "others are not held back").toBeGreaterThan(10);
    expect(await slots(), "slots left").toBe(0);
    expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 344, dead: 0 });
    await fixture.check();
  }, 150_000);
});
