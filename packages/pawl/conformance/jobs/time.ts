import { expect } from "vitest";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { DAY, FAILED, HOUR, LEASE, MINUTE, SECOND, START } from "../world.js";

export function timeTests(test: Test): void {
  test("a delayed job is promoted at its time, and not a millisecond before", async (w) => {
    const id = await w.add({ delay: HOUR });
    w.clock.advance(HOUR - 1);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 0, nextIn: 1 });
    expect(await w.state(id)).toBe("scheduled");
    w.clock.advance(1);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 1 });
    expect(await w.state(id)).toBe("ready");
    expect((await w.hold()).job.dueAt).toBe(START + HOUR);
  });

  test("what is due is promoted oldest first, so many and no more", async (w) => {
    const [c, a, b] = [await w.add({ delay: 3 * SECOND }), await w.add({ delay: SECOND }), await w.add({ delay: 2 * SECOND })];
    w.clock.advance(10 * SECOND);
    expect(await dutiesOf(w.store).promote(2)).toEqual({ count: 2, nextIn: -7 * SECOND });
    expect(await w.claimIds()).toEqual([a, b]);
    expect(await dutiesOf(w.store).promote(2)).toEqual({ count: 1 });
    expect(await w.claimIds()).toEqual([c]);
  });

  test("jobs due at the same time are promoted in the order of their ids", async (w) => {
    const ids = [await w.add({ delay: SECOND }), await w.add({ delay: SECOND }), await w.add({ delay: SECOND })];
    w.clock.advance(SECOND);
    await dutiesOf(w.store).promote(10);
    expect(await w.claimIds()).toEqual(ids);
  });

  test("a promotion says when the next one is due", async (w) => {
    await w.add({ delay: MINUTE });
    await w.add({ delay: HOUR });
    w.clock.advance(MINUTE);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 1, nextIn: HOUR - MINUTE });
  });

  test("with nothing scheduled there is nothing to promote", async (w) => {
    await w.add();
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 0 });
  });

  test("a promoted job goes to the back of its lane", async (w) => {
    const late = await w.add({ delay: SECOND });
    const early = await w.add();
    w.clock.advance(SECOND);
    await dutiesOf(w.store).promote(10);
    expect(await w.claimIds()).toEqual([early, late]);
  });

  test("a retry is promoted at its time with what it has spent", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED, [MINUTE]);
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).promote(10);
    expect((await w.hold()).job).toMatchObject({ id, attempts: 1 });
  });

  test("a year ahead is neither early nor lost", async (w) => {
    const id = await w.add({ delay: 365 * DAY });
    w.clock.advance(364 * DAY);
    await dutiesOf(w.store).promote(10);
    expect(await w.state(id)).toBe("scheduled");
    w.clock.advance(DAY);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 1 });
    expect(await w.claimIds()).toEqual([id]);
  });

  test("a scheduled job can be run now, keeping what it has spent", async (w) => {
    const fresh = await w.add({ delay: HOUR });
    expect(await w.store.jobs.promote("everyone", fresh)).toEqual({ kind: "changed", from: "scheduled", to: "ready" });
    await w.run(fresh, FAILED, [HOUR]);
    expect(await w.store.jobs.promote("everyone", fresh)).toEqual({ kind: "changed", from: "scheduled", to: "ready" });
    const seen = await w.get(fresh);
    expect(seen).toMatchObject({ state: "ready", attempts: 1, failure: { name: "TypeError" } });
    expect(await w.store.jobs.history("everyone", fresh), "it leaves no mark").toHaveLength(1);
  });

  test("the poll of an empty store is only the time", async (w) => {
    const { now, due } = await w.store.duties.poll();
    expect([now, [...due]]).toEqual([START, []]);
  });

  test("the poll tells how long until the next job, the next lease end and the next timer", async (w) => {
    await w.add({ delay: HOUR });
    await w.add({ delay: 2 * HOUR, options: { startWithin: MINUTE } });
    await w.add();
    await w.hold();
    w.clock.advance(SECOND);
    const { now, due } = await w.store.duties.poll();
    expect(now).toBe(START + SECOND);
    expect(["promote", "reap", "expire"].map((duty) => due.get(duty))).toEqual([HOUR - SECOND, LEASE - SECOND, 2 * HOUR + MINUTE - SECOND]);
  });

  test("the poll tells what is overdue as zero or less", async (w) => {
    await w.add({ delay: MINUTE, options: { finishWithin: MINUTE } });
    await w.add();
    await w.hold();
    w.clock.advance(DAY);
    const { due } = await w.store.duties.poll();
    expect(["promote", "reap", "expire"].map((duty) => (due.get(duty) ?? 1) <= 0)).toEqual([true, true, true]);
  });

  test("a finished job leaves nothing for a duty to do", async (w) => {
    const id = await w.add({ options: { startWithin: MINUTE, finishWithin: HOUR } });
    await w.run(id);
    w.clock.advance(DAY);
    expect([await dutiesOf(w.store).reap(10), await dutiesOf(w.store).promote(10), await dutiesOf(w.store).expire(10)]).toEqual([
      { leases: 0, jobs: 0 },
      { count: 0 },
      0,
    ]);
    expect(await w.state(id)).toBe("succeeded");
  });
}
