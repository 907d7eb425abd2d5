import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { LimitRule } from "../../src/core/limits/limit-rule.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { MINUTE, SUCCEEDED } from "../world.js";
import { addMany, holders, LIMIT_KEY, ONE, SERIAL, states, TWO, under } from "./limit-world.js";

/** To whom a settlement gives the slots that it frees, and to whom it does not. */
export function limitPassedOnTests(test: Test): void {
  test("the slots of many settlements go to as many of the line, in order", async (w) => {
    const rule: LimitRule = { concurrency: 3 };
    const ids = await addMany(w, 8, { options: under(rule) });
    await w.settleAll(await w.holdAll({ limit: 3 }), SUCCEEDED);
    expect(await states(w, ids.slice(3))).toEqual(["ready", "ready", "ready", "parked", "parked"]);
    expect(await holders(w)).toEqual(ids.slice(3, 6));
    await w.settleAll(await w.holdAll({ limit: 3 }), SUCCEEDED);
    expect(await states(w, ids.slice(6))).toEqual(["ready", "ready"]);
    expect(await holders(w)).toEqual(ids.slice(6));
    const last = await w.add({ options: under(rule) });
    expect(await w.state(last), "the third slot is free").toBe("ready");
  });

  test("a slot goes to nobody while more are held than a lowered limit allows", async (w) => {
    const ids = await addMany(w, 4, { options: under(TWO) });
    const [first, second] = await w.holdAll({ limit: 2 });
    const lowered = await w.add({ options: under(ONE) });
    await w.settle(first as never, SUCCEEDED);
    expect(await states(w, [...ids.slice(2), lowered])).toEqual(["parked", "parked", "parked"]);
    await w.settle(second as never, SUCCEEDED);
    expect(await states(w, [...ids.slice(2), lowered])).toEqual(["ready", "parked", "parked"]);
  });

  test("a slot goes to nobody who has no token", async (w) => {
    const rule: LimitRule = { concurrency: 1, rate: { limit: 1, per: MINUTE, burst: 1 } };
    await w.add({ options: under(rule) });
    const held = await w.hold();
    const next = await w.add({ options: under(rule) });
    await w.settle(held, SUCCEEDED);
    expect(await w.get(next)).toMatchObject({ state: "parked", parkedFor: "rate" });
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).admit(10);
    expect(await w.state(next)).toBe("ready");
  });

  test("a slot goes to nobody while its key is paused", async (w) => {
    await w.add({ options: under(ONE) });
    const held = await w.hold();
    const next = await w.add({ options: under(ONE) });
    await w.store.limits.pause(LIMIT_KEY, MINUTE);
    await w.settle(held, SUCCEEDED);
    expect(await w.state(next)).toBe("parked");
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).admit(10);
    expect(await w.state(next)).toBe("ready");
  });

  test("a slot of a key that has become serial is its serial slot from then on", async (w) => {
    await w.add({ options: under(ONE) });
    const held = await w.hold();
    const [first, second] = (await addMany(w, 2, { options: under(SERIAL) })) as [JobId, JobId];
    await w.settle(held, SUCCEEDED);
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
    expect(await w.store.limits.get(LIMIT_KEY)).toMatchObject({ rule: SERIAL, holders: [first] });
  });

  test("one in line that has taken workers down gets its slot as a suspect", async (w) => {
    const suspect = await w.add({ options: under(ONE) });
    await w.hold();
    await w.vanish();
    await w.hold();
    const other = await w.add({ options: under(ONE) });
    await w.vanish();
    expect(await states(w, [other, suspect])).toEqual(["ready", "parked"]);
    await w.run(other);
    expect(await w.state(suspect)).toBe("ready");
    expect(await w.claimIds(), "not beside others").toEqual([]);
    expect((await w.holdSuspect()).job.id).toBe(suspect);
  });

  test("a slot goes to nobody to whom another limit key is closed: that one waits there, and the next has it", async (w) => {
    const other = { limit: "other", key: "o", rule: ONE };
    const both = { limits: [...(under(ONE).limits ?? []), other] };
    await w.add({ options: { limits: [other] } });
    await w.add({ options: under(ONE) });
    const [, held] = await w.holdAll({ limit: 2 });
    const stuck = await w.add({ options: both });
    const next = await w.add({ options: under(ONE) });
    await w.settle(held as never, SUCCEEDED);
    expect(await states(w, [stuck, next])).toEqual(["parked", "ready"]);
    expect(await w.get(stuck)).toMatchObject({ limitKey: { limit: "other", key: "o" } });
  });
}
