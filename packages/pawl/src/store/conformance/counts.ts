import { expect } from "vitest";
import { STATES, type State } from "../../core/job.js";
import type { Test } from "./suite.js";
import { FAILED, HOUR, KILLED, lane, SUCCEEDED } from "./world.js";

const counts = (some: Partial<Record<State, number>>) => ({ ...Object.fromEntries(STATES.map((state) => [state, 0])), ...some });

export function countTests(test: Test): void {
  test("an empty store counts nothing", async (w) => {
    expect(await w.store.records.counts()).toEqual([]);
  });

  test("jobs are counted by queue, task and state", async (w) => {
    const parent = await w.add();
    await w.add({ after: [parent] });
    await w.add({ delay: HOUR });
    await w.store.jobs.pause("everyone", await w.add());
    await w.add({ task: "send" });
    await w.add({ task: "send", tenant: "umbrella" });
    await w.add({ queue: "mail", priority: 1 });
    await w.add({ queue: "mail", priority: 2 });
    const rows = [...(await w.store.records.counts())].sort((a, b) => (a.queue + a.task < b.queue + b.task ? -1 : 1));
    expect(rows).toEqual([
      { queue: "default", task: "send", counts: counts({ ready: 2 }) },
      { queue: "default", task: "work", counts: counts({ ready: 1, blocked: 1, scheduled: 1, parked: 1 }) },
      { queue: "mail", task: "work", counts: counts({ ready: 2 }) },
    ]);
  });

  test("counts follow a job through its life", async (w) => {
    const seen = async () => (await w.store.records.counts())[0]?.counts;
    const id = await w.add();
    expect(await seen()).toEqual(counts({ ready: 1 }));
    const held = await w.hold();
    expect(await seen()).toEqual(counts({ running: 1 }));
    await w.settle(held, FAILED, [HOUR]);
    expect(await seen()).toEqual(counts({ scheduled: 1 }));
    w.clock.advance(HOUR);
    await w.store.duties.promote(10);
    await w.run(id, KILLED);
    expect(await seen()).toEqual(counts({ dead: 1 }));
    await w.store.jobs.redrive("everyone", id, {});
    expect(await seen()).toEqual(counts({ ready: 1 }));
    await w.hold();
    await w.vanish();
    expect(await seen()).toEqual(counts({ ready: 1 }));
    await w.store.jobs.cancel("everyone", id, "enough");
    expect(await seen()).toEqual(counts({ cancelled: 1 }));
    await w.store.jobs.drop("everyone", id);
    expect(await seen()).toBeUndefined();
  });

  test("counts are right after folding, as before", async (w) => {
    for (let n = 0; n < 5; n++) await w.add();
    const held = await w.holdAll({ limit: 3 });
    await w.settleAll(held, SUCCEEDED);
    const before = await w.store.records.counts();
    await w.store.duties.fold(1_000);
    await w.store.duties.fold(1_000);
    expect(await w.store.records.counts()).toEqual(before);
    expect(before).toEqual([{ queue: "default", task: "work", counts: counts({ ready: 2, succeeded: 3 }) }]);
  });

  test("a doomed family is counted as dead", async (w) => {
    const parent = await w.add();
    const child = await w.add({ after: [parent] });
    await w.add({ after: [child] });
    await w.run(parent, KILLED, undefined, { lanes: [lane()] });
    expect(await w.store.records.counts()).toEqual([{ queue: "default", task: "work", counts: counts({ dead: 3 }) }]);
  });
}
