import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import type { SinkLine } from "../support/sink.js";
import { STEADY } from "../support/stage.js";

const HAS = 4;

/** The most that was in use at once in each process, by the lines its handlers left, in their order. */
function mostInUse(lines: readonly SinkLine[]): ReadonlyMap<number, number> {
  const use = new Map<number, { now: number; most: number }>();
  for (const { pid, task, what } of lines) {
    const taken = Number(/^takes (\d+)$/.exec(task)?.[1] ?? 0);
    const own = use.get(pid) ?? { now: 0, most: 0 };
    use.set(pid, own);
    own.now += what === "start" ? taken : -taken;
    own.most = Math.max(own.most, own.now);
  }
  return new Map([...use].map(([pid, { most }]) => [pid, most]));
}

describeOn("embedded18", () => {
  describe("amounts in four processes", () => {
    it("are never oversubscribed and never lost, though one that holds them is killed, and large jobs have their turn", async () => {
      await using stage = await freshStage();
      for (let round = 0; round < 20; round++) {
        await stage.enqueueMany("takes 1", 8, { ms: 20 + (round % 5) * 60 });
        await stage.enqueueMany("takes 3", 1, { ms: 150 });
      }
      const work = { ...STEADY.work, concurrency: 10, amounts: { memory: HAS } };
      const workers = await Promise.all([1, 2, 3, 4].map(() => stage.worker(work, STEADY.open)));
      const [victim] = workers;
      await eventually("the one to be killed holds large and small ones", () => {
        const open = new Set<string>();
        for (const { pid, task, what, job } of stage.sink.lines())
          if (pid === victim?.pid) what === "start" ? open.add(`${task} ${job}`) : open.delete(`${task} ${job}`);
        return open.size >= 2;
      });
      await victim?.kill();
      await stage.drained();

      const most = mostInUse(stage.sink.lines());
      expect(most.size).toBe(4);
      for (const [pid, used] of most) expect(used, `process ${pid}`).toBeLessThanOrEqual(HAS);
      expect(Math.max(...most.values()), "all of it is used").toBe(HAS);
      expect(await stage.pawl.counts()).toMatchObject({ succeeded: 180, dead: 0 });
      await stage.check();
    }, 240_000);
  });

  describe("jobs that no live worker can run", () => {
    it("are reported with what is missing, and run when a worker that has it comes", async () => {
      await using stage = await freshStage();
      await stage.enqueue("needs gpu");
      await stage.enqueue("takes 3", { ms: 1 });
      const whys = async () => (await stage.pawl.unserved()).map(({ lane, why }) => `${lane.task}: ${why}`);
      expect(await whys()).toEqual(["needs gpu: no worker is live", "takes 3: no worker is live"]);
      const plain = await stage.worker({ ...STEADY.work, name: "plain", amounts: { memory: 1 } }, STEADY.open);
      await eventually("it is known", async () => (await stage.pawl.workers()).length === 1);
      expect(await whys()).toEqual([
        "needs gpu: no live worker that has its task has the tag gpu",
        "takes 3: it needs 3 of memory, and the live workers that have its task have 1 at most",
      ]);
      await stage.worker({ ...STEADY.work, name: "fast", tags: ["gpu"], amounts: { memory: 3 } }, STEADY.open);
      await stage.drained();
      expect(await whys()).toEqual([]);
      expect((await stage.pawl.workers()).map(({ name }) => name)).toEqual(["fast", "plain"]);
      await plain.stop();
      expect(
        (await stage.pawl.workers()).map(({ name }) => name),
        "it has said goodbye",
      ).toEqual(["fast"]);
    }, 240_000);
  });
});
