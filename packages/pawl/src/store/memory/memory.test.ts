import { describe, expect, it, onTestFinished } from "vitest";
import { dutiesOf } from "../../../conformance/duties.js";
import { storeConformance } from "../../../conformance/index.js";
import { runModel } from "../../../conformance/model.js";
import { FAILED, HOUR, lane, MINUTE, SUCCEEDED, TestClock, World } from "../../../conformance/world.js";
import { task } from "../../core/jobs/task.js";
import { startPawl } from "../../pawl.js";
import type { Wakeup } from "../port/index.js";
import { memoryStore } from "./index.js";

storeConformance({ name: "memory", make: async (now) => memoryStore({ now }) });

describe("memory store as the model", () => {
  it("agrees with itself over random commands, every step of which the lifecycle allows", async () => {
    await runModel({ make: async (now) => memoryStore({ now }), runs: 30 });
  });
});

describe("memory store on its own", () => {
  const listen = () => {
    const clock = new TestClock();
    const store = memoryStore({ now: clock.now });
    const wakeups: Wakeup[] = [];
    const stop = store.onWakeup((wakeup) => wakeups.push(wakeup));
    return { w: new World(store, clock), clock, store, stop, take: () => wakeups.splice(0) };
  };

  it("tells of ready lanes, of due times, of intents and of ends, once per step", async () => {
    const { w, clock, store, take } = listen();
    await w.enqueue({}, {}, { task: "other" }, { delay: HOUR }, { delay: MINUTE });
    expect(take()).toEqual([
      { kind: "ready", lanes: [lane(), lane({ task: "other" })] },
      { kind: "scheduled", dueIn: MINUTE },
    ]);
    const held = await w.holdAll();
    expect(take()).toEqual([]);
    const id = held[0]?.job.id;
    if (id === undefined) throw new Error("nothing held");
    await store.jobs.cancel("everyone", id, "stop");
    expect(take()).toEqual([{ kind: "intent" }]);
    await w.settleAll(held.slice(0, 1), FAILED);
    expect(take()).toEqual([{ kind: "finished", jobs: [id] }]);
    await w.settleAll(held.slice(1), FAILED, [0]);
    expect(take()).toEqual([{ kind: "ready", lanes: [lane()] }]);
    clock.advance(MINUTE);
    await dutiesOf(store).promote(10);
    expect(take()).toEqual([{ kind: "ready", lanes: [lane()] }]);
    await store.lanes.pause("queue", "default");
    expect(take()).toEqual([{ kind: "lanes" }]);
  });

  it("tells of the dependents a settle releases", async () => {
    const { w, take } = listen();
    const parent = await w.add();
    await w.add({ task: "child", after: [parent] });
    take();
    await w.run(parent, SUCCEEDED);
    expect(take()).toEqual([
      { kind: "ready", lanes: [lane({ task: "child" })] },
      { kind: "finished", jobs: [parent] },
    ]);
  });

  it("works on when a listener throws, and no longer tells one that left", async () => {
    const { w, store, stop, take } = listen();
    store.onWakeup(() => {
      throw new Error("not my day");
    });
    await w.add();
    expect(take()).toHaveLength(1);
    stop();
    await w.add();
    expect(take()).toEqual([]);
  });

  it("has no transactions, and nothing can be enqueued in one", async () => {
    const store = memoryStore();
    expect(store.transactions).toBeUndefined();
    const move = task("move", () => {});
    const pawl = await startPawl(store, { tasks: [move] });
    onTestFinished(() => pawl.close());
    const tx = { query: async () => ({ rows: [] }) };
    const error = { code: "transaction_unsupported", details: { engine: "memory" } };
    await expect(pawl.enqueue(move, 1, { tx })).rejects.toMatchObject(error);
    await expect(pawl.enqueueMany(move, [1], { tx })).rejects.toMatchObject(error);
    expect((await pawl.jobs.list()).items).toEqual([]);
  });

  it("refuses a batch with an id that exists, and stores nothing of it", async () => {
    const { w, store } = listen();
    const job = w.newJob();
    await store.jobs.enqueue([job]);
    await expect(store.jobs.enqueue([w.newJob(), job])).rejects.toMatchObject({ code: "store_failed" });
    expect((await store.jobs.list("everyone", {}, { limit: 10 })).jobs).toHaveLength(1);
  });

  it("is closed for good once it is closed", async () => {
    const { store } = listen();
    await store.close();
    await store.close();
    await expect(store.duties.poll()).rejects.toMatchObject({ code: "closed" });
  });

  it("stays fast with a long lane and many delayed jobs", async () => {
    const { w, clock, store } = listen();
    for (let n = 0; n < 5; n++)
      await w.enqueue(...Array.from({ length: 1_000 }, () => ({})), ...Array.from({ length: 1_000 }, () => ({ delay: n + 1 })));
    clock.advance(HOUR);
    expect((await dutiesOf(store).promote(100_000)).count).toBe(5_000);
    let claimed = 0;
    for (let held = await w.holdAll({ limit: 10 }); held.length > 0; held = await w.holdAll({ limit: 10 })) {
      claimed += held.length;
      await w.settleAll(held, SUCCEEDED);
    }
    expect(claimed).toBe(10_000);
  });
});
