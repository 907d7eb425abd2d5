import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { LimitRule } from "../../src/core/limits/limit-rule.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { FAILED, KILLED, lane, MINUTE, RELEASED, SECOND, SNOOZED, SUCCEEDED, type World } from "../world.js";
import { addMany, LIMIT_KEY, ONE, SERIAL, states, TWO, under } from "./limit-world.js";

/** Rules besides how many at a time: one after the other, so many per time, not until then. */
export function limitRuleTests(test: Test): void {
  serialTests(test);
  rateTests(test);
  pauseTests(test);
}

function serialTests(test: Test): void {
  test("a serial key has one job in flight, in the order they came, whatever their priority", async (w) => {
    const first = await w.add({ options: under(SERIAL) });
    const second = await w.add({ priority: 1, options: under(SERIAL) });
    const third = await w.add({ priority: 9, options: under(SERIAL) });
    expect(await states(w, [first, second, third])).toEqual(["ready", "parked", "parked"]);
    expect((await w.get(third)).parkedFor).toBe("serial");
    await w.run(first);
    expect(await states(w, [second, third])).toEqual(["ready", "parked"]);
    await w.run(second, SUCCEEDED, undefined, { lanes: [lane({ priority: 1 })] });
    expect(await w.state(third)).toBe("ready");
  });

  test("a serial key is held through retries, snoozes, pauses and crashes of its job", async (w) => {
    const [first, second] = (await addMany(w, 2, { options: under(SERIAL) })) as [JobId, JobId];
    await w.run(first, FAILED, [SECOND, SECOND]);
    expect(await states(w, [first, second])).toEqual(["scheduled", "parked"]);
    w.clock.advance(SECOND);
    await dutiesOf(w.store).promote(10);
    await w.run(first, SNOOZED);
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).promote(10);
    await w.store.jobs.pause("everyone", first);
    expect(await states(w, [first, second])).toEqual(["parked", "parked"]);
    await w.store.jobs.resume("everyone", first);
    await w.hold();
    await w.vanish();
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
    await w.run(first, RELEASED);
    await w.run(first);
    expect(await states(w, [first, second])).toEqual(["succeeded", "ready"]);
  });

  for (const [how, end] of Object.entries({
    dies: (w: World, id: JobId) => w.run(id, KILLED),
    "is cancelled": (w: World, id: JobId) => w.store.jobs.cancel("everyone", id, "why not"),
  })) {
    test(`a serial key goes to the next when its job ${how}`, async (w) => {
      const [first, second] = (await addMany(w, 2, { options: under(SERIAL) })) as [JobId, JobId];
      await end(w, first);
      expect(await w.state(second)).toBe("ready");
    });
  }

  test("one that holds the serial slot waits for a token before those behind it", async (w) => {
    const rule: LimitRule = { serial: true, rate: { limit: 1, per: SECOND, burst: 1 } };
    const [first, second] = (await addMany(w, 2, { options: under(rule) })) as [JobId, JobId];
    await w.run(first, FAILED, [1]);
    w.clock.advance(1);
    await dutiesOf(w.store).promote(10);
    expect(await states(w, [first, second])).toEqual(["parked", "parked"]);
    w.clock.advance(SECOND);
    await dutiesOf(w.store).admit(10);
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
  });
}

function rateTests(test: Test): void {
  const RATE: LimitRule = { rate: { limit: 10, per: SECOND, burst: 2 } };

  test("a rate lets in a burst, then one for each token, by the store's clock", async (w) => {
    const ids = await addMany(w, 5, { options: under(RATE) });
    expect(await states(w, ids)).toEqual(["ready", "ready", "parked", "parked", "parked"]);
    expect((await w.get(ids[2] as JobId)).parkedFor).toBe("rate");
    const held = await w.holdAll();
    expect((await w.store.duties.poll()).due.get("admit")).toBe(100);
    w.clock.advance(99);
    expect((await dutiesOf(w.store).admit(10)).count).toBe(0);
    w.clock.advance(1);
    expect(await dutiesOf(w.store).admit(10)).toMatchObject({ count: 1, nextIn: 100 });
    expect(await states(w, ids)).toEqual(["running", "running", "ready", "parked", "parked"]);
    await w.settleAll(held, SUCCEEDED);
    expect(await w.state(ids[3] as JobId)).toBe("parked");
  });

  test("an expensive job waits for all of its tokens, and those behind it wait for it", async (w) => {
    const [first, dear] = [await w.add({ options: under(RATE) }), await w.add({ options: under(RATE, "k", { cost: 2 }) })];
    const cheap = await w.add({ options: under(RATE) });
    expect(await states(w, [first, dear, cheap])).toEqual(["ready", "parked", "parked"]);
    await w.hold();
    w.clock.advance(100);
    await dutiesOf(w.store).admit(10);
    expect(await states(w, [dear, cheap])).toEqual(["ready", "parked"]);
  });

  test("no more than a burst of a rate waits for workers, however long there are none", async (w) => {
    const ids = await addMany(w, 10, { options: under(RATE) });
    for (let i = 0; i < 20; i++) {
      w.clock.advance(100);
      await dutiesOf(w.store).admit(10);
    }
    expect((await states(w, ids)).filter((state) => state === "ready")).toHaveLength(2);
    await w.holdAll();
    w.clock.advance(SECOND);
    await dutiesOf(w.store).admit(10);
    expect((await states(w, ids)).filter((state) => state === "ready")).toHaveLength(2);
  });

  test("a retry takes another token", async (w) => {
    const rule: LimitRule = { rate: { limit: 1, per: SECOND, burst: 1 } };
    const id = await w.add({ options: under(rule) });
    await w.run(id, FAILED, [1]);
    w.clock.advance(1);
    await dutiesOf(w.store).promote(10);
    expect(await w.state(id)).toBe("parked");
    w.clock.advance(SECOND);
    await dutiesOf(w.store).admit(10);
    expect(await w.state(id)).toBe("ready");
  });
}

function pauseTests(test: Test): void {
  const pauses = { limit: "per key", key: "k" };

  test("a failure that asks for it lets its key rest, and no other", async (w) => {
    const [first, second] = (await addMany(w, 2, { options: under(ONE) })) as [JobId, JobId];
    const other = await w.add({ task: "other", options: under(ONE, "other") });
    const after = await w.add({ task: "other", options: under(ONE, "other") });
    const held = await w.hold();
    await w.settle(held, { ...(FAILED as { kind: "failed" } & typeof FAILED), retryAfter: MINUTE, pauses } as typeof FAILED);
    expect(await w.get(second)).toMatchObject({ state: "parked", parkedFor: "key_paused" });
    expect(await w.store.limits.get(LIMIT_KEY)).toMatchObject({ pausedUntil: w.clock.now() + MINUTE });
    await w.run(other, SUCCEEDED, undefined, { lanes: [lane({ task: "other" })] });
    expect(await w.state(after)).toBe("ready");
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).admit(10);
    expect(await w.state(second)).toBe("ready");
    expect(await w.state(first)).toBe("scheduled");
  });

  test("a key can be paused and opened again", async (w) => {
    const first = await w.add({ options: under(TWO) });
    await w.store.limits.pause(LIMIT_KEY, MINUTE);
    const second = await w.add({ options: under(TWO) });
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
    await w.store.limits.pause(LIMIT_KEY, 0);
    expect(await w.state(second)).toBe("ready");
  });

  test("a shorter pause does not end a longer one", async (w) => {
    await w.add({ options: under(TWO) });
    await w.store.limits.pause(LIMIT_KEY, MINUTE);
    await w.store.limits.pause(LIMIT_KEY, SECOND);
    expect((await w.store.limits.get(LIMIT_KEY))?.pausedUntil).toBe(w.clock.now() + MINUTE);
  });
}
