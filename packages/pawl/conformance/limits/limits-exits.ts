import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { BOB, FAILED, KILLED, MINUTE, RELEASED, SECOND, SNOOZED, SUCCEEDED, type World } from "../world.js";
import { addMany, holders, ONE, states, TWO, under } from "./limit-world.js";

/** A job that leaves what it held goes out of the way of the next. */
export function limitExitTests(test: Test): void {
  const exits: Readonly<Record<string, (w: World, id: JobId) => Promise<unknown>>> = {
    "that succeeds": (w, id) => w.run(id),
    "that fails for good": (w, id) => w.run(id, KILLED),
    "that fails and is retried later": (w, id) => w.run(id, FAILED),
    "that is snoozed": (w, id) => w.run(id, SNOOZED),
    "that is cancelled while it is ready": (w, id) => w.store.jobs.cancel("everyone", id, "why not"),
    "that is paused while it is ready": (w, id) => w.store.jobs.pause("everyone", id),
    "that is cancelled while it runs": async (w, id) => {
      const held = await w.hold();
      await w.store.jobs.cancel("everyone", id, "why not");
      await w.settle(held, { kind: "cancelled" });
    },
    "that is paused while it runs": async (w, id) => {
      const held = await w.hold();
      await w.store.jobs.pause("everyone", id);
      await w.settle(held, RELEASED);
    },
    "that expires": async (w) => {
      w.clock.advance(MINUTE);
      await dutiesOf(w.store).expire(10);
    },
  };
  for (const [how, exit] of Object.entries(exits)) {
    test(`a job ${how} gives its slot to the next`, async (w) => {
      const id = await w.add({ options: { ...under(ONE), ...(how === "that expires" ? { startWithin: SECOND } : {}) } });
      const next = await w.add({ options: under(ONE) });
      expect(await w.state(next)).toBe("parked");
      await exit(w, id);
      expect(await w.state(next)).toBe("ready");
      expect(await holders(w)).toEqual([next]);
    });
  }

  test("a job that is given back asks anew, and is let in again where nobody was before it", async (w) => {
    const id = await w.add({ options: under(ONE) });
    await w.run(id, RELEASED);
    expect(await w.state(id)).toBe("ready");
    const next = await w.add({ options: under(ONE) });
    await w.run(id, RELEASED);
    expect(await states(w, [id, next])).toEqual(["parked", "ready"]);
  });

  test("the slot of a job whose worker vanished is free once it was reaped", async (w) => {
    const id = await w.add({ options: under(ONE) });
    const next = await w.add({ options: under(ONE) });
    await w.hold();
    await w.vanish();
    expect(await states(w, [id, next])).toEqual(["parked", "ready"]);
    expect(await holders(w)).toEqual([next]);
  });

  test("a retried job takes a slot again when it is due", async (w) => {
    const id = await w.add({ options: under(ONE) });
    const next = await w.add({ options: under(ONE) });
    await w.run(id, FAILED, [SECOND]);
    w.clock.advance(SECOND);
    await dutiesOf(w.store).promote(10);
    expect(await states(w, [id, next])).toEqual(["parked", "ready"]);
    await w.run(next);
    expect(await w.state(id)).toBe("ready");
  });

  test("a job that waits at a limit key can be cancelled, paused and resumed, and expires", async (w) => {
    const first = await w.add({ options: under(ONE) });
    const [cancelled, paused, late, last] = await addMany(w, 4, { options: { ...under(ONE), startWithin: MINUTE } });
    await w.store.jobs.cancel("everyone", cancelled as JobId, "why not");
    await w.store.jobs.pause("everyone", paused as JobId);
    expect((await w.get(paused as JobId)).parkedFor).toBe("paused");
    await w.store.jobs.resume("everyone", paused as JobId);
    expect((await w.get(paused as JobId)).parkedFor).toBe("concurrency");
    await w.run(first);
    expect(await states(w, [cancelled, paused, late, last] as JobId[])).toEqual(["cancelled", "parked", "ready", "parked"]);
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).expire(10);
    expect(await states(w, [paused, late, last] as JobId[])).toEqual(["dead", "dead", "dead"]);
    expect(await holders(w)).toEqual([]);
  });

  test("resume leaves a job that waits at a limit key where it is", async (w) => {
    const [first, second, third] = await addMany(w, 3, { options: under(ONE) });
    expect(await w.store.jobs.resume("everyone", second as JobId)).toEqual({ kind: "changed", from: "parked", to: "parked" });
    await w.run(first as JobId);
    expect(await states(w, [second, third] as JobId[])).toEqual(["ready", "parked"]);
  });

  test("a dead job that is redriven lines up like a new one", async (w) => {
    const id = await w.add({ options: under(ONE) });
    await w.run(id, KILLED);
    const other = await w.add({ options: under(ONE) });
    expect(await w.store.jobs.redrive("everyone", id, {})).toMatchObject({ from: "dead", to: "parked" });
    expect(await states(w, [other, id])).toEqual(["ready", "parked"]);
    await w.run(other);
    await w.run(id);
    expect(await holders(w)).toEqual([]);
  });

  test("a job that waits at a limit key is let in once by two who look at once", async (w) => {
    const ids = await addMany(w, 3, { options: under(TWO) });
    const [first] = await w.holdAll({ limit: 1 });
    if (first === undefined) throw new Error("nothing to claim");
    await Promise.all([w.settle(first, SUCCEEDED), dutiesOf(w.store).admit(10), dutiesOf(w.store).admit(10)]);
    expect(await states(w, ids)).toEqual(["succeeded", "ready", "ready"]);
    expect(await holders(w)).toEqual(ids.slice(1));
  });

  test("a settlement that is repeated frees nothing twice", async (w) => {
    const ids = await addMany(w, 3, { options: under(ONE) });
    const held = await w.hold();
    const settlement = w.settlement(held, SUCCEEDED);
    expect(await w.store.leases.settle(held.worker, [settlement])).toEqual(["settled"]);
    const again = await w.hold({ worker: BOB });
    expect(again.job.id).toBe(ids[1]);
    expect(await w.store.leases.settle(held.worker, [settlement])).toEqual(["settled"]);
    expect(await states(w, ids)).toEqual(["succeeded", "running", "parked"]);
  });
}
