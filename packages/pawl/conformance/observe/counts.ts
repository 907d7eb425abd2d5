import { expect } from "vitest";
import { JOB_STATES, type JobState } from "../../src/core/jobs/job.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { FAILED, HOUR, KILLED, lane, SUCCEEDED } from "../world.js";

const counts = (some: Partial<Record<JobState, number>>) => ({ ...Object.fromEntries(JOB_STATES.map((state) => [state, 0])), ...some });

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
    await dutiesOf(w.store).promote(10);
    await w.run(id, KILLED);
    expect(await seen()).toEqual(counts({ dead: 1 }));
    await w.store.jobs.redrive("everyone", id, {});
    expect(await seen()).toEqual(counts({ ready: 1 }));
    await w.hold();
    await w.vanish();
    expect(await seen()).toEqual(counts({ ready: 1 }));
    await w.store.jobs.cancel("everyone", id, "enough");
    expect(await seen()).toEqual(counts({ cancelled: 1 }));
    await w.store.jobs.delete("everyone", id);
    expect(await seen()).toBeUndefined();
  });

  test("counts are right after folding, as before", async (w) => {
    for (let n = 0; n < 5; n++) await w.add();
    const held = await w.holdAll({ limit: 3 });
    await w.settleAll(held, SUCCEEDED);
    const before = await w.store.records.counts();
    await dutiesOf(w.store).fold(1_000);
    await dutiesOf(w.store).fold(1_000);
    expect(await w.store.records.counts()).toEqual(before);
    expect(before).toEqual([{ queue: "default", task: "work", counts: counts({ ready: 2, succeeded: 3 }) }]);
  });

  test("what a tenant has standing is counted by queue, task and state, and nothing of others or finished", async (w) => {
    const umbrella = { tenant: "umbrella" };
    const parent = await w.add(umbrella);
    await w.add({ ...umbrella, after: [parent] });
    await w.add({ ...umbrella, delay: HOUR });
    await w.store.jobs.pause("everyone", await w.add(umbrella));
    await w.run(await w.add({ ...umbrella, task: "send" }), KILLED, undefined, { lanes: [lane({ ...umbrella, task: "send" })] });
    await w.store.jobs.cancel("everyone", await w.add({ ...umbrella, task: "send" }), "enough");
    for (let n = 0; n < 4; n++) await w.add({ ...umbrella, queue: "mail" });
    const mail = await w.holdAll({ lanes: [lane({ ...umbrella, queue: "mail" })], limit: 3 });
    await w.settleAll(mail.slice(0, 1), SUCCEEDED);
    await w.add({ delay: HOUR });
    await w.add();
    await w.hold();
    const standing = (some: object) => ({ blocked: 0, scheduled: 0, ready: 0, parked: 0, running: 0, dead: 0, ...some });
    expect(await w.store.records.tenantCounts("umbrella")).toEqual([
      { queue: "default", task: "send", counts: standing({ dead: 1 }) },
      { queue: "default", task: "work", counts: standing({ blocked: 1, scheduled: 1, ready: 1, parked: 1 }) },
      { queue: "mail", task: "work", counts: standing({ ready: 1, running: 2 }) },
    ]);
    expect(await w.store.records.tenantCounts("nobody")).toEqual([]);
  });

  test("what a tenant has standing in batches and leases is counted job by job", async (w) => {
    await w.enqueue(...Array.from({ length: 200 }, () => ({ tenant: "umbrella" })));
    const held = await w.holdAll({ lanes: [lane({ tenant: "umbrella" })], limit: 60 });
    await w.settleAll(held.slice(0, 50), SUCCEEDED);
    const [row] = await w.store.records.tenantCounts("umbrella");
    expect(row?.counts).toMatchObject({ ready: 140, running: 10 });
  });

  test("a doomed family is counted as dead", async (w) => {
    const parent = await w.add();
    const child = await w.add({ after: [parent] });
    await w.add({ after: [child] });
    await w.run(parent, KILLED, undefined, { lanes: [lane()] });
    expect(await w.store.records.counts()).toEqual([{ queue: "default", task: "work", counts: counts({ dead: 3 }) }]);
  });
}
