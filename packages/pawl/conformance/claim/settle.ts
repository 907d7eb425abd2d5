import { expect } from "vitest";
import type { Failure } from "../../src/core/jobs/failure.js";
import type { LeaseId } from "../../src/core/jobs/id.js";
import type { Settlement } from "../../src/store/port/settle/leases.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import {
  ANA,
  ANA_REBORN,
  BOB,
  FAILED,
  type HeldJob,
  HOUR,
  KILLED,
  LEASE,
  MINUTE,
  NOBODY,
  RELEASED,
  SECOND,
  SNOOZED,
  START,
  SUCCEEDED,
} from "../world.js";

export function settleTests(test: Test): void {
  test("a job that succeeds keeps its output and its history", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    w.clock.advance(SECOND);
    expect(await w.settle(held, { kind: "succeeded", output: '{"ok":1}' })).toBe("settled");
    expect(await w.get(id)).toMatchObject({ state: "succeeded", attempts: 1, crashes: 0, output: '{"ok":1}', finishedAt: START + SECOND });
    expect(await w.store.jobs.history("everyone", id)).toEqual([
      {
        job: id,
        lease: held.claimed.lease,
        outcome: "succeeded",
        worker: "ana",
        startedAt: START,
        finishedAt: START + SECOND,
        output: '{"ok":1}',
        next: "succeeded",
      },
    ]);
  });

  test("a job that fails waits for its retry, with the attempt spent and the failure shown", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED, [MINUTE]);
    expect(await w.get(id)).toMatchObject({
      state: "scheduled",
      runAt: START + MINUTE,
      attempts: 1,
      failure: { kind: "error", name: "TypeError", message: "no" },
    });
    expect((await w.get(id)).dueAt, "the due time stays what it was").toBe(START);
  });

  test("the delay of a retry counts from the settle", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    w.clock.advance(10 * SECOND);
    await w.settle(held, FAILED, [MINUTE]);
    expect((await w.get(id)).runAt).toBe(START + 10 * SECOND + MINUTE);
  });

  test("a retry without delay is ready at once, at the back", async (w) => {
    const [first, second] = [await w.add(), await w.add()];
    await w.run(first, FAILED, [0]);
    expect(await w.claimIds()).toEqual([second, first]);
  });

  test("a job whose retries are used up is dead and keeps every failure", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED, [0]);
    await w.run(id, KILLED, [0]);
    expect(await w.get(id)).toMatchObject({ state: "dead", attempts: 2, failure: { name: "RangeError" } });
    expect(await w.store.jobs.history("everyone", id)).toMatchObject([
      { outcome: "failed", next: "ready", failure: { name: "TypeError" } },
      { outcome: "failed", next: "dead", failure: { name: "RangeError" } },
    ]);
  });

  test("a snoozed job waits and spends nothing", async (w) => {
    const id = await w.add();
    await w.run(id, SNOOZED);
    expect(await w.get(id)).toMatchObject({ state: "scheduled", runAt: START + MINUTE, attempts: 0 });
    expect(await w.store.jobs.history("everyone", id)).toMatchObject([{ outcome: "snoozed", next: "scheduled" }]);
  });

  test("a released job is ready again and spends nothing", async (w) => {
    const id = await w.add();
    await w.run(id, RELEASED);
    expect(await w.get(id)).toMatchObject({ state: "ready", attempts: 0 });
    expect(await w.store.jobs.history("everyone", id)).toMatchObject([{ outcome: "released", next: "ready", worker: "ana" }]);
  });

  test("a job settled as cancelled is cancelled, with the reason", async (w) => {
    const id = await w.add();
    await w.run(id, { kind: "cancelled", reason: "asked to" });
    expect(await w.get(id)).toMatchObject({ state: "cancelled", attempts: 0, failure: { message: "asked to" } });
  });

  test("a failure comes back whole", async (w) => {
    const failure: Failure = {
      kind: "timeout",
      name: "Überfluß",
      message: 'it "broke"\n\tat 😀',
      stack: "at a\nat b",
      code: "E_X",
      causes: [
        { name: "Error", message: "why", stack: "at c" },
        { name: "null", message: "null" },
      ],
    };
    const id = await w.add();
    await w.run(id, { kind: "failed", failure, retryable: false });
    expect((await w.get(id)).failure).toEqual(failure);
    expect((await w.store.jobs.history("everyone", id))[0]?.failure).toEqual(failure);
  });

  test("an old failure is not shown once a later attempt ended without one", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED, [0]);
    await w.run(id, RELEASED);
    expect((await w.get(id)).failure).toBeUndefined();
  });

  test("a batch of settlements with every outcome is carried out one by one", async (w) => {
    const ids = [await w.add(), await w.add(), await w.add(), await w.add(), await w.add(), await w.add()];
    const held = await w.holdAll();
    const outcomes = [SUCCEEDED, FAILED, KILLED, SNOOZED, RELEASED, { kind: "cancelled" } as const];
    const settlements = held.map((one, n) => w.settlement(one, outcomes[n] ?? SUCCEEDED));
    expect(await w.store.leases.settle(ANA, settlements)).toEqual(ids.map(() => "settled"));
    const states = await Promise.all(ids.map((id) => w.state(id)));
    expect(states).toEqual(["succeeded", "scheduled", "dead", "scheduled", "ready", "cancelled"]);
  });

  test("one call settles jobs of several leases", async (w) => {
    await w.add();
    await w.add();
    const held = [await w.hold(), await w.hold()];
    expect(await w.settleAll(held, SUCCEEDED)).toEqual(["settled", "settled"]);
  });

  test("nothing to settle is no fault", async (w) => {
    expect(await w.store.leases.settle(ANA, [])).toEqual([]);
  });

  test("settling again under the same lease answers settled and changes nothing, whatever it says", async (w) => {
    const [id, other] = [await w.add(), await w.add()];
    const [held] = await w.holdAll();
    if (held === undefined) throw new Error("nothing held");
    await w.settle(held, { kind: "succeeded", output: "1" });
    const before = [await w.get(id), await w.store.jobs.history("everyone", id)];
    expect(await w.settle(held, { kind: "succeeded", output: "2" })).toBe("settled");
    expect(await w.settle(held, KILLED)).toBe("settled");
    expect([await w.get(id), await w.store.jobs.history("everyone", id)]).toEqual(before);
    expect(await w.state(other)).toBe("running");
  });

  test("settling again answers settled when the lease is gone with its last job", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.settle(held, FAILED);
    expect((await w.store.leases.renew(ANA, [held.claimed.lease], LEASE)).held).toEqual([]);
    expect(await w.settle(held, FAILED)).toBe("settled");
    expect(await w.store.jobs.history("everyone", id)).toHaveLength(1);
    expect((await w.get(id)).attempts).toBe(1);
  });

  test("settling again answers settled while somebody else runs the job, and disturbs nobody", async (w) => {
    const id = await w.add();
    const mine = await w.hold({ worker: ANA });
    await w.settle(mine, RELEASED);
    const theirs = await w.hold({ worker: BOB });
    expect(await w.settle(mine, SUCCEEDED)).toBe("settled");
    expect(await w.state(id)).toBe("running");
    expect(await w.settle(theirs, SUCCEEDED)).toBe("settled");
  });

  for (const [asked, next] of [
    [false, "scheduled"],
    [true, "parked"],
  ] as const) {
    test(`an old settlement sent again with a new one of the same job does not stand in for it${asked ? ", also if something was asked of the job" : ""}`, async (w) => {
      const [id] = [await w.add(), await w.add()];
      const [old] = await w.holdAll();
      if (old === undefined) throw new Error("nothing held");
      await w.settle(old, RELEASED);
      const now = await w.hold();
      expect(now.job.id).toBe(id);
      if (asked) await w.store.jobs.pause("everyone", id);
      expect(await w.store.leases.settle(ANA, [w.settlement(old, SUCCEEDED), w.settlement(now, FAILED)])).toEqual(["settled", "settled"]);
      expect(await w.get(id)).toMatchObject({ state: next, attempts: 1 });
    });
  }

  test("the same settlement twice in one batch counts once", async (w) => {
    const id = await w.add();
    const settlement = w.settlement(await w.hold(), FAILED);
    expect(await w.store.leases.settle(ANA, [settlement, settlement])).toEqual(["settled", "settled"]);
    expect(await w.store.jobs.history("everyone", id)).toHaveLength(1);
  });

  test("of two settlements of one attempt in one batch that differ, the first counts", async (w) => {
    await w.enqueue({}, {}, {});
    const [a, b, c] = (await w.holdAll()) as [HeldJob, HeldJob, HeldJob];
    const [failed, succeeded] = [w.settlement(a, FAILED), w.settlement(a, SUCCEEDED)];
    const [other, late] = [w.settlement(b, SUCCEEDED), w.settlement(b, FAILED)];
    expect(await w.store.leases.settle(ANA, [failed, other, succeeded, late, w.settlement(c, SUCCEEDED)])).toEqual(Array(5).fill("settled"));
    expect([await w.state(a.job.id), await w.state(b.job.id), await w.state(c.job.id)]).toEqual(["scheduled", "succeeded", "succeeded"]);
    expect(await w.store.jobs.history("everyone", b.job.id)).toHaveLength(1);
  });

  test("jobs that go back in one call line up in the order they were settled, whatever leases they are of", async (w) => {
    await w.enqueue({}, {}, {}, {});
    const [a, b, c, d] = (await w.holdAll()) as [HeldJob, HeldJob, HeldJob, HeldJob];
    await w.add();
    const [e] = (await w.holdAll()) as [HeldJob];
    const settlements = [c, a].map((one) => w.settlement(one, RELEASED));
    await w.store.leases.settle(ANA, [...settlements, w.settlement(d, SUCCEEDED), w.settlement(b, RELEASED), w.settlement(e, RELEASED)]);
    expect(await w.claimIds()).toEqual([c, a, b, e].map(({ job }) => job.id));
  });

  test("a stale settlement does not hold up the others of its batch", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const [first, second] = await w.holdAll();
    if (first === undefined || second === undefined) throw new Error("nothing held");
    const lost: Settlement = { ...w.settlement(first, SUCCEEDED), lease: "999999" as LeaseId };
    expect(await w.store.leases.settle(ANA, [lost, w.settlement(second, SUCCEEDED)])).toEqual(["stale", "settled"]);
    expect([await w.state(a), await w.state(b)]).toEqual(["running", "succeeded"]);
  });

  test("a worker of another instance is stale, even with the same name", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    expect(await w.settle({ ...held, worker: ANA_REBORN }, SUCCEEDED)).toBe("stale");
    expect(await w.settle({ ...held, worker: BOB }, SUCCEEDED)).toBe("stale");
    expect(await w.state(id)).toBe("running");
    await w.settle(held, SUCCEEDED);
    expect(await w.settle({ ...held, worker: ANA_REBORN }, SUCCEEDED), "also after it is settled").toBe("stale");
  });

  test("a job that is not in the lease is stale", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const [first, second] = [await w.hold(), await w.hold()];
    const crossed: Settlement = { ...w.settlement(first, SUCCEEDED), at: undefined, job: b };
    const unknown: Settlement = { ...w.settlement(first, SUCCEEDED), at: undefined, job: NOBODY };
    expect(await w.store.leases.settle(ANA, [crossed, unknown])).toEqual(["stale", "stale"]);
    expect([await w.state(a), await w.state(b)]).toEqual(["running", "running"]);
    expect(second.job.id).toBe(b);
  });

  test("a job that never ran is stale", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const held = await w.hold();
    expect(await w.store.leases.settle(ANA, [{ ...w.settlement(held, SUCCEEDED), at: undefined, job: b }])).toEqual(["stale"]);
    expect([await w.state(a), await w.state(b)]).toEqual(["running", "ready"]);
  });

  test("a job that was reaped is stale for its old worker", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.vanish();
    expect(await w.settle(held, SUCCEEDED)).toBe("stale");
    expect(await w.get(id)).toMatchObject({ state: "ready", crashes: 1 });
  });

  test("a job that was reaped and claimed again is settled by its new worker only", async (w) => {
    const id = await w.add();
    const old = await w.hold({ worker: ANA });
    await w.vanish();
    const now = await w.hold({ worker: BOB });
    expect(await w.settle(old, KILLED)).toBe("stale");
    expect(await w.state(id)).toBe("running");
    expect(await w.settle(now, SUCCEEDED)).toBe("settled");
    expect(await w.settle(old, KILLED)).toBe("stale");
    expect(await w.state(id)).toBe("succeeded");
  });

  test("a lease that has expired settles as long as nobody reaped it", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    w.clock.advance(HOUR);
    expect(await w.settle(held, SUCCEEDED)).toBe("settled");
    expect(await w.state(id)).toBe("succeeded");
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 0, jobs: 0 });
  });

  test("a lease lasts until its last job is settled", async (w) => {
    await w.add();
    await w.add();
    const held = await w.holdAll();
    const lease = held[0]?.claimed.lease as LeaseId;
    await w.settleAll(held.slice(0, 1), SUCCEEDED);
    expect((await w.store.leases.renew(ANA, [lease], LEASE)).held).toEqual([lease]);
    await w.settleAll(held.slice(1), SUCCEEDED);
    expect((await w.store.leases.renew(ANA, [lease], LEASE)).held).toEqual([]);
  });

  test("settling the jobs of a lease in any order, some of them twice, loses none", async (w) => {
    const ids = [await w.add(), await w.add(), await w.add()];
    const [a, b, c] = await w.holdAll();
    if (a === undefined || b === undefined || c === undefined) throw new Error("nothing held");
    await w.settleAll([c], SUCCEEDED);
    await w.settleAll([c, a], SUCCEEDED);
    expect(await w.state(ids[1] ?? NOBODY)).toBe("running");
    await w.settleAll([a, b, c], SUCCEEDED);
    expect(await Promise.all(ids.map((id) => w.state(id)))).toEqual(["succeeded", "succeeded", "succeeded"]);
  });
}
