import { expect } from "vitest";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { FAILED, lane, MINUTE, NOBODY, RELEASED, SUCCEEDED, type World } from "../world.js";

export function suspectTests(test: Test): void {
  test("after one crash a job runs among others as before", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    await w.hold();
    await w.vanish();
    expect(await w.claimIds()).toEqual([b, a]);
  });

  test("after a second crash a job is ready, and only given out as a suspect", async (w) => {
    const id = await w.suspect();
    expect(await w.get(id)).toMatchObject({ state: "ready", crashes: 2, attempts: 0 });
    expect(await w.claim()).toBeUndefined();
    const { job } = await w.holdSuspect();
    expect(job).toMatchObject({ id, crashes: 2, lane: lane() });
    expect(await w.state(id)).toBe("running");
  });

  test("suspects come one to a lease, first come, first served", async (w) => {
    const ids = [await w.suspect(), await w.suspect(), await w.suspect()];
    const claims = [await w.claimSuspect(), await w.claimSuspect(), await w.claimSuspect(), await w.claimSuspect()];
    expect(claims.map((claimed) => claimed?.jobs.map(({ id }) => id))).toEqual([[ids[0]], [ids[1]], [ids[2]], undefined]);
    expect(new Set(claims.map((claimed) => claimed?.lease)).size).toBe(4);
  });

  test("suspects are given out by queue and task", async (w) => {
    const id = await w.suspect({ queue: "mail", task: "send" });
    expect(await w.claimSuspect({ queues: ["mail"], tasks: ["work"] })).toBeUndefined();
    expect(await w.claimSuspect({ queues: ["default"], tasks: ["send"] })).toBeUndefined();
    expect(await w.claimSuspect({ queues: [], tasks: [] })).toBeUndefined();
    const claimed = await w.claimSuspect({ queues: ["default", "mail"], tasks: ["work", "send"] });
    expect(claimed?.jobs.map((job) => job.id)).toEqual([id]);
  });

  test("a paused queue or task gives out no suspects", async (w) => {
    const id = await w.suspect();
    for (const [kind, name] of [
      ["queue", "default"],
      ["task", "work"],
    ] as const) {
      await w.store.lanes.pause(kind, name);
      expect(await w.claimSuspect()).toBeUndefined();
      expect((await w.store.lanes.live(undefined, ["work"])).suspects).toBe(false);
      await w.store.lanes.resume(kind, name);
    }
    expect((await w.claimSuspect())?.jobs[0]?.id).toBe(id);
  });

  test("a job that keeps killing its worker is dead, and its neighbours are unharmed", async (w) => {
    const [pill = NOBODY, ...neighbours] = await suspects(w, 4);
    for (let n = 0; n < 4; n++) {
      const held = await w.holdSuspect();
      if (held.job.id === pill) await w.vanish();
      else await w.settle(held, SUCCEEDED);
    }
    expect(await w.get(pill)).toMatchObject({ state: "dead", crashes: 3, attempts: 0, failure: { kind: "poison" } });
    expect(await Promise.all(neighbours.map((id) => w.state(id)))).toEqual(["succeeded", "succeeded", "succeeded"]);
  });

  test("a job is not convicted for a crash it shared", async (w) => {
    const [a, b] = [await w.add({ options: { maxCrashes: 2 } }), await w.add({ options: { maxCrashes: 2 } })];
    for (let crash = 0; crash < 2; crash++) {
      await w.holdAll();
      await w.vanish();
    }
    expect([await w.get(a), await w.get(b)]).toMatchObject([
      { state: "ready", crashes: 2 },
      { state: "ready", crashes: 2 },
    ]);
    const alone = await w.holdSuspect();
    await w.vanish();
    expect([await w.state(a), await w.state(b)]).toEqual(alone.job.id === a ? ["dead", "ready"] : ["ready", "dead"]);
  });

  test("alone in an ordinary lease is not alone as a suspect", async (w) => {
    const id = await w.add({ options: { maxCrashes: 2 } });
    for (let crash = 0; crash < 2; crash++) {
      await w.hold();
      await w.vanish();
    }
    expect(await w.get(id)).toMatchObject({ state: "ready", crashes: 2 });
  });

  test("a crash limit of one is dead at the first crash", async (w) => {
    const id = await w.add({ options: { maxCrashes: 1 } });
    await w.hold();
    await w.vanish();
    expect(await w.get(id)).toMatchObject({ state: "dead", crashes: 1, failure: { kind: "poison" } });
  });

  test("a higher crash limit gives a suspect more chances", async (w) => {
    const id = await w.suspect({ options: { maxCrashes: 4 } });
    await w.holdSuspect();
    await w.vanish();
    expect(await w.get(id)).toMatchObject({ state: "ready", crashes: 3 });
    await w.holdSuspect();
    await w.vanish();
    expect(await w.get(id)).toMatchObject({ state: "dead", crashes: 4 });
  });

  test("a suspect that fails or is released is a suspect when it is ready again", async (w) => {
    const id = await w.suspect();
    await w.settle(await w.holdSuspect(), RELEASED);
    await w.settle(await w.holdSuspect(), FAILED, [MINUTE]);
    expect(await w.get(id)).toMatchObject({ state: "scheduled", crashes: 2, attempts: 1 });
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).promote(10);
    expect(await w.claim()).toBeUndefined();
    expect((await w.holdSuspect()).job).toMatchObject({ id, attempts: 1, crashes: 2 });
  });

  test("a suspect that succeeds is done", async (w) => {
    const id = await w.suspect();
    expect(await w.settle(await w.holdSuspect(), SUCCEEDED)).toBe("settled");
    expect(await w.get(id)).toMatchObject({ state: "succeeded", crashes: 2, attempts: 1 });
  });

  test("a suspect can be paused, resumed and cancelled like any other", async (w) => {
    const id = await w.suspect();
    expect(await w.store.jobs.pause("everyone", id)).toEqual({ kind: "changed", from: "ready", to: "parked" });
    expect(await w.claimSuspect()).toBeUndefined();
    expect(await w.store.jobs.resume("everyone", id)).toEqual({ kind: "changed", from: "parked", to: "ready" });
    expect(await w.claim()).toBeUndefined();
    expect(await w.store.jobs.cancel("everyone", id, "enough")).toEqual({ kind: "changed", from: "ready", to: "cancelled" });
    expect(await w.claimSuspect()).toBeUndefined();
  });

  test("live lanes tell of suspects, and do not count them as ready work", async (w) => {
    await w.suspect();
    expect(await w.store.lanes.live(undefined, ["work"])).toMatchObject({ lanes: [], suspects: true });
    expect(await w.store.lanes.live(["default"], ["work"])).toMatchObject({ lanes: [], suspects: true });
    expect(await w.store.lanes.live(["mail"], ["work"])).toMatchObject({ lanes: [], suspects: false });
    expect(await w.store.lanes.live(undefined, ["send"])).toMatchObject({ lanes: [], suspects: false });
  });

  test("a redriven poison pill is no suspect any more", async (w) => {
    const id = await w.suspect();
    await w.holdSuspect();
    await w.vanish();
    expect(await w.state(id)).toBe("dead");
    await w.store.jobs.redrive("everyone", id, {});
    expect(await w.get(id)).toMatchObject({ state: "ready", crashes: 0 });
    expect(await w.claimIds()).toEqual([id]);
  });
}

/** Jobs that two workers vanished with, together. */
async function suspects(w: World, count: number) {
  const ids = [];
  for (let n = 0; n < count; n++) ids.push(await w.add());
  for (let crash = 0; crash < 2; crash++) {
    await w.holdAll();
    await w.vanish();
  }
  return ids;
}
