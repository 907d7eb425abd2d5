import { expect, test } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { ANA, BOB, DAY, FAILED, type World } from "../../packages/pawl/conformance/world.js";
import { SimulatedProcesses } from "../support/processes/simulated-processes.js";
import { describeOn } from "../support/servers/servers.js";

const KEEP = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };
const NAMES = "select name from pawl.worker order by name";

/** Prunes as a store does that has been running for so long. */
async function years(months: number, world: World): Promise<void> {
  for (let month = 0; month < months; month++) {
    world.clock.advance(31 * DAY);
    await dutiesOf(world.store).prune(KEEP);
  }
}

describeOn("embedded18", () => {
  test("the instances of workers go some months after their last sign of life, when no history shows them", async () => {
    await using processes = await SimulatedProcesses.open();
    const world = processes.start();
    await world.run(await world.add(), undefined, undefined, { worker: ANA });
    await years(3, world);
    expect(await processes.column(NAMES), "too soon to be sure").toEqual(["ana"]);
    const recent = processes.start();
    await recent.run(await recent.add(), undefined, undefined, { worker: BOB });
    await years(5, world);
    expect(await processes.column(NAMES)).toEqual(["bob"]);
  });

  test("an instance is kept for as long as a job that it worked on, however old", async () => {
    await using processes = await SimulatedProcesses.open();
    const world = processes.start();
    const job = await world.add();
    await world.run(job, FAILED, [400 * DAY], { worker: ANA });
    await years(12, world);
    expect(await world.store.jobs.history("everyone", job)).toMatchObject([{ outcome: "failed", worker: "ana" }]);
    expect(await processes.column(NAMES)).toEqual(["ana"]);
  });

  test("an instance that holds a lease is kept", async () => {
    await using processes = await SimulatedProcesses.open();
    const world = processes.start();
    await world.add();
    await world.hold({ worker: ANA, duration: 4_000 * DAY });
    await years(12, world);
    expect(await processes.column(NAMES)).toEqual(["ana"]);
  });

  test("a worker that gives a sign of life is known by the same number", async () => {
    await using processes = await SimulatedProcesses.open();
    const row = "select id || ' ' || seen_at::date from pawl.worker";
    await processes.start().claim({ worker: ANA });
    const [first] = await processes.column<string>(row);
    processes.clock.advance(DAY);
    await processes.start().claim({ worker: ANA });
    expect([first, ...(await processes.column<string>(row))]).toEqual(["1 2026-01-15", "1 2026-01-16"]);
  });

  test("a queue and task that have no job left are forgotten, and counted again when one comes", async () => {
    await using processes = await SimulatedProcesses.open();
    const world = processes.start();
    const counters = () => processes.column("select task from pawl.counter order by task");
    const job = await world.add({ task: "gone" });
    await world.add({ task: "stays" });
    await dutiesOf(world.store).fold(100);
    await world.store.jobs.cancel("everyone", job, "no need");
    await world.store.jobs.delete("everyone", job);
    await dutiesOf(world.store).fold(100);
    expect(await counters()).toEqual(["gone", "stays"]);
    expect(await dutiesOf(world.store).prune(KEEP)).toMatchObject({ forgotten: 1 });
    expect(await counters()).toEqual(["stays"]);
    await world.add({ task: "gone" });
    await dutiesOf(world.store).fold(100);
    expect((await world.store.records.counts()).map(({ task, counts }) => [task, counts.ready])).toEqual([
      ["gone", 1],
      ["stays", 1],
    ]);
  });
});
