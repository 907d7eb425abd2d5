import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../test/support/fixtures/memory-fixture.js";
import type { Priority } from "../core/jobs/job.js";
import { task } from "../core/jobs/task.js";
import type { Store } from "../store/port/index.js";
import { faultyStore } from "../testing/faulty.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

const quick = task("quick", async () => {});
const lane = { queue: "default", priority: 5 as Priority, tenant: "default", task: "quick" };
const ghost = { name: "ghost", instance: "00000000-0000-4000-8000-000000000000" as never };
/** A lease whose worker is gone. */
const stranded = () => fixture.inner.leases.claim({ worker: ghost, quotas: [{ lane, quota: 1_000 }], duration: 15_000 });

describe("promoting", () => {
  test("a delayed job starts at its time, not before and not a poll later", async () => {
    const at: number[] = [];
    const note = task("note", () => void at.push(fixture.clock.now()));
    fixture = new MemoryFixture({ tasks: [note] });
    await fixture.work();
    await fixture.maintain();
    const began = fixture.clock.now();
    for (const delay of [1, 333, 1_000, 2_345, 86_400]) await fixture.enqueue(note, {}, { delay });
    await fixture.clock.advance(90_000);
    expect(at.map((time, i) => time - began - ([1, 333, 1_000, 2_345, 86_400][i] as number)).every((late) => late >= 0 && late <= 5)).toBe(true);
    expect(at).toHaveLength(5);
  });

  test("without wakeups the poll finds the next one in time", async () => {
    const at: number[] = [];
    const note = task("note", () => void at.push(fixture.clock.now()));
    fixture = new MemoryFixture({
      tasks: [note],
      wrapStore: (store) => ({ ...store, onWakeup: (listener) => store.onWakeup((wakeup) => wakeup.kind === "scheduled" || listener(wakeup)) }),
    });
    await fixture.work();
    await fixture.maintain();
    const began = fixture.clock.now();
    await fixture.enqueue(note, {}, { delay: 5_500 });
    await fixture.clock.advance(6_000);
    expect(at[0]).toBeGreaterThanOrEqual(began + 5_500);
    expect(at[0]).toBeLessThanOrEqual(began + 5_505);
  });

  test("that failed is repeated soon, not a poll later", async () => {
    const at: number[] = [];
    const note = task("note", () => void at.push(fixture.clock.now()));
    fixture = new MemoryFixture({
      tasks: [note],
      wrapStore: (store) =>
        faultyStore(store, (operation, earlier) => (operation === "duties.promote" && earlier === 0 ? { kind: "fail" } : undefined)),
    });
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(10_050);
    const began = fixture.clock.now();
    await fixture.enqueue(note, {}, { delay: 50 });
    await fixture.clock.advance(1_000);
    expect((at[0] as number) - began - 50).toBeLessThanOrEqual(100);
  });

  test("goes on until everything due is ready", async () => {
    fixture = new MemoryFixture({ tasks: [quick] });
    await fixture.enqueueMany(
      quick,
      Array.from({ length: 250 }, () => ({})),
      { delay: 5_000 },
    );
    await fixture.maintain({ batchSize: 20 });
    await fixture.clock.advance(5_001);
    expect((await fixture.inner.records.counts())[0]?.counts.ready).toBe(250);
  });
});

describe("reaping", () => {
  test("jobs of a vanished worker run elsewhere within twenty seconds on the defaults", async () => {
    fixture = new MemoryFixture({ tasks: [quick] });
    const ids = await fixture.enqueueMany(
      quick,
      Array.from({ length: 50 }, () => ({})),
    );
    await stranded();
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(14_900);
    expect(await fixture.state(ids[0] as never)).toBe("running");
    await fixture.clock.advance(3_000);
    for (const id of ids) expect(await fixture.job(id)).toMatchObject({ state: "succeeded", crashes: 1, attempts: 1 });
  });

  test("E9: after the store was away it waits one lease, so that live holders renew first", async () => {
    let away = false;
    const end = barrier();
    const long = task("long", () => end.opened);
    fixture = new MemoryFixture({
      tasks: [long, quick],
      wrapStore: (store) => faultyStore(store, (operation) => (away && operation.startsWith("duties.") ? { kind: "fail" } : undefined)),
    });
    const dead = await fixture.enqueue(quick);
    await stranded();
    await fixture.maintain();
    await fixture.clock.advance(1_000);
    away = true;
    await fixture.clock.advance(60_000);
    away = false;
    await fixture.clock.advance(14_000);
    expect(await fixture.state(dead)).toBe("running");
    await fixture.clock.advance(5_000);
    expect(await fixture.job(dead)).toMatchObject({ state: "ready", crashes: 1 });
  });

  test("E9: so does a process that was not there while the store was away", async () => {
    let bornAt = 0;
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store): Store => ({
        ...store,
        duties: { ...store.duties, poll: async () => ({ ...(await store.duties.poll()), upFor: fixture.clock.now() - bornAt }) },
      }),
    });
    const dead = await fixture.enqueue(quick);
    await stranded();
    await fixture.clock.advance(60_000);
    bornAt = fixture.clock.now() - 2_000;
    await fixture.maintain();
    await fixture.clock.advance(12_000);
    expect(await fixture.state(dead)).toBe("running");
    await fixture.clock.advance(5_000);
    expect(await fixture.state(dead)).toBe("ready");
  });

  test("an absence of the store is told once when it begins and once when it ends", async () => {
    let away = false;
    fixture = new MemoryFixture({ tasks: [quick], wrapStore: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    const told: string[] = [];
    for (const name of ["store.lost", "store.restored"] as const) fixture.bus.on(name, () => void told.push(name));
    await fixture.maintain();
    await fixture.clock.advance(5_000);
    away = true;
    await fixture.clock.advance(30_000);
    away = false;
    await fixture.clock.advance(5_000);
    expect(told).toEqual(["store.lost", "store.restored"]);
  });

  test("E9: so does a process that was itself frozen", async () => {
    fixture = new MemoryFixture({ tasks: [quick] });
    const dead = await fixture.enqueue(quick);
    await stranded();
    await fixture.maintain();
    await fixture.clock.advance(1_000);
    fixture.clock.leap(60_000);
    await fixture.clock.quiet();
    await fixture.clock.advance(14_000);
    expect(await fixture.state(dead)).toBe("running");
    await fixture.clock.advance(5_000);
    expect(await fixture.state(dead)).toBe("ready");
  });

  test("a short hiccup of the store delays nothing", async () => {
    let away = false;
    fixture = new MemoryFixture({ tasks: [quick], wrapStore: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    const dead = await fixture.enqueue(quick);
    await stranded();
    await fixture.maintain();
    await fixture.clock.advance(12_000);
    away = true;
    await fixture.clock.advance(1_500);
    away = false;
    await fixture.clock.advance(5_000);
    expect(await fixture.state(dead)).toBe("ready");
  });

  test("E8: a hundred thousand stranded jobs in many leases are not reaped one sweep at a time", async () => {
    fixture = new MemoryFixture({ tasks: [quick] });
    await fixture.enqueueMany(
      quick,
      Array.from({ length: 400 }, () => ({})),
    );
    for (let i = 0; i < 40; i++) await fixture.inner.leases.claim({ worker: ghost, quotas: [{ lane, quota: 10 }], duration: 1_000 });
    await fixture.maintain({ batchSize: 5 });
    await fixture.clock.advance(3_000);
    expect((await fixture.inner.records.counts())[0]?.counts.ready).toBe(400);
  });
});

describe("duties", () => {
  test.each(["duties.promote", "duties.reap", "duties.expire", "duties.prune", "duties.carry out intents"])(
    "B4: %s failing for ever stops none of the others",
    async (broken) => {
      fixture = new MemoryFixture({
        tasks: [quick],
        wrapStore: (store) => faultyStore(store, (operation) => (operation === broken ? { kind: "fail" } : undefined)),
      });
      const delayed = await fixture.enqueue(quick, {}, { delay: 100 });
      const expired = await fixture.enqueue("unserved", {}, { options: { startWithin: 100 } });
      const dead = await fixture.enqueue(quick);
      await stranded();
      await fixture.maintain();
      await fixture.clock.advance(20_000);
      const states = {
        "duties.promote": await fixture.state(delayed),
        "duties.expire": await fixture.state(expired),
        "duties.reap": await fixture.state(dead),
      };
      const expected = { "duties.promote": "ready", "duties.expire": "dead", "duties.reap": "ready" };
      const before = { "duties.promote": "scheduled", "duties.expire": "ready", "duties.reap": "running" };
      for (const duty of Object.keys(expected) as (keyof typeof expected)[])
        expect([duty, states[duty]]).toEqual([duty, (duty === broken ? before : expected)[duty]]);
    },
  );

  test("B2: a duty that failed once is done at the next turn", async () => {
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) => faultyStore(store, (operation, earlier) => (operation === "duties.reap" && earlier === 0 ? { kind: "fail" } : undefined)),
    });
    const dead = await fixture.enqueue(quick);
    await stranded();
    await fixture.maintain();
    await fixture.clock.advance(20_000);
    expect(fixture.eventsNamed("duty.failed")).toMatchObject([{ duty: "reap" }]);
    expect(await fixture.state(dead)).toBe("ready");
  });

  test("what was asked of a job nobody holds is carried out", async () => {
    let ran = 0;
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store): Store => ({
        ...store,
        duties: {
          ...store.duties,
          poll: async () => ({ ...(await store.duties.poll()), due: new Map([["carry out intents", 0]]) }),
          run: async (duty) => ({ count: duty === "carry out intents" ? ran++ * 0 : 0, more: false }),
        },
      }),
    });
    await fixture.maintain();
    await fixture.clock.advance(10_000);
    expect(ran).toBeGreaterThanOrEqual(9);
    expect(ran).toBeLessThanOrEqual(11);
  });

  test("C11: at rest all of them together ask one question a second", async () => {
    let calls = 0;
    fixture = new MemoryFixture({
      tasks: [],
      wrapStore: (store) =>
        faultyStore(store, () => {
          calls++;
          return undefined;
        }),
    });
    await fixture.maintain();
    await fixture.clock.advance(70_000);
    calls = 0;
    await fixture.clock.advance(60_000);
    expect(calls).toBeLessThanOrEqual(61);
  });

  test("stop leaves no timer behind", async () => {
    fixture = new MemoryFixture({ tasks: [] });
    const maintenance = await fixture.maintain();
    await fixture.clock.advance(3_000);
    await maintenance.stop();
    expect(fixture.clock.nextIn()).toBeUndefined();
  });
});
