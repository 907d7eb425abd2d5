import { expect } from "vitest";
import type { LeaseId } from "../../src/core/jobs/id.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { ANA, ANA_REBORN, BOB, FAILED, HOUR, LEASE, MINUTE, NOBODY, SECOND, START, SUCCEEDED } from "../world.js";

const MISSING = "999999" as LeaseId;

export function leaseTests(test: Test): void {
  test("a renewed lease lasts its duration from the renewal", async (w) => {
    const id = await w.add();
    const { claimed } = await w.hold();
    w.clock.advance(10 * SECOND);
    expect(await w.store.leases.renew(ANA, [claimed.lease], LEASE)).toEqual({ held: [claimed.lease] });
    w.clock.advance(LEASE - 1);
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 0, jobs: 0 });
    w.clock.advance(1);
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 1, jobs: 1 });
    expect(await w.state(id)).toBe("ready");
  });

  test("a renewal answers with the leases that are held, and only those of that instance", async (w) => {
    await w.add();
    await w.add();
    const mine = await w.hold({ worker: ANA });
    const theirs = await w.hold({ worker: BOB });
    const { held } = await w.store.leases.renew(ANA, [MISSING, theirs.claimed.lease, mine.claimed.lease], HOUR);
    expect(held).toEqual([mine.claimed.lease]);
    expect(await w.store.leases.renew(ANA_REBORN, [mine.claimed.lease], HOUR)).toEqual({ held: [] });
    w.clock.advance(LEASE);
    expect(await dutiesOf(w.store).reap(10), "the other's lease was not extended").toEqual({ leases: 1, jobs: 1 });
  });

  test("a renewal never shortens a lease", async (w) => {
    const id = await w.add();
    const { claimed } = await w.hold({ duration: HOUR });
    expect((await w.store.leases.renew(ANA, [claimed.lease], LEASE)).held).toEqual([claimed.lease]);
    w.clock.advance(HOUR - 1);
    await dutiesOf(w.store).reap(10);
    expect(await w.state(id)).toBe("running");
  });

  test("only the leases named are renewed", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const first = await w.hold();
    await w.hold();
    w.clock.advance(LEASE);
    await w.store.leases.renew(ANA, [first.claimed.lease], LEASE);
    await dutiesOf(w.store).reap(10);
    expect([await w.state(a), await w.state(b)]).toEqual(["running", "ready"]);
  });

  test("many leases are renewed by one call", async (w) => {
    for (let n = 0; n < 5; n++) await w.add();
    const leases: LeaseId[] = [];
    for (let n = 0; n < 5; n++) leases.push((await w.hold()).claimed.lease);
    const { held } = await w.store.leases.renew(ANA, leases, LEASE);
    expect([...held].sort()).toEqual([...leases].sort());
    expect(await w.store.leases.renew(ANA, [], LEASE)).toEqual({ held: [] });
  });

  test("a lease that has expired is renewed as long as nobody reaped it", async (w) => {
    await w.add();
    const { claimed } = await w.hold();
    w.clock.advance(HOUR);
    expect((await w.store.leases.renew(ANA, [claimed.lease], LEASE)).held).toEqual([claimed.lease]);
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 0, jobs: 0 });
  });

  test("a reaped lease is lost", async (w) => {
    await w.add();
    const { claimed } = await w.hold();
    await w.vanish();
    expect(await w.store.leases.renew(ANA, [claimed.lease], LEASE)).toEqual({ held: [] });
  });

  test("a lease lives to its last millisecond and not beyond", async (w) => {
    const id = await w.add();
    await w.hold();
    w.clock.advance(LEASE - 1);
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 0, jobs: 0 });
    expect(await w.state(id)).toBe("running");
    w.clock.advance(1);
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 1, jobs: 1 });
  });

  test("a reaped job is ready again, with a crash in its history and no attempt spent", async (w) => {
    const id = await w.add();
    const { claimed } = await w.hold();
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).reap(10);
    expect(await w.get(id)).toMatchObject({ state: "ready", attempts: 0, crashes: 1 });
    expect(await w.store.jobs.history("everyone", id)).toEqual([
      { job: id, lease: claimed.lease, outcome: "crashed", worker: "ana", startedAt: START, finishedAt: START + MINUTE, next: "ready" },
    ]);
    expect((await w.hold()).job).toMatchObject({ id, attempts: 0, crashes: 1 });
  });

  test("a crash keeps the attempts spent before it", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED, [0]);
    await w.hold();
    await w.vanish();
    expect(await w.get(id)).toMatchObject({ state: "ready", attempts: 1, crashes: 1 });
  });

  test("only the unsettled jobs of a lease crash with it", async (w) => {
    const [a, b, c] = [await w.add(), await w.add(), await w.add()];
    const held = await w.holdAll();
    await w.settleAll(held.slice(0, 1), SUCCEEDED);
    await w.settleAll(held.slice(1, 2), FAILED);
    w.clock.advance(LEASE);
    expect(await dutiesOf(w.store).reap(10)).toEqual({ leases: 1, jobs: 1 });
    expect([await w.state(a), await w.state(b), await w.state(c)]).toEqual(["succeeded", "scheduled", "ready"]);
    expect([(await w.get(a)).crashes, (await w.get(b)).crashes, (await w.get(c)).crashes]).toEqual([0, 0, 1]);
  });

  test("reaped jobs line up again behind those that waited", async (w) => {
    const ids = [await w.add(), await w.add()];
    await w.holdAll();
    const waited = await w.add();
    await w.vanish();
    const [first, ...rest] = await w.claimIds();
    expect(first).toBe(waited);
    expect(new Set(rest)).toEqual(new Set(ids));
  });

  test("a reap takes so many leases and no more, the longest expired first", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    await w.hold({ duration: 20 * SECOND });
    await w.hold({ duration: 10 * SECOND });
    w.clock.advance(MINUTE);
    expect(await dutiesOf(w.store).reap(1)).toEqual({ leases: 1, jobs: 1 });
    expect([await w.state(a), await w.state(b)]).toEqual(["running", "ready"]);
    expect(await dutiesOf(w.store).reap(1)).toEqual({ leases: 1, jobs: 1 });
    expect(await dutiesOf(w.store).reap(1)).toEqual({ leases: 0, jobs: 0 });
    expect([(await w.get(a)).crashes, (await w.get(b)).crashes]).toEqual([1, 1]);
  });

  test("a job that may run at most once is dead when its worker vanishes", async (w) => {
    const id = await w.add({ options: { atMostOnce: true } });
    await w.hold();
    await w.vanish();
    expect(await w.get(id)).toMatchObject({ state: "dead", crashes: 1, failure: { kind: "interrupted" } });
    expect(await w.store.jobs.history("everyone", id)).toMatchObject([{ outcome: "crashed", next: "dead", worker: "ana" }]);
  });

  test("a job whose deadline passed while its worker vanished is dead", async (w) => {
    const id = await w.add({ options: { finishWithin: 5 * SECOND } });
    await w.hold();
    await w.vanish();
    expect(await w.get(id)).toMatchObject({ state: "dead", failure: { kind: "deadline" } });
  });

  test("what was asked of a job is carried out when its worker vanished", async (w) => {
    const [cancelled, paused] = [await w.add(), await w.add()];
    await w.holdAll();
    await w.store.jobs.cancel("everyone", cancelled, "stop");
    await w.store.jobs.pause("everyone", paused);
    await w.vanish();
    expect([await w.state(cancelled), await w.state(paused)]).toEqual(["cancelled", "parked"]);
    expect([(await w.get(cancelled)).intent, (await w.get(paused)).intent]).toEqual([undefined, undefined]);
  });

  test("a claim whose answer was lost expires, though its worker renews all it knows of", async (w) => {
    const [known, lost] = [await w.add(), await w.add()];
    const { claimed } = await w.hold();
    await w.hold();
    for (let n = 0; n < 4; n++) {
      w.clock.advance(5 * SECOND);
      await w.store.leases.renew(ANA, [claimed.lease], LEASE);
      await dutiesOf(w.store).reap(10);
    }
    expect([await w.state(known), await w.state(lost)]).toEqual(["running", "ready"]);
  });

  test("intents are told to the worker that holds the jobs, lease by lease", async (w) => {
    const [a, b, c] = [await w.add(), await w.add(), await w.add()];
    const first = await w.hold();
    const second = await w.hold();
    const other = await w.hold({ worker: BOB });
    await w.store.jobs.cancel("everyone", a, "stop");
    await w.store.jobs.pause("everyone", b);
    await w.store.jobs.cancel("everyone", c, "stop");
    const leases = [first.claimed.lease, second.claimed.lease, other.claimed.lease, MISSING];
    const asked = await w.store.leases.intents(ANA, leases);
    expect([...asked].sort((x, y) => (x.job < y.job ? -1 : 1))).toEqual([
      { job: a, intent: "cancel" },
      { job: b, intent: "pause" },
    ]);
    expect(await w.store.leases.intents(ANA, [first.claimed.lease])).toEqual([{ job: a, intent: "cancel" }]);
    expect(await w.store.leases.intents(ANA_REBORN, leases)).toEqual([]);
    expect(await w.store.leases.intents(ANA, [])).toEqual([]);
  });

  test("nothing was asked of a job nobody asked anything of", async (w) => {
    await w.add();
    const { claimed, job } = await w.hold();
    expect(job.id).not.toBe(NOBODY);
    expect(await w.store.leases.intents(ANA, [claimed.lease])).toEqual([]);
  });
}
