import { expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { burstOf, type Interval, mostAtOnce } from "../support/overlap.js";
import { describeOn } from "../support/servers.js";
import { STEADY, type Stage } from "../support/stage.js";

/** The most jobs that were held at one instant, by the history: from claim to end where a worker was lost with them. */
async function mostHeld(stage: Stage, where: string): Promise<number> {
  const held = await stage.rows<Interval>(
    `select (extract(epoch from a.started_at) * 1000)::float8 as from, (extract(epoch from a.finished_at) * 1000)::float8 as to
     from pawl.any_attempt a join pawl.any_job j on j.id = a.job where ${where} and a.worker is not null`,
  );
  return mostAtOnce(held);
}

async function begun(stage: Stage, where: string): Promise<readonly number[]> {
  const rows = await stage.rows<{ at: number }>(
    `select (extract(epoch from a.started_at) * 1000)::float8 as at from pawl.any_attempt a join pawl.any_job j on j.id = a.job where ${where} and a.worker is not null`,
  );
  return rows.map(({ at }) => at);
}

describeOn("embedded18", () => {
  it("limits of a queue, a task and a tenant are never exceeded by four workers, two of them killed, and no slot is left", async () => {
    await using stage = await freshStage();
    await stage.pawl.queues.set("narrow", { concurrency: 5 });
    await stage.pawl.tenants.set("small", { concurrency: 3 });
    await stage.pawl.tasks.set("slow 1", { concurrency: 2, rate: { limit: 20, per: "1s", burst: 2 } });
    for (const ms of [5, 40, 90, 250]) {
      await stage.enqueueMany("slow 0", 20, { ms }, { queue: "narrow", tenant: "large" });
      await stage.enqueueMany("slow 0", 8, { ms }, { queue: "narrow", tenant: "small" });
      await stage.enqueueMany("slow 1", 8, { ms }, { queue: "wide", tenant: "large" });
      await stage.enqueueMany("slow 2", 50, { ms }, { queue: "wide", tenant: "large" });
    }
    const start = () => stage.worker({ ...STEADY.work, concurrency: 8 }, STEADY.open);
    const workers = await Promise.all([start(), start(), start(), start()]);
    const slots = () => stage.one<number>("select count(*)::int from pawl.slot");
    for (const victim of workers.slice(0, 2)) {
      await eventually("slots are held", async () => (await slots()) >= 5);
      await victim.kill();
    }
    await start();
    await start();
    await stage.drained();
    expect(await mostHeld(stage, "j.queue = 'narrow'"), "of the queue").toBe(5);
    expect(await mostHeld(stage, "j.tenant = 'small'"), "of the tenant").toBeLessThanOrEqual(3);
    expect(await mostHeld(stage, "j.task = 'slow 1'"), "of the task").toBeLessThanOrEqual(2);
    // Tokens are taken by claims: what two slots hold may begin a little later, and closer together.
    expect(burstOf(await begun(stage, "j.task = 'slow 1'"), 20 / 1_000), "of the task's rate").toBeLessThanOrEqual(2 + 2);
    expect(await mostHeld(stage, "j.task = 'slow 2'"), "others are not held back").toBeGreaterThan(10);
    expect(await slots(), "slots left").toBe(0);
    expect(await stage.pawl.counts()).toMatchObject({ succeeded: 344, dead: 0 });
    await stage.check();
  }, 150_000);
});
