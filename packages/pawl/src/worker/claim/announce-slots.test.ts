import { afterEach, describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { serviceOf } from "../../service-of.js";
import { openTest, type TestOptions, type TestPawl } from "../../testing/open.js";

let world: TestPawl;
afterEach(() => world.close());

async function open(options: TestOptions): Promise<TestPawl> {
  world = await openTest(options);
  return world;
}

const many = (count: number) => Array.from({ length: count }, () => ({}));
const sleeping = (name: string, ms: number) => task(name, () => new Promise<void>((resolve) => world.clock.after(ms, resolve)));
const slotsByWorker = async () =>
  (await world.pawl.workers.list()).items.map(({ name, slots, oldest }) => ({ name, slots, oldest: oldest?.getTime() }));

describe("a worker tells the others how full it is", () => {
  test("with its first sign of life, and within seconds when all slots are taken or not any more", async () => {
    const ends: (() => void)[] = [];
    const held = task("held", () => new Promise<void>((resolve) => void ends.push(resolve)));
    await open({ tasks: [held], work: { name: "ana", concurrency: 2 } });
    expect(await slotsByWorker()).toEqual([{ name: "ana", slots: { total: 2, inUse: 0, overrun: 0 }, oldest: undefined }]);
    await world.advance("20s");
    const since = world.clock.now();
    await world.pawl.enqueueMany(held, many(3));
    await world.advance("6s");
    expect(await slotsByWorker()).toEqual([{ name: "ana", slots: { total: 2, inUse: 2, overrun: 0 }, oldest: since }]);
    await world.advance("30s");
    for (const end of ends.splice(0)) end();
    await world.advance("6s");
    const [ana] = await slotsByWorker();
    expect(ana).toMatchObject({ slots: { inUse: 1 } });
    expect(ana?.oldest, "the third began when the others ended").toBeGreaterThan(since + 30_000);
    for (const end of ends.splice(0)) end();
  });

  test("and how many handlers go on though their time is up", async () => {
    let end = () => {};
    const deaf = task("deaf", { timeout: "1s", retry: 0 }, () => new Promise<void>((resolve) => (end = resolve)));
    await open({ tasks: [deaf], work: { name: "ana", concurrency: 2 } });
    const since = world.clock.now();
    await world.pawl.enqueue(deaf, {});
    await world.advance("30s");
    expect(await slotsByWorker()).toMatchObject([{ slots: { total: 2, overrun: 1 }, oldest: since }]);
    await world.advance("60s");
    const [found] = (await world.pawl.doctor()).filter(({ check }) => check === "stuck");
    expect(found?.found).toMatch(/^at worker ana 1 handler of task deaf goes on though its time is up, for \d+ s by now$/);
    end();
    await world.advance("20s");
    expect(await slotsByWorker()).toMatchObject([{ slots: { total: 2, inUse: 0, overrun: 0 }, oldest: undefined }]);
    expect((await world.pawl.doctor()).filter(({ check }) => check === "stuck")).toEqual([]);
  });

  test("without a word per job: a worker that quick jobs fill and free all the time says so every few seconds at most", async () => {
    let said = 0;
    const quick = sleeping("quick", 40);
    await open({ tasks: [quick], work: { concurrency: 2 } });
    world.pawl.on("store.operation", ({ operation }) => void (operation === "workers.publish" && said++));
    await world.pawl.enqueueMany(quick, many(600));
    await world.advance("15s");
    expect(await world.pawl.counts()).toMatchObject({ succeeded: 600 });
    expect(said).toBeGreaterThan(1);
    expect(said).toBeLessThan(8);
  });

  test("what a worker elsewhere runs is told by its host", async () => {
    await open({ work: false });
    const host = serviceOf(world.pawl).host({ name: "python", instance: "00000000-0000-4000-8000-00000000000a" });
    await world.pawl.enqueueMany("resize", many(3));
    const since = world.clock.now();
    const [lease] = await host.claim({ tasks: [{ name: "resize" }], limit: 2, concurrency: 2, wait: "1s" });
    await world.advance("6s");
    expect(await slotsByWorker()).toEqual([{ name: "python", slots: { total: 2, inUse: 2, overrun: 0 }, oldest: since }]);
    await host.settle(
      (lease?.jobs ?? []).map(({ id }) => ({ lease: lease?.lease ?? ("0" as never), job: id, reportedOutcome: { outcome: "succeeded" } })),
    );
    await world.advance("6s");
    expect(await slotsByWorker()).toMatchObject([{ slots: { inUse: 0 } }]);
    await host.stop();
  });
});
