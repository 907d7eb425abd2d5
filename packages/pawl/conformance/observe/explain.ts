import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { LimitRule } from "../../src/core/limits/limit-rule.js";
import { startsPerMs } from "../../src/core/limits/start-rate.js";
import type { JobLook } from "../../src/store/port/observe/explain.js";
import { MAX_HOLDERS, MAX_PARENTS } from "../../src/store/port/observe/explain.js";
import { dutiesOf } from "../duties.js";
import { addMany, SERIAL, TWO, under } from "../limits/limit-world.js";
import type { Test } from "../suite.js";
import { BOB, FAILED, HOUR, LEASE, lane, MINUTE, NOBODY, SECOND, START, SUCCEEDED, type World } from "../world.js";

async function look(w: World, id: JobId): Promise<JobLook> {
  const found = await w.store.explain.look("everyone", id);
  if (found === undefined) throw new Error(`there is no job ${id}`);
  return found;
}

export function explainTests(test: Test): void {
  test("a look shows the job as it is, by the store's clock", async (w) => {
    const id = await w.add({ delay: HOUR });
    expect(await look(w, id)).toMatchObject({
      now: START,
      job: await w.get(id),
      parents: [],
      slotHolders: [],
      suspect: false,
      ahead: 0,
      more: false,
      rivals: [],
      limits: [],
    });
  });

  test("a look at a job that is unknown, or another tenant's, shows nothing", async (w) => {
    const id = await w.add();
    expect(await w.store.explain.look("everyone", NOBODY)).toBeUndefined();
    expect(await w.store.explain.look({ tenant: "umbrella" }, id)).toBeUndefined();
    expect(await w.store.explain.look({ tenant: "acme" }, id)).toMatchObject({ job: { id } });
  });

  test("a look counts the jobs before one in its lane, and no others", async (w) => {
    const first = await w.add();
    await w.enqueue({}, {}, {}, { task: "other" }, { tenant: "umbrella" }, { priority: 9 }, { delay: HOUR });
    const [, last] = await w.enqueue({}, {});
    await w.enqueue({}, {});
    expect(await look(w, first)).toMatchObject({ ahead: 0, more: false });
    expect(await look(w, (last as { id: JobId }).id)).toMatchObject({ ahead: 5, more: false });
    await w.settleAll(await w.holdAll({ limit: 2 }), SUCCEEDED);
    expect(await look(w, (last as { id: JobId }).id)).toMatchObject({ ahead: 3, more: false });
  });

  test("a look at a job that is not ready counts all that are", async (w) => {
    await w.enqueue({}, {}, {});
    expect(await look(w, await w.add({ delay: HOUR }))).toMatchObject({ ahead: 3 });
    const paused = await w.add();
    await w.store.jobs.pause("everyone", paused);
    expect(await look(w, paused)).toMatchObject({ ahead: 3 });
  });

  test("a look shows who runs a job, and until when", async (w) => {
    const id = await w.add();
    w.clock.advance(SECOND);
    await w.hold({ worker: BOB });
    expect((await look(w, id)).holder).toEqual({ worker: "bob", since: START + SECOND, until: START + SECOND + LEASE });
  });

  test("a look shows what a job waits for, and how that stands", async (w) => {
    const [running, failing, waiting] = [await w.add(), await w.add({ task: "other" }), await w.add({ delay: HOUR })];
    await w.hold({ lanes: [lane()] });
    await w.settle(await w.hold({ lanes: [lane({ task: "other" })] }), FAILED, [HOUR]);
    const id = await w.add({ after: [running, failing, waiting] });
    const { parents } = await look(w, id);
    expect(new Map(parents.map(({ job, state }) => [job, state]))).toEqual(
      new Map([
        [running, "running"],
        [failing, "scheduled"],
        [waiting, "scheduled"],
      ]),
    );
  });

  test("a look shows the first of many that a job waits for", async (w) => {
    const many = (await w.enqueue(...Array.from({ length: MAX_PARENTS + 5 }, () => ({})))).map((answer) => (answer as { id: JobId }).id);
    const found = await look(w, await w.add({ after: many }));
    expect(found.parents).toHaveLength(MAX_PARENTS);
    expect(found.job.waitsFor).toHaveLength(MAX_PARENTS + 5);
  });

  test("a look shows who holds the key that a job is parked at, and how that stands; nobody of other keys and tenants", async (w) => {
    const running = await w.add({ options: under(TWO) });
    await w.hold();
    await w.add({ tenant: "umbrella", options: under(TWO) });
    await w.add({ options: under(TWO, "other") });
    w.clock.advance(SECOND);
    const ready = await w.add({ options: under(TWO) });
    const id = await w.add({ options: under(TWO) });
    const told = [
      { job: running, state: "running" },
      { job: ready, state: "ready" },
    ];
    expect((await look(w, id)).slotHolders).toEqual(told);
    expect((await w.store.explain.look({ tenant: "acme" }, id))?.slotHolders).toEqual(told);
    expect((await look(w, ready)).slotHolders, "it is not parked").toEqual([]);
  });

  test("a look shows who kept the slot of a serial key through a retry", async (w) => {
    const first = await w.add({ options: under(SERIAL) });
    const id = await w.add({ options: under(SERIAL) });
    await w.run(first, FAILED, [HOUR]);
    expect((await look(w, id)).slotHolders).toEqual([{ job: first, state: "scheduled" }]);
  });

  test("a look shows the first of many that hold a key", async (w) => {
    const wide = { concurrency: MAX_HOLDERS + 3 };
    const many = await addMany(w, MAX_HOLDERS + 3, { options: under(wide) });
    const { slotHolders } = await look(w, await w.add({ options: under(wide) }));
    expect(slotHolders.map(({ job }) => job)).toEqual([...many].sort().slice(0, MAX_HOLDERS));
  });

  test("a look tells a suspect", async (w) => {
    const id = await w.suspect();
    expect(await look(w, id)).toMatchObject({ suspect: true, job: { state: "ready", crashes: 2 } });
  });

  test("a look shows the other lanes of its queue and task that have ready jobs", async (w) => {
    const id = await w.add();
    await w.enqueue(
      {},
      {},
      { tenant: "b" },
      { tenant: "b" },
      { priority: 9 },
      { tenant: "c", delay: HOUR },
      { task: "other" },
      { queue: "mail", tenant: "d" },
    );
    const { rivals } = await look(w, id);
    expect(rivals).toEqual([lane({ tenant: "b" }), lane({ priority: 9 })]);
  });

  test("a look shows how fast jobs of its queue and task are started", async (w) => {
    const id = await w.add({ delay: HOUR });
    expect((await look(w, id)).startRate).toBeUndefined();
    for (let second = 0; second < 30; second++) {
      await w.enqueue(...Array.from({ length: 5 }, () => ({})), { task: "other" });
      w.clock.advance(SECOND);
      await w.settleAll(await w.holdAll(), SUCCEEDED);
      await dutiesOf(w.store).fold(1_000);
    }
    const { startRate, now } = await look(w, id);
    const perSecond = (startRate === undefined ? 0 : (startsPerMs(startRate, now) ?? 0)) * SECOND;
    expect(perSecond).toBeGreaterThan(4.5);
    expect(perSecond).toBeLessThan(5.5);
    w.clock.advance(HOUR);
    await w.enqueue({});
    await dutiesOf(w.store).fold(1_000);
    const later = await look(w, id);
    expect(later.startRate === undefined ? undefined : startsPerMs(later.startRate, later.now)).toBeUndefined();
  });

  test("jobs that fail and run again are started again", async (w) => {
    const id = await w.add();
    for (let n = 0; n < 4; n++) {
      await w.settle(await w.hold(), FAILED, [0, 0, 0, 0]);
      await dutiesOf(w.store).fold(1_000);
    }
    expect((await look(w, id)).startRate?.starts).toBeCloseTo(4);
  });

  test("a look shows the limits on its queue, task and tenant as they stand", async (w) => {
    const rate = { limit: 10, per: SECOND, burst: 3 };
    await w.store.policies.put({ kind: "queue", name: "default" }, { concurrency: 2 }, 0);
    await w.store.policies.put({ kind: "tenant", name: "acme" }, { rate }, 0);
    await w.store.policies.put({ kind: "task", name: "other" }, { concurrency: 1 }, 0);
    const ids = (await w.enqueue({}, {}, {})).map((answer) => (answer as { id: JobId }).id);
    const request = { worker: BOB, quotas: [{ lane: lane(), quota: 10 }], duration: LEASE };
    expect((await w.store.leases.claimLimited(request)).claimed?.jobs).toHaveLength(2);
    expect((await look(w, ids[2] as JobId)).limits).toEqual([
      { kind: "queue", name: "default", concurrency: 2, used: 2 },
      { kind: "tenant", name: "acme", rate, used: expect.any(Number), tat: START + 200 },
    ]);
  });

  test("how many are parked for what is known", async (w) => {
    expect(await w.store.explain.parked()).toEqual([]);
    const under = (limit: string, rule: LimitRule) => ({ options: { limits: [{ limit, key: "k", rule }] } });
    for (let i = 0; i < 3; i++) await w.add(under("few", { concurrency: 1 }));
    for (let i = 0; i < 4; i++) await w.add(under("order", { serial: true }));
    await w.store.jobs.pause("everyone", await w.add());
    const parked = await w.store.explain.parked();
    expect([...parked].sort((a, b) => a.count - b.count)).toEqual([
      { reason: "paused", count: 1 },
      { reason: "concurrency", count: 2 },
      { reason: "serial", count: 3 },
    ]);
  });

  test("how many jobs of a tenant are ready or parked at a limit is known, whatever their lanes", async (w) => {
    const limited = { options: { limits: [{ limit: "few", key: "k", rule: { concurrency: 1 } }] } };
    await w.enqueue({ tenant: "a" }, { tenant: "a", queue: "mail", priority: 9 }, { tenant: "a", delay: HOUR }, { tenant: "b" });
    await w.enqueue({ tenant: "a", ...limited }, { tenant: "a", ...limited });
    expect(await w.store.explain.depths(["b", "a", "nobody"])).toEqual([
      { tenant: "b", depth: 1 },
      { tenant: "a", depth: 4 },
      { tenant: "nobody", depth: 0 },
    ]);
    expect(await w.store.explain.depths([])).toEqual([]);
  });

  test("the longest wait of every queue and priority is known", async (w) => {
    expect(await w.store.explain.waits(100)).toEqual([]);
    await w.enqueue({ queue: "mail" }, { queue: "mail" });
    w.clock.advance(MINUTE);
    await w.enqueue({ queue: "mail", tenant: "b" }, { queue: "mail", priority: 9 }, { queue: "mail", delay: HOUR }, {});
    w.clock.advance(SECOND);
    expect(await w.store.explain.waits(100)).toEqual([
      { queue: "default", priority: 5, longest: SECOND },
      { queue: "mail", priority: 5, longest: MINUTE + SECOND },
      { queue: "mail", priority: 9, longest: SECOND },
    ]);
  });
}
