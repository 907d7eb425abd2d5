import { expect } from "vitest";
import type { Test } from "../suite.js";
import { FAILED, lane } from "../world.js";

export function laneTests(test: Test): void {
  test("live lanes are those with ready jobs, in order, each once", async (w) => {
    const specs = [{ queue: "b" }, { priority: 9 }, { tenant: "umbrella" }, { task: "another" }, {}, {}] as const;
    for (const spec of specs) await w.add(spec);
    await w.add({ queue: "later", delay: 1 });
    const { lanes, suspects } = await w.store.lanes.live(undefined, ["work", "another"]);
    expect(lanes).toEqual([lane({ queue: "b" }), lane({ task: "another" }), lane(), lane({ tenant: "umbrella" }), lane({ priority: 9 })]);
    expect(suspects).toBe(false);
  });

  test("live lanes are of the queues and tasks asked for", async (w) => {
    for (const queue of ["a", "b"]) for (const task of ["x", "y"]) await w.add({ queue, task });
    const live = async (queues: string[] | undefined, tasks: string[]) =>
      (await w.store.lanes.live(queues, tasks)).lanes.map(({ queue, task }) => queue + task);
    expect(await live(undefined, ["x"])).toEqual(["ax", "bx"]);
    expect(await live(["b"], ["x", "y"])).toEqual(["bx", "by"]);
    expect(await live(["a"], ["y"])).toEqual(["ay"]);
    expect(await live([], ["x"])).toEqual([]);
    expect(await live(undefined, [])).toEqual([]);
    expect(await live(["none"], ["x"])).toEqual([]);
  });

  test("a lane is live as long as it has a ready job, and again when one comes back", async (w) => {
    const live = async () => (await w.store.lanes.live(undefined, ["work"])).lanes;
    expect(await live()).toEqual([]);
    await w.add();
    expect(await live()).toEqual([lane()]);
    const held = await w.hold();
    expect(await live()).toEqual([]);
    await w.settle(held, FAILED, [0]);
    expect(await live()).toEqual([lane()]);
    await w.store.jobs.cancel("everyone", held.job.id, "no need");
    expect(await live()).toEqual([]);
  });

  for (const [kind, name] of [
    ["queue", "default"],
    ["task", "work"],
  ] as const) {
    test(`a paused ${kind} gives nothing until it is resumed`, async (w) => {
      const id = await w.add();
      const other = { queue: "other", task: "another" };
      const elsewhere = await w.add(other);
      await w.store.lanes.pause(kind, name);
      expect(await w.claim()).toBeUndefined();
      expect((await w.store.lanes.live(undefined, ["work"])).lanes).toEqual([]);
      expect(await w.state(id), "the jobs stay ready").toBe("ready");
      expect(await w.claimIds({ lanes: [lane(), lane(other)] }), "others go on").toEqual([elsewhere]);
      await w.store.lanes.resume(kind, name);
      expect((await w.store.lanes.live(undefined, ["work"])).lanes).toEqual([lane()]);
      expect(await w.claimIds()).toEqual([id]);
    });
  }

  test("jobs enqueued while their queue is paused wait in it", async (w) => {
    await w.store.lanes.pause("queue", "default");
    const id = await w.add();
    expect(await w.claim()).toBeUndefined();
    await w.store.lanes.resume("queue", "default");
    expect(await w.claimIds()).toEqual([id]);
  });

  test("a pause lets running jobs finish", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.lanes.pause("queue", "default");
    await w.settle(held, { kind: "succeeded" });
    expect(await w.state(id)).toBe("succeeded");
  });

  test("pausing and resuming again changes nothing more", async (w) => {
    await w.store.lanes.resume("task", "work");
    for (let n = 0; n < 2; n++) {
      await w.store.lanes.pause("task", "work");
      await w.store.lanes.pause("queue", "z");
      await w.store.lanes.pause("queue", "a");
    }
    expect(await w.store.lanes.paused()).toEqual([
      { kind: "queue", name: "a" },
      { kind: "queue", name: "z" },
      { kind: "task", name: "work" },
    ]);
    for (let n = 0; n < 2; n++) await w.store.lanes.resume("queue", "a");
    expect(await w.store.lanes.paused()).toEqual([
      { kind: "queue", name: "z" },
      { kind: "task", name: "work" },
    ]);
  });

  test("a queue and a task of the same name are paused apart", async (w) => {
    const id = await w.add({ queue: "same", task: "same" });
    await w.store.lanes.pause("queue", "same");
    await w.store.lanes.pause("task", "same");
    await w.store.lanes.resume("queue", "same");
    const lanes = [lane({ queue: "same", task: "same" })];
    expect(await w.claim({ lanes })).toBeUndefined();
    await w.store.lanes.resume("task", "same");
    expect(await w.claimIds({ lanes })).toEqual([id]);
  });
}
