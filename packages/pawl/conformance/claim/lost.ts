import { expect } from "vitest";
import { dutiesOf } from "../duties.js";
import { everyJob } from "../invariants.js";
import type { Test } from "../suite.js";
import { ANA, FAILED, type HeldJob, HOUR, KILLED, LEASE, SUCCEEDED, type World } from "../world.js";

/** All that can be seen, to show that a repetition changed nothing. */
async function everything(w: World) {
  const jobs = await everyJob(w.store);
  return { jobs, histories: await Promise.all(jobs.map(({ id }) => w.store.jobs.history("everyone", id))) };
}

/** The caller did not hear the answer, and asks again. */
export function lostAnswerTests(test: Test): void {
  test("a whole batch enqueued again with its idempotency keys makes no second job", async (w) => {
    const parent = await w.add({ idempotencyKey: "parent" });
    const batch = [
      w.newJob({ idempotencyKey: "r1" }),
      w.newJob({ idempotencyKey: "r2", delay: HOUR }),
      w.newJob({ idempotencyKey: "r3", after: [parent] }),
      w.newJob({ idempotencyKey: "r4", unique: { key: "k", hold: "unfinished", onConflict: "reject" } }),
      w.newJob({ idempotencyKey: "r5", unique: { key: "l", hold: "unfinished", onConflict: "replace" } }),
    ];
    const first = await w.store.jobs.enqueue(batch);
    const before = await everything(w);
    w.clock.advance(1);
    const second = await w.store.jobs.enqueue(batch);
    expect(second).toEqual(first.map((answer) => ({ kind: "existing", id: answer.kind === "created" && answer.id })));
    expect(await everything(w)).toEqual(before);
  });

  test("a replacement enqueued again with its idempotency key does not replace itself", async (w) => {
    const replace = { key: "k", hold: "unfinished", onConflict: "replace" } as const;
    await w.add({ unique: replace });
    const [answer] = await w.enqueue({ unique: replace, idempotencyKey: "r1" });
    expect(await w.enqueue({ unique: replace, idempotencyKey: "r1" })).toEqual([{ kind: "existing", id: answer?.kind === "created" && answer.id }]);
  });

  test("a claim asked again gives other jobs, and the lost ones come back when their lease ends", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    await w.claim({ limit: 1 });
    const held = await w.hold();
    expect(held.job.id).toBe(b);
    w.clock.advance(LEASE - 1);
    await w.store.leases.renew(ANA, [held.claimed.lease], LEASE);
    w.clock.advance(1);
    await dutiesOf(w.store).reap(10);
    expect(await w.claimIds()).toEqual([a]);
  });

  test("a batch settled again changes nothing, in whatever order", async (w) => {
    for (let n = 0; n < 3; n++) await w.add();
    const child = await w.add({ task: "child", after: [(await everyJob(w.store))[0]?.id as never], onDependencyDeath: "run" });
    const held = await w.holdAll();
    const outcomes = [FAILED, KILLED, SUCCEEDED];
    const settlements = held.map((one, n) => w.settlement(one, outcomes[n] ?? SUCCEEDED));
    await w.store.leases.settle(ANA, settlements);
    const before = await everything(w);
    expect(await w.state(child)).toBe("ready");
    w.clock.advance(1);
    expect(await w.store.leases.settle(ANA, [...settlements].reverse())).toEqual(["settled", "settled", "settled"]);
    expect(await everything(w)).toEqual(before);
  });

  test("a batch settled in part and sent again whole is settled whole", async (w) => {
    for (let n = 0; n < 3; n++) await w.add();
    const settlements = (await w.holdAll()).map((one) => w.settlement(one, SUCCEEDED));
    await w.store.leases.settle(ANA, settlements.slice(0, 1));
    expect(await w.store.leases.settle(ANA, settlements)).toEqual(["settled", "settled", "settled"]);
    expect((await everyJob(w.store)).map(({ state }) => state)).toEqual(["succeeded", "succeeded", "succeeded"]);
  });

  test("jobs settled together and sent again in other portions are settled once each", async (w) => {
    await w.enqueue({}, {}, {}, {}, {}, {});
    const settlements = (await w.holdAll()).map((one) => w.settlement(one, SUCCEEDED));
    await w.store.leases.settle(ANA, settlements.slice(0, 3));
    expect(await w.store.leases.settle(ANA, settlements.slice(2, 5))).toEqual(["settled", "settled", "settled"]);
    expect(await w.store.leases.settle(ANA, settlements.slice(1, 2))).toEqual(["settled"]);
    expect((await everyJob(w.store)).filter(({ state }) => state === "running")).toHaveLength(1);
    expect(await w.store.leases.settle(ANA, settlements)).toEqual(settlements.map(() => "settled"));
    for (const { job } of settlements) expect(await w.store.jobs.history("everyone", job)).toHaveLength(1);
    expect((await w.store.records.counts())[0]?.counts.succeeded).toBe(6);
  });

  test("of jobs settled together one can be deleted, and the others keep their history", async (w) => {
    await w.enqueue({}, {}, {}, {});
    const held = await w.holdAll();
    const settlements = held.map((one) => w.settlement(one, SUCCEEDED));
    await w.store.leases.settle(ANA, settlements.slice(0, 3));
    const [first, second, third, last] = held as [HeldJob, HeldJob, HeldJob, HeldJob];
    await w.store.jobs.delete("everyone", second.job.id);
    expect(await w.store.jobs.get("everyone", second.job.id)).toBeUndefined();
    expect(await w.settle(last, SUCCEEDED)).toBe("settled");
    for (const { job } of [first, third, last]) {
      expect(await w.store.jobs.history("everyone", job.id)).toMatchObject([{ outcome: "succeeded", worker: "ana" }]);
    }
  });

  test("duties run again find nothing more to do", async (w) => {
    await w.add({ delay: 1 });
    await w.add({ options: { startWithin: 1 } });
    await w.add({ task: "claimed" });
    await w.hold({ lanes: [{ queue: "default", priority: 5, tenant: "acme", task: "claimed" }] });
    w.clock.advance(HOUR);
    await dutiesOf(w.store).promote(10);
    await dutiesOf(w.store).expire(10);
    await dutiesOf(w.store).reap(10);
    const before = await everything(w);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 0 });
    expect(await dutiesOf(w.store).expire(10)).toBe(0);
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 0, jobs: 0 });
    await dutiesOf(w.store).carryOut(10);
    await dutiesOf(w.store).unblock(10);
    expect(await everything(w)).toEqual(before);
  });

  test("a settlement sent again after its job was deleted answers settled, and leaves the rest of its lease alone", async (w) => {
    await w.enqueue({}, {});
    const [first, second] = (await w.holdAll()) as [HeldJob, HeldJob];
    await w.settle(first, SUCCEEDED);
    await w.store.jobs.delete("everyone", first.job.id);
    expect(await w.settle(first, SUCCEEDED)).toBe("settled");
    expect(await w.settle(second, SUCCEEDED)).toBe("settled");
    expect(await w.settle(first, SUCCEEDED), "once its lease is gone, too").toBe("stale");
  });

  test("a verb of an operator asked again says that it is done, and changes nothing", async (w) => {
    const id = await w.add();
    await w.store.jobs.cancel("everyone", id, "first");
    const before = await everything(w);
    expect(await w.store.jobs.cancel("everyone", id, "second")).toEqual({ kind: "refused", state: "cancelled" });
    expect(await everything(w)).toEqual(before);
  });
}
