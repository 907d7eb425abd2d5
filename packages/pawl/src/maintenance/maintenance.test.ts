import { afterEach, describe, expect, test } from "vitest";
import { gate, World } from "../../../../test/support/world.js";
import type { Priority } from "../core/job.js";
import type { Store } from "../store/port.js";
import { faultyStore } from "../testing/faulty.js";
import { task } from "../worker/task.js";

let world: World;
afterEach(() => world.close());

const quick = task("quick", async () => {});
const lane = { queue: "default", band: 5 as Priority, tenant: "default", task: "quick" };
const ghost = { name: "ghost", boot: "00000000-0000-4000-8000-000000000000" as never };
/** A lease whose worker is gone. */
const stranded = () => world.inner.leases.claim({ worker: ghost, quotas: [{ lane, quota: 1_000 }], duration: 15_000 });

describe("promoting", () => {
  test("a delayed job starts at its time, not before and not a pulse later", async () => {
    const at: number[] = [];
    const note = task("note", () => void at.push(world.clock.now()));
    world = new World({ tasks: [note] });
    await world.work();
    await world.upkeep();
    const began = world.clock.now();
    for (const delay of [1, 333, 1_000, 2_345, 86_400]) await world.enqueue(note, {}, { delay });
    await world.clock.advance(90_000);
    expect(at.map((time, i) => time - began - ([1, 333, 1_000, 2_345, 86_400][i] as number)).every((late) => late >= 0 && late <= 5)).toBe(true);
    expect(at).toHaveLength(5);
  });

  test("without hints the pulse finds the next one in time", async () => {
    const at: number[] = [];
    const note = task("note", () => void at.push(world.clock.now()));
    world = new World({
      tasks: [note],
      around: (store) => ({ ...store, onHint: (listener) => store.onHint((hint) => hint.kind === "scheduled" || listener(hint)) }),
    });
    await world.work();
    await world.upkeep();
    const began = world.clock.now();
    await world.enqueue(note, {}, { delay: 5_500 });
    await world.clock.advance(6_000);
    expect(at[0]).toBeGreaterThanOrEqual(began + 5_500);
    expect(at[0]).toBeLessThanOrEqual(began + 5_505);
  });

  test("that failed is repeated soon, not a pulse later", async () => {
    const at: number[] = [];
    const note = task("note", () => void at.push(world.clock.now()));
    world = new World({
      tasks: [note],
      around: (store) => faultyStore(store, (operation, earlier) => (operation === "duties.promote" && earlier === 0 ? { kind: "fail" } : undefined)),
    });
    await world.work();
    await world.upkeep();
    await world.clock.advance(10_050);
    const began = world.clock.now();
    await world.enqueue(note, {}, { delay: 50 });
    await world.clock.advance(1_000);
    expect((at[0] as number) - began - 50).toBeLessThanOrEqual(100);
  });

  test("goes on until everything due is ready", async () => {
    world = new World({ tasks: [quick] });
    await world.enqueueMany(
      quick,
      Array.from({ length: 250 }, () => ({})),
      { delay: 5_000 },
    );
    await world.upkeep({ batch: 20 });
    await world.clock.advance(5_001);
    expect((await world.inner.records.counts())[0]?.counts.ready).toBe(250);
  });
});

describe("reaping", () => {
  test("jobs of a vanished worker run elsewhere within twenty seconds on the defaults", async () => {
    world = new World({ tasks: [quick] });
    const ids = await world.enqueueMany(
      quick,
      Array.from({ length: 50 }, () => ({})),
    );
    await stranded();
    await world.work();
    await world.upkeep();
    await world.clock.advance(14_900);
    expect(await world.state(ids[0] as never)).toBe("running");
    await world.clock.advance(3_000);
    for (const id of ids) expect(await world.job(id)).toMatchObject({ state: "succeeded", crashes: 1, spent: 1 });
  });

  test("E9: after the store was away it waits one lease, so that live holders renew first", async () => {
    let away = false;
    const end = gate();
    const long = task("long", () => end.opened);
    world = new World({
      tasks: [long, quick],
      around: (store) => faultyStore(store, (operation) => (away && operation.startsWith("duties.") ? { kind: "fail" } : undefined)),
    });
    const dead = await world.enqueue(quick);
    await stranded();
    await world.upkeep();
    await world.clock.advance(1_000);
    away = true;
    await world.clock.advance(60_000);
    away = false;
    await world.clock.advance(14_000);
    expect(await world.state(dead)).toBe("running");
    await world.clock.advance(5_000);
    expect(await world.job(dead)).toMatchObject({ state: "ready", crashes: 1 });
  });

  test("E9: so does a process that was not there while the store was away", async () => {
    let bornAt = 0;
    world = new World({
      tasks: [quick],
      around: (store): Store => ({
        ...store,
        duties: { ...store.duties, pulse: async () => ({ ...(await store.duties.pulse()), upFor: world.clock.now() - bornAt }) },
      }),
    });
    const dead = await world.enqueue(quick);
    await stranded();
    await world.clock.advance(60_000);
    bornAt = world.clock.now() - 2_000;
    await world.upkeep();
    await world.clock.advance(12_000);
    expect(await world.state(dead)).toBe("running");
    await world.clock.advance(5_000);
    expect(await world.state(dead)).toBe("ready");
  });

  test("an absence of the store is told once when it begins and once when it ends", async () => {
    let away = false;
    world = new World({ tasks: [quick], around: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    const told: string[] = [];
    for (const name of ["store.lost", "store.back"] as const) world.bus.on(name, () => void told.push(name));
    await world.upkeep();
    await world.clock.advance(5_000);
    away = true;
    await world.clock.advance(30_000);
    away = false;
    await world.clock.advance(5_000);
    expect(told).toEqual(["store.lost", "store.back"]);
  });

  test("E9: so does a process that was itself frozen", async () => {
    world = new World({ tasks: [quick] });
    const dead = await world.enqueue(quick);
    await stranded();
    await world.upkeep();
    await world.clock.advance(1_000);
    world.clock.leap(60_000);
    await world.clock.quiet();
    await world.clock.advance(14_000);
    expect(await world.state(dead)).toBe("running");
    await world.clock.advance(5_000);
    expect(await world.state(dead)).toBe("ready");
  });

  test("a short hiccup of the store delays nothing", async () => {
    let away = false;
    world = new World({ tasks: [quick], around: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    const dead = await world.enqueue(quick);
    await stranded();
    await world.upkeep();
    await world.clock.advance(12_000);
    away = true;
    await world.clock.advance(1_500);
    away = false;
    await world.clock.advance(5_000);
    expect(await world.state(dead)).toBe("ready");
  });

  test("E8: a hundred thousand stranded jobs in many leases are not reaped one sweep at a time", async () => {
    world = new World({ tasks: [quick] });
    await world.enqueueMany(
      quick,
      Array.from({ length: 400 }, () => ({})),
    );
    for (let i = 0; i < 40; i++) await world.inner.leases.claim({ worker: ghost, quotas: [{ lane, quota: 10 }], duration: 1_000 });
    await world.upkeep({ batch: 5 });
    await world.clock.advance(3_000);
    expect((await world.inner.records.counts())[0]?.counts.ready).toBe(400);
  });
});

describe("duties", () => {
  test.each(["duties.promote", "leases.reap", "duties.expire", "duties.prune", "duties.carryOut", "duties.fold", "duties.unblock"])(
    "B4: %s failing for ever stops none of the others",
    async (broken) => {
      world = new World({
        tasks: [quick],
        around: (store) => faultyStore(store, (operation) => (operation === broken ? { kind: "fail" } : undefined)),
      });
      const delayed = await world.enqueue(quick, {}, { delay: 100 });
      const expired = await world.enqueue("unserved", {}, { options: { expire: 100 } });
      const dead = await world.enqueue(quick);
      await stranded();
      await world.upkeep();
      await world.clock.advance(20_000);
      const states = {
        "duties.promote": await world.state(delayed),
        "duties.expire": await world.state(expired),
        "leases.reap": await world.state(dead),
      };
      const expected = { "duties.promote": "ready", "duties.expire": "dead", "leases.reap": "ready" };
      const before = { "duties.promote": "scheduled", "duties.expire": "ready", "leases.reap": "running" };
      for (const duty of Object.keys(expected) as (keyof typeof expected)[])
        expect([duty, states[duty]]).toEqual([duty, (duty === broken ? before : expected)[duty]]);
    },
  );

  test("B2: a duty that failed once is done at the next turn", async () => {
    world = new World({
      tasks: [quick],
      around: (store) => faultyStore(store, (operation, earlier) => (operation === "leases.reap" && earlier === 0 ? { kind: "fail" } : undefined)),
    });
    const dead = await world.enqueue(quick);
    await stranded();
    await world.upkeep();
    await world.clock.advance(20_000);
    expect(world.heard("duty.failed")).toMatchObject([{ duty: "reap" }]);
    expect(await world.state(dead)).toBe("ready");
  });

  test("what was asked of a job nobody holds is carried out", async () => {
    let ran = 0;
    world = new World({
      tasks: [quick],
      around: (store): Store => ({
        ...store,
        duties: {
          ...store.duties,
          pulse: async () => ({ ...(await store.duties.pulse()), intents: true, unverified: true, deltas: true }),
          carryOut: async () => ran++ * 0,
        },
      }),
    });
    await world.upkeep();
    await world.clock.advance(10_000);
    expect(ran).toBeGreaterThanOrEqual(9);
    expect(ran).toBeLessThanOrEqual(11);
  });

  test("C11: at rest all of them together ask one question a second", async () => {
    let calls = 0;
    world = new World({
      tasks: [],
      around: (store) =>
        faultyStore(store, () => {
          calls++;
          return undefined;
        }),
    });
    await world.upkeep();
    await world.clock.advance(70_000);
    calls = 0;
    await world.clock.advance(60_000);
    expect(calls).toBeLessThanOrEqual(61);
  });

  test("stop leaves no timer behind", async () => {
    world = new World({ tasks: [] });
    const maintenance = await world.upkeep();
    await world.clock.advance(3_000);
    await maintenance.stop();
    expect(world.clock.nextIn()).toBeUndefined();
  });
});
