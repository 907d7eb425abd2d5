import { expect } from "vitest";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { FAILED, HOUR, KILLED, MINUTE, RELEASED, SECOND, START, SUCCEEDED } from "../world.js";

const EXPIRES = { options: { startWithin: MINUTE } };
const DEADLINE = { options: { finishWithin: MINUTE } };

export function expireTests(test: Test): void {
  test("a job that did not start in time is dead at the moment it expires", async (w) => {
    const id = await w.add(EXPIRES);
    w.clock.advance(MINUTE - 1);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect(await w.state(id)).toBe("ready");
    w.clock.advance(1);
    expect(await dutiesOf(w.store).expire(10)).toBe(1);
    expect(await w.get(id)).toMatchObject({ state: "dead", attempts: 0, finishedAt: START + MINUTE, failure: { kind: "expired" } });
    const history = await w.store.jobs.history("everyone", id);
    expect(history).toMatchObject([{ outcome: "failed", next: "dead", startedAt: START + MINUTE, finishedAt: START + MINUTE }]);
    expect(history[0]?.worker).toBeUndefined();
    expect(await w.claim()).toBeUndefined();
  });

  test("expiry counts from the due time", async (w) => {
    const id = await w.add({ ...EXPIRES, delay: HOUR });
    w.clock.advance(HOUR + MINUTE - 1);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    w.clock.advance(1);
    expect(await dutiesOf(w.store).expire(10)).toBe(1);
    expect(await w.state(id)).toBe("dead");
  });

  test("an overdue job is given out as long as it was not expired: its worker decides", async (w) => {
    const id = await w.add(EXPIRES);
    w.clock.advance(HOUR);
    expect(await w.claimIds()).toEqual([id]);
  });

  test("a job that started does not expire: not while it runs, and not when it waits again", async (w) => {
    const [running, retrying, released] = [await w.add(EXPIRES), await w.add(EXPIRES), await w.add(EXPIRES)];
    const [, second, third] = await w.holdAll({ duration: HOUR });
    if (second === undefined || third === undefined) throw new Error("nothing held");
    await w.settle(second, FAILED, [HOUR]);
    await w.settle(third, RELEASED);
    w.clock.advance(2 * MINUTE);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect([await w.state(running), await w.state(retrying), await w.state(released)]).toEqual(["running", "scheduled", "ready"]);
  });

  test("a job that crashed has started", async (w) => {
    const id = await w.add(EXPIRES);
    await w.hold();
    await w.vanish();
    w.clock.advance(MINUTE);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect(await w.state(id)).toBe("ready");
  });

  test("parked and blocked jobs expire too", async (w) => {
    const parent = await w.add({ task: "parent" });
    const [parked, blocked] = [await w.add(EXPIRES), await w.add({ ...EXPIRES, after: [parent] })];
    await w.store.jobs.pause("everyone", parked);
    w.clock.advance(MINUTE);
    expect(await dutiesOf(w.store).expire(10)).toBe(2);
    expect([await w.get(parked), await w.get(blocked)]).toMatchObject([
      { state: "dead", failure: { kind: "expired" } },
      { state: "dead", failure: { kind: "expired" } },
    ]);
  });

  test("a job that waits when its deadline passes is dead", async (w) => {
    const [fresh, retrying] = [await w.add(DEADLINE), await w.add(DEADLINE)];
    const held = await w.holdAll();
    await w.settleAll(held.slice(0, 1), RELEASED);
    await w.settleAll(held.slice(1), FAILED, [30 * SECOND]);
    w.clock.advance(MINUTE - 1);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    w.clock.advance(1);
    expect(await dutiesOf(w.store).expire(10)).toBe(2);
    expect([await w.get(fresh), await w.get(retrying)]).toMatchObject([
      { state: "dead", attempts: 0, failure: { kind: "deadline" } },
      { state: "dead", attempts: 1, failure: { kind: "deadline" } },
    ]);
  });

  test("a job whose next attempt would start after its deadline is dead of that, and its attempt keeps its own failure", async (w) => {
    const [failed, free] = [await w.add(DEADLINE), await w.add()];
    const child = await w.add({ after: [failed] });
    const [first, second] = await w.holdAll();
    if (first === undefined || second === undefined) throw new Error("nothing held");
    expect(await w.settleAll([first, second], FAILED, [HOUR])).toEqual(["settled", "settled"]);
    const record = await w.get(failed);
    expect(record).toMatchObject({ state: "dead", attempts: 1, failure: { kind: "deadline", causes: [{ name: "TypeError", message: "no" }] } });
    const history = await w.store.jobs.history("everyone", failed);
    expect(history).toMatchObject([
      { outcome: "failed", next: "dead", failure: { kind: "error", name: "TypeError", message: "no" } },
      { outcome: "failed", next: "dead", failure: { kind: "deadline" } },
    ]);
    expect([history[0]?.worker, history[1]?.worker]).toEqual(["ana", undefined]);
    const found = await w.store.jobs.list("everyone", { failure: "deadline" }, { limit: 10 });
    expect(found.jobs.map(({ id }) => id)).toEqual([failed]);
    expect(await w.store.dead.groups("everyone", { failure: "deadline" }, 10)).toMatchObject([{ count: 1, sample: { id: failed } }]);
    expect((await w.store.jobs.list("everyone", { failure: "TypeError" }, { limit: 10 })).jobs).toEqual([]);
    expect([await w.state(free), await w.state(child)]).toEqual(["scheduled", "dead"]);
    expect(await w.settle(first, FAILED, [HOUR]), "again, since the answer was lost").toBe("settled");
    expect(await w.store.jobs.history("everyone", failed)).toHaveLength(2);
  });

  test("a running job is left to its worker when its deadline passes", async (w) => {
    const id = await w.add(DEADLINE);
    const held = await w.hold({ duration: HOUR });
    w.clock.advance(2 * MINUTE);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect(await w.settle(held, SUCCEEDED)).toBe("settled");
    expect(await w.state(id)).toBe("succeeded");
  });

  test("a job released after its deadline is found by the next look", async (w) => {
    const id = await w.add(DEADLINE);
    const held = await w.hold({ duration: HOUR });
    w.clock.advance(2 * MINUTE);
    await dutiesOf(w.store).expire(10);
    await w.settle(held, RELEASED);
    expect(await dutiesOf(w.store).expire(10)).toBe(1);
    expect(await w.get(id)).toMatchObject({ state: "dead", failure: { kind: "deadline" } });
  });

  test("of an expiry and a deadline the earlier one rules", async (w) => {
    const expired = await w.add({ options: { startWithin: SECOND, finishWithin: MINUTE } });
    const late = await w.add({ options: { startWithin: MINUTE, finishWithin: SECOND } });
    w.clock.advance(HOUR);
    expect(await dutiesOf(w.store).expire(10)).toBe(2);
    expect([await w.get(expired), await w.get(late)]).toMatchObject([{ failure: { kind: "expired" } }, { failure: { kind: "deadline" } }]);
  });

  test("expiring takes so many jobs and no more, the longest overdue first", async (w) => {
    const [second, first] = [await w.add({ options: { startWithin: MINUTE } }), await w.add({ options: { startWithin: SECOND } })];
    w.clock.advance(HOUR);
    expect(await dutiesOf(w.store).expire(1)).toBe(1);
    expect([await w.state(first), await w.state(second)]).toEqual(["dead", "ready"]);
    expect(await dutiesOf(w.store).expire(1)).toBe(1);
    expect(await dutiesOf(w.store).expire(1)).toBe(0);
  });

  test("jobs that ended in time, or run, take up nothing of what expiring may take", async (w) => {
    const early = { options: { finishWithin: SECOND, startWithin: SECOND } };
    const [done, running] = [await w.add(early), await w.add(early)];
    const [first] = await w.holdAll({ duration: HOUR });
    if (first === undefined) throw new Error("nothing held");
    await w.settle(first, SUCCEEDED);
    const late = [await w.add(EXPIRES), await w.add(EXPIRES), await w.add(EXPIRES)];
    w.clock.advance(MINUTE);
    expect(await dutiesOf(w.store).expire(1)).toBe(1);
    expect(await dutiesOf(w.store).expire(2)).toBe(2);
    expect(await dutiesOf(w.store).expire(1)).toBe(0);
    expect([await w.state(done), await w.state(running)]).toEqual(["succeeded", "running"]);
    for (const id of late) expect(await w.state(id)).toBe("dead");
  });

  test("the history of a redriven job keeps the reason", async (w) => {
    const id = await w.add();
    await w.run(id, KILLED);
    await w.store.jobs.redrive("everyone", id, { reason: "the address is back" });
    expect((await w.store.jobs.history("everyone", id)).at(-1)).toMatchObject({ outcome: "redriven", failure: { message: "the address is back" } });
  });

  test("an expired job that is redriven does not expire again", async (w) => {
    const id = await w.add({ options: { startWithin: MINUTE, finishWithin: HOUR } });
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).expire(10);
    await w.store.jobs.redrive("everyone", id, {});
    w.clock.advance(2 * HOUR);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect(await w.claimIds()).toEqual([id]);
  });

  test("a redriven job has neither an expiry nor a deadline any more, and keeps its other options", async (w) => {
    const id = await w.add({ options: { finishWithin: MINUTE, startWithin: MINUTE, tags: ["t"], maxCrashes: 5 } });
    await w.run(id, KILLED);
    await w.store.jobs.redrive("everyone", id, {});
    expect((await w.get(id)).options).toEqual({ tags: ["t"], maxCrashes: 5 });
    expect((await w.hold()).job.options).toEqual({ tags: ["t"], maxCrashes: 5 });
    w.clock.advance(HOUR);
    await dutiesOf(w.store).reap(10);
    expect(await w.get(id), "a crash does not meet the old deadline").toMatchObject({ state: "ready", crashes: 1 });
  });

  test("a job that died before its deadline and is redriven is not killed by it", async (w) => {
    const id = await w.add(DEADLINE);
    await w.run(id, KILLED);
    await w.store.jobs.redrive("everyone", id, { delay: HOUR });
    w.clock.advance(MINUTE);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect(await w.state(id)).toBe("scheduled");
  });

  test("a job that is late together with its parent dies of its own lateness", async (w) => {
    const parent = await w.add(EXPIRES);
    const child = await w.add({ ...EXPIRES, after: [parent] });
    w.clock.advance(MINUTE);
    expect(await dutiesOf(w.store).expire(10)).toBe(2);
    expect([await w.get(parent), await w.get(child)]).toMatchObject([{ failure: { kind: "expired" } }, { failure: { kind: "expired" } }]);
  });

  test("a cancelled or deleted job is not expired", async (w) => {
    const [cancelled, dropped] = [await w.add(EXPIRES), await w.add(EXPIRES)];
    await w.store.jobs.cancel("everyone", cancelled, "no need");
    await w.store.jobs.cancel("everyone", dropped, "no need");
    await w.store.jobs.delete("everyone", dropped);
    w.clock.advance(HOUR);
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect([await w.state(cancelled), await w.state(dropped)]).toEqual(["cancelled", "deleted"]);
  });
}
