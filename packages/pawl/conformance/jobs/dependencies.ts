import { expect } from "vitest";
import { failureOfParent } from "../../src/core/jobs/dependency.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { DAY, FAILED, HOUR, KILLED, lane, MINUTE, NOBODY, START, SUCCEEDED } from "../world.js";

const CHILD = { task: "child" };
const CHILD_LANE = { lanes: [lane(CHILD)] };

export function dependencyTests(test: Test): void {
  test("a job is blocked until its parent succeeds, and ready in the same step", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent] });
    expect(await w.get(child)).toMatchObject({ state: "blocked", waitsFor: [parent] });
    expect(await w.claim(CHILD_LANE)).toBeUndefined();
    await w.run(parent);
    expect((await w.get(child)).state).toBe("ready");
    await w.run(child, SUCCEEDED, undefined, CHILD_LANE);
  });

  test("a job waits for every one of its parents", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const child = await w.add({ ...CHILD, after: [a, b, a] });
    expect((await w.get(child)).waitsFor).toEqual([a, b]);
    await w.run(a);
    expect(await w.get(child)).toMatchObject({ state: "blocked", waitsFor: [b] });
    await w.run(b);
    expect(await w.state(child)).toBe("ready");
  });

  test("both parents of a job can end in one settle", async (w) => {
    const child = await w.add({ ...CHILD, after: [await w.add(), await w.add()] });
    const held = await w.holdAll();
    await w.settleAll(held, SUCCEEDED);
    expect(await w.state(child)).toBe("ready");
  });

  test("a released job whose time is to come is scheduled for it", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent], delay: HOUR });
    await w.run(parent);
    expect(await w.get(child)).toMatchObject({ state: "scheduled", runAt: START + HOUR });
  });

  test("a released job whose time has come is ready", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent], delay: MINUTE });
    w.clock.advance(HOUR);
    await w.run(parent);
    expect(await w.get(child)).toMatchObject({ state: "ready", dueAt: START + MINUTE });
  });

  test("a blocked job is not promoted when its time comes", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent], delay: MINUTE });
    w.clock.advance(HOUR);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 0 });
    expect(await w.state(child)).toBe("blocked");
  });

  test("asked to die with its parent, a job is dead and names the parent", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "die" });
    await w.run(parent, KILLED);
    const seen = await w.get(child);
    expect(seen).toMatchObject({ state: "dead", attempts: 0, finishedAt: START, failure: failureOfParent(parent) });
    const history = await w.store.jobs.history("everyone", child);
    expect(history).toMatchObject([{ outcome: "failed", next: "dead", startedAt: START, finishedAt: START }]);
    expect(history[0]?.worker).toBeUndefined();
  });

  test("asked to run anyway, a job is ready when its parent dies", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "run" });
    await w.run(parent, KILLED);
    expect(await w.state(child)).toBe("ready");
  });

  test("asked to wait, a job stays blocked when its parent dies, until a redrive of the parent succeeds", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "wait" });
    await w.run(parent, KILLED);
    expect(await w.get(child)).toMatchObject({ state: "blocked", waitsFor: [parent] });
    await w.store.jobs.redrive("everyone", parent, {});
    expect(await w.state(child)).toBe("blocked");
    await w.run(parent);
    expect(await w.state(child)).toBe("ready");
  });

  test("a cancelled parent counts as a dead one", async (w) => {
    const parent = await w.add();
    const die = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "die" });
    const run = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "run" });
    const wait = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "wait" });
    await w.store.jobs.cancel("everyone", parent, "no need");
    expect([await w.state(die), await w.state(run), await w.state(wait)]).toEqual(["dead", "ready", "blocked"]);
  });

  test("a parent that expires takes its children with it", async (w) => {
    const parent = await w.add({ options: { startWithin: MINUTE } });
    const child = await w.add({ ...CHILD, after: [parent] });
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).expire(10);
    expect([await w.state(parent), await w.state(child)]).toEqual(["dead", "dead"]);
  });

  test("a parent that dies with its worker takes its children with it", async (w) => {
    const parent = await w.add({ options: { atMostOnce: true } });
    const child = await w.add({ ...CHILD, after: [parent] });
    await w.hold();
    await w.vanish();
    expect([await w.state(parent), await w.state(child)]).toEqual(["dead", "dead"]);
  });

  test("a parent that waits for a retry releases nobody", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "run" });
    await w.run(parent, FAILED);
    expect([await w.state(parent), await w.state(child)]).toEqual(["scheduled", "blocked"]);
  });

  test("death runs down the generations, each by its own rule", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent] });
    const dies = await w.add({ ...CHILD, after: [child] });
    const runs = await w.add({ ...CHILD, after: [child], onDependencyDeath: "run" });
    const waits = await w.add({ ...CHILD, after: [child], onDependencyDeath: "wait" });
    const last = await w.add({ ...CHILD, after: [dies] });
    await w.run(parent, KILLED);
    const states = await Promise.all([child, dies, runs, waits, last].map((id) => w.state(id)));
    expect(states).toEqual(["dead", "dead", "ready", "blocked", "dead"]);
    expect((await w.get(last)).failure?.message).toContain(dies);
  });

  test("one dead parent dooms a job, whatever becomes of the others", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const child = await w.add({ ...CHILD, after: [a, b] });
    await w.run(a, KILLED);
    expect(await w.state(child)).toBe("dead");
    await w.run(b);
    expect(await w.state(child)).toBe("dead");
    expect(await w.store.jobs.history("everyone", child)).toHaveLength(1);
  });

  test("parents that succeeded before count as satisfied", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    await w.run(a);
    expect(await w.state(await w.add({ ...CHILD, after: [a] }))).toBe("ready");
    const half = await w.add({ ...CHILD, after: [a, b] });
    expect(await w.get(half)).toMatchObject({ state: "blocked", waitsFor: [b] });
  });

  test("a job whose parents have succeeded before is work that the next look finds, also where all was at rest", async (w) => {
    const parent = await w.add();
    await w.run(parent);
    const look = async () => (await w.store.lanes.live(undefined, ["work", "child"])).lanes;
    // A store may spare looks once one found nothing and a poll has seen nothing new.
    for (let looks = 0; looks < 3; looks++) {
      expect(await look()).toEqual([]);
      await w.store.duties.poll();
    }
    await w.add({ ...CHILD, after: [parent] });
    expect(await look()).toEqual([lane(CHILD)]);
  });

  test("a parent that died before counts by the newcomer's rule at once", async (w) => {
    const parent = await w.add();
    await w.run(parent, KILLED);
    const die = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "die" });
    const run = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "run" });
    const wait = await w.add({ ...CHILD, after: [parent], onDependencyDeath: "wait" });
    expect(await w.get(die)).toMatchObject({ state: "dead", failure: failureOfParent(parent) });
    expect([await w.state(run), await w.state(wait)]).toEqual(["ready", "blocked"]);
  });

  test("an unknown parent orphans that one job of the batch", async (w) => {
    const answers = await w.enqueue({}, { after: [NOBODY] }, {});
    expect(answers).toMatchObject([{ kind: "created" }, { kind: "dependencyUnknown", parent: NOBODY }, { kind: "created" }]);
    expect((await w.store.jobs.list("everyone", {}, { limit: 10 })).jobs).toHaveLength(2);
  });

  test("another tenant's parent is unknown", async (w) => {
    const parent = await w.add({ tenant: "umbrella" });
    expect(await w.enqueue({ after: [parent] })).toEqual([{ kind: "dependencyUnknown", parent }]);
  });

  test("a deleted parent is unknown", async (w) => {
    const parent = await w.add();
    await w.run(parent);
    await w.store.jobs.delete("everyone", parent);
    expect(await w.enqueue({ after: [parent] })).toEqual([{ kind: "dependencyUnknown", parent }]);
  });

  test("a cancelled child does not come back when its parent succeeds", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent] });
    await w.store.jobs.cancel("everyone", child, "no need");
    await w.run(parent);
    expect(await w.state(child)).toBe("cancelled");
  });

  test("children of one parent become ready in the order of their ids", async (w) => {
    const parent = await w.add();
    const late = await w.add({ ...CHILD, after: [parent], delay: 2 });
    const early = await w.add({ ...CHILD, after: [parent], delay: 1 });
    const first = await w.add({ ...CHILD, after: [parent] });
    w.clock.advance(DAY);
    await w.run(parent);
    expect(await w.claimIds(CHILD_LANE)).toEqual([first, early, late]);
  });

  test("a parent settled twice releases once", async (w) => {
    const parent = await w.add();
    const child = await w.add({ ...CHILD, after: [parent] });
    const held = await w.hold();
    await w.settle(held, SUCCEEDED);
    const second = await w.hold(CHILD_LANE);
    expect(await w.settle(held, SUCCEEDED)).toBe("settled");
    expect(second.job.id).toBe(child);
    expect(await w.claim(CHILD_LANE)).toBeUndefined();
  });

  test("parents that died together name one of them, and the job dies once", async (w) => {
    const parents = [await w.add(), await w.add()];
    const child = await w.add({ ...CHILD, after: parents });
    const held = await w.holdAll();
    await w.settleAll(held, KILLED);
    expect(await w.store.jobs.history("everyone", child)).toHaveLength(1);
  });

  test("unblocking changes nothing when verbs came one after the other", async (w) => {
    const parents = [await w.add(), await w.add()];
    const free = await w.add({ ...CHILD, after: [parents[0] ?? NOBODY] });
    const waits = await w.add({ ...CHILD, after: parents });
    await w.run(parents[0] ?? NOBODY);
    const before = [await w.get(free), await w.get(waits)];
    await dutiesOf(w.store).unblock(100);
    expect([await w.get(free), await w.get(waits)]).toEqual(before);
  });
}
