import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import type { HandlerLogLine } from "../support/processes/handler-log.js";
import { describeOn } from "../support/servers/servers.js";

const HAS = 4;

/** The most that was in use at once in each process, by the lines its handlers left, in their order. */
function mostInUse(lines: readonly HandlerLogLine[]): ReadonlyMap<number, number> {
  const use = new Map<number, { now: number; most: number }>();
  for (const { pid, task, step } of lines) {
    const taken = Number(/^takes (\d+)$/.exec(task)?.[1] ?? 0);
    const own = use.get(pid) ?? { now: 0, most: 0 };
    use.set(pid, own);
    own.now += step === "start" ? taken : -taken;
    own.most = Math.max(own.most, own.now);
  }
  return new Map([...use].map(([pid, { most }]) => [pid, most]));
}

describeOn("embedded18", () => {
  describe("resources in four processes", () => {
    it("are never oversubscribed and never lost, though one that holds them is killed, and large jobs have their turn", async () => {
      await using fixture = await freshFixture();
      for (let round = 0; round < 20; round++) {
        await fixture.enqueueMany("takes 1", 8, { ms: 20 + (round % 5) * 60 });
        await fixture.enqueueMany("takes 3", 1, { ms: 150 });
      }
      const work = { ...STEADY_LEASES.work, concurrency: 10, provides: { resources: { memory: HAS } } };
      const workers = await Promise.all([1, 2, 3, 4].map(() => fixture.worker(work, STEADY_LEASES.open)));
      const [victim] = workers;
      await eventually("the one to be killed holds large and small ones", () => {
        const open = new Set<string>();
        for (const { pid, task, step, job } of fixture.handlerLog.lines())
          if (pid === victim?.pid) step === "start" ? open.add(`${task} ${job}`) : open.delete(`${task} ${job}`);
        return open.size >= 2;
      });
      await victim?.kill();
      await fixture.drained();

      const most = mostInUse(fixture.handlerLog.lines());
      expect(most.size).toBe(4);
      for (const [pid, used] of most) expect(used, `process ${pid}`).toBeLessThanOrEqual(HAS);
      expect(Math.max(...most.values()), "all of it is used").toBe(HAS);
      expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 180, dead: 0 });
      await fixture.check();
    }, 240_000);
  });

  describe("jobs that no live worker can run", () => {
    it("are reported with what is missing, and run when a worker that has it comes", async () => {
      await using fixture = await freshFixture();
      await fixture.enqueue("needs gpu");
      await fixture.enqueue("takes 3", { ms: 1 });
      const whys = async () => (await fixture.pawl.lanes.list({ unserved: true })).items.map(({ lane, why }) => `${lane.task}: ${why}`);
      expect(await whys()).toEqual(["needs gpu: no worker is live", "takes 3: no worker is live"]);
      const plain = await fixture.worker({ ...STEADY_LEASES.work, name: "plain", provides: { resources: { memory: 1 } } }, STEADY_LEASES.open);
      await eventually("it is known", async () => (await fixture.pawl.workers.list()).items.length === 1);
      expect(await whys()).toEqual([
        "needs gpu: no live worker that has its task has the capability gpu",
        "takes 3: it needs 3 of memory, and the live workers that have its task have 1 at most",
      ]);
      await fixture.worker(
        { ...STEADY_LEASES.work, name: "fast", provides: { capabilities: ["gpu"], resources: { memory: 3 } } },
        STEADY_LEASES.open,
      );
      await fixture.drained();
      expect(await whys()).toEqual([]);
      expect((await fixture.pawl.workers.list()).items.map(({ name }) => name)).toEqual(["fast", "plain"]);
      await plain.stop();
      expect(
        (await fixture.pawl.workers.list()).items.map(({ name }) => name),
        "it has said goodbye",
      ).toEqual(["fast"]);
    }, 240_000);
  });
});
