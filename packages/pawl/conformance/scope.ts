import { expect } from "vitest";
import type { Test } from "./suite.js";
import { ANA, KILLED, lane, NOBODY, START } from "./world.js";

const MINE = { tenant: "acme" };
const THEIRS = { tenant: "umbrella" };

export function scopeTests(test: Test): void {
  test("another tenant's job is not told from one that does not exist, whatever is asked", async (w) => {
    const { jobs } = w.store;
    const running = await w.add(MINE);
    const { claimed, worker } = await w.hold();
    await w.store.records.log(worker, [{ lease: claimed.lease, job: running, at: START, level: "info", message: "secret" }]);
    const scheduled = await w.add({ ...MINE, delay: 1 });
    const ready = await w.add(MINE);
    const before = await Promise.all([running, scheduled, ready].map((id) => w.get(id)));
    for (const id of [running, scheduled, ready, NOBODY]) {
      expect(await jobs.get(THEIRS, id)).toBeUndefined();
      expect(await jobs.history(THEIRS, id)).toEqual([]);
      expect(await jobs.logs(THEIRS, id)).toEqual([]);
      for (const verb of [jobs.pause, jobs.resume, jobs.promote, jobs.delete]) expect(await verb.call(jobs, THEIRS, id)).toEqual({ kind: "unknown" });
      expect(await jobs.cancel(THEIRS, id, "mischief")).toEqual({ kind: "unknown" });
      expect(await jobs.redrive(THEIRS, id, {})).toEqual({ kind: "unknown" });
    }
    expect(await Promise.all([running, scheduled, ready].map((id) => w.get(id)))).toEqual(before);
  });

  test("another tenant's finished job can be neither redriven nor deleted nor read", async (w) => {
    const id = await w.add(MINE);
    await w.run(id, KILLED);
    expect(await w.store.jobs.redrive(THEIRS, id, { input: "1" })).toEqual({ kind: "unknown" });
    expect(await w.store.jobs.delete(THEIRS, id)).toEqual({ kind: "unknown" });
    expect(await w.store.jobs.history(THEIRS, id)).toEqual([]);
    expect(await w.state(id)).toBe("dead");
  });

  test("a tenant sees and changes its own jobs", async (w) => {
    const id = await w.add(MINE);
    expect(await w.store.jobs.get(MINE, id)).toMatchObject({ id, state: "ready" });
    expect(await w.store.jobs.pause(MINE, id)).toMatchObject({ kind: "changed" });
    expect(await w.store.jobs.resume(MINE, id)).toMatchObject({ kind: "changed" });
    await w.run(id, KILLED);
    expect(await w.store.jobs.history(MINE, id)).toHaveLength(1);
    expect(await w.store.jobs.redrive(MINE, id, {})).toMatchObject({ kind: "changed" });
    expect(await w.store.jobs.cancel(MINE, id, "enough")).toMatchObject({ kind: "changed" });
    expect(await w.store.jobs.delete(MINE, id)).toMatchObject({ kind: "changed" });
  });

  test("a list shows a tenant its own jobs only, whatever the filter, and pages through them", async (w) => {
    const mine = [await w.add({ ...MINE, options: { tags: ["t"] } }), await w.add(MINE), await w.add(MINE)];
    for (let n = 0; n < 4; n++) await w.add({ ...THEIRS, options: { tags: ["t"] } });
    const first = await w.store.jobs.list(MINE, {}, { limit: 2 });
    expect(first.jobs.map(({ id }) => id)).toEqual([mine[2], mine[1]]);
    const second = await w.store.jobs.list(MINE, {}, { limit: 2, after: first.next ?? NOBODY });
    expect(second.jobs.map(({ id }) => id)).toEqual([mine[0]]);
    expect(second.next).toBeUndefined();
    expect((await w.store.jobs.list(MINE, { tag: "t" }, { limit: 10 })).jobs.map(({ id }) => id)).toEqual([mine[0]]);
    expect((await w.store.jobs.list("everyone", {}, { limit: 10 })).jobs).toHaveLength(7);
    expect(await w.store.jobs.list({ tenant: "nobody" }, {}, { limit: 10 })).toEqual({ jobs: [] });
  });

  test("the lanes of many jobs are told at once: of those there are, and of a tenant's own only", async (w) => {
    const [mine, theirs, done] = [
      await w.add({ ...MINE, queue: "q" }),
      await w.add({ ...THEIRS, task: "other" }),
      await w.add({ ...MINE, task: "x" }),
    ];
    await w.run(done, KILLED, undefined, { lanes: [lane({ ...MINE, task: "x" })] });
    const ids = [mine, NOBODY, theirs, mine, done];
    expect(await w.store.jobs.lanes("everyone", ids)).toEqual(
      new Map([
        [mine, lane({ ...MINE, queue: "q" })],
        [theirs, lane({ ...THEIRS, task: "other" })],
        [done, lane({ ...MINE, task: "x" })],
      ]),
    );
    expect([...(await w.store.jobs.lanes(THEIRS, ids)).keys()]).toEqual([theirs]);
    expect(await w.store.jobs.lanes("everyone", [])).toEqual(new Map());
  });

  test("one lease may hold jobs of several tenants", async (w) => {
    const [a, b] = [await w.add(MINE), await w.add(THEIRS)];
    const held = await w.holdAll({ lanes: [lane(MINE), lane(THEIRS)] });
    await w.store.jobs.cancel(MINE, a, "stop");
    expect(await w.store.jobs.cancel(MINE, b, "mischief")).toEqual({ kind: "unknown" });
    expect(await w.store.leases.intents(ANA, held[0] === undefined ? [] : [held[0].claimed.lease])).toEqual([{ job: a, intent: "cancel" }]);
  });
}
