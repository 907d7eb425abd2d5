import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import { dutiesOf } from "../../../conformance/duties.js";
import type { LeaseId } from "../../core/jobs/id.js";
import { task } from "../../core/jobs/task.js";
import { pawlError } from "../../core/values/error.js";
import type { Renewer } from "../../store/port/settle/leases.js";
import { faultyStore } from "../../testing/faulty.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

const why = (signal: AbortSignal): unknown => signal.reason?.why;

describe("renewal", () => {
  test("A2: a job ten times as long as its lease runs exactly once", async () => {
    let ran = 0;
    const long = task("long", { timeout: "10m" }, async () => {
      ran++;
      await new Promise<void>((resolve) => fixture.clock.after(150_000, resolve));
      return "done";
    });
    fixture = new MemoryFixture({ tasks: [long] });
    const id = await fixture.enqueue(long);
    await fixture.work();
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(151_000);
    expect(ran).toBe(1);
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", crashes: 0 });
    expect(await fixture.outcomes(id)).toEqual(["succeeded"]);
  });

  test("is one call for all leases that are due, and none for those that are settled", async () => {
    const calls: number[] = [];
    const long = task("long", () => new Promise<never>(() => {}));
    const quick = task("quick", async () => {});
    fixture = new MemoryFixture({
      tasks: [long, quick],
      wrapStore: (store) => ({
        ...store,
        leases: {
          ...store.leases,
          renew(worker, leases, duration) {
            calls.push(leases.length);
            return store.leases.renew(worker, leases, duration);
          },
        },
      }),
    });
    await fixture.work();
    for (let i = 0; i < 3; i++) {
      await fixture.enqueue(long);
      await fixture.enqueue(quick);
      await fixture.clock.advance(300);
    }
    await fixture.clock.advance(10_000);
    expect(calls.length).toBeLessThanOrEqual(3);
    expect(calls.every((leases) => leases === 3)).toBe(true);
  });

  test("A10: a lease is held before its first handler starts, up to the latest time its jobs may take", async () => {
    const held: string[] = [];
    const renewer: Renewer = {
      hold: (lease, latest) => void held.push(`hold ${lease} until ${latest}`),
      drop: (lease) => void held.push(`drop ${lease}`),
      onRenewed: () => {},
      onLost: () => {},
      stop: async () => {},
    };
    const quick = task("quick", { timeout: "20s" }, () => void held.push("handler"));
    fixture = new MemoryFixture({ tasks: [quick] });
    await fixture.enqueue(quick);
    await fixture.work({ renewer });
    expect(held).toEqual(["hold 1 until 35000", "handler", "drop 1"]);
  });
});

describe("a lease that is lost", () => {
  test("claims rest longer and longer while renewals never get through, and go on as before once they do", async () => {
    let broken = true;
    const startedAt: number[] = [];
    const long = task("long", { timeout: "10m" }, async (_: unknown, { signal }) => {
      startedAt.push(fixture.clock.monotonic());
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve());
        fixture.clock.after(60_000, resolve);
      });
      signal.throwIfAborted();
    });
    fixture = new MemoryFixture({
      tasks: [long],
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "leases.renew" && broken ? { kind: "fail" } : undefined)),
    });
    const id = await fixture.enqueue(long);
    await fixture.work({ leaseDuration: "1s", renewInterval: "300ms" });
    await fixture.clock.advance(600_000);
    // A lease is worked under for 800 ms. Claimed again at once, that would be 750 starts.
    expect(startedAt.length).toBeGreaterThan(5);
    expect(startedAt.length).toBeLessThan(150);
    expect(await fixture.job(id)).toMatchObject({ attempts: 0, crashes: 0 });
    broken = false;
    await fixture.clock.advance(30_000 + 61_000);
    expect(await fixture.state(id)).toBe("succeeded");
  });

  test("a renewer that cannot start leaves the worker without work, and says so", async () => {
    let tell: (error: unknown) => void = () => {};
    const renewer: Renewer = {
      ready: new Promise<void>(() => {}),
      hold: () => {},
      drop: () => {},
      onRenewed: () => {},
      onLost: () => {},
      onTrouble: (call) => {
        tell = call;
      },
      stop: async () => {},
    };
    const quick = task("quick", () => "done");
    fixture = new MemoryFixture({ tasks: [quick] });
    const id = await fixture.enqueue(quick);
    await fixture.work({ renewer });
    for (let i = 0; i < 50; i++) {
      tell(pawlError("renewal_failed", { reason: "no thread" }));
      await fixture.clock.advance(100);
    }
    expect(await fixture.state(id)).toBe("ready");
    const said = fixture.eventsNamed("duty.failed");
    expect(said[0]).toMatchObject({ duty: "worker: renew", error: { code: "renewal_failed" } });
    expect(said.length, "in five seconds").toBeLessThanOrEqual(6);
  });

  test("A8: a worker that cannot renew stops its own work before the lease ends, and gives it back: it is no crash", async () => {
    const reasons: unknown[] = [];
    let starts = 0;
    const long = task("long", (_: unknown, { signal }) => {
      starts++;
      signal.addEventListener("abort", () => reasons.push([why(signal), fixture.clock.monotonic()]));
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    });
    fixture = new MemoryFixture({
      tasks: [long],
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "leases.renew" ? { kind: "fail" } : undefined)),
    });
    const id = await fixture.enqueue(long);
    await fixture.work();
    await fixture.clock.advance(12_999);
    expect(reasons).toEqual([]);
    await fixture.clock.advance(1);
    expect(reasons).toEqual([["lease_lost", 13_000]]);
    expect(fixture.eventsNamed("lease.lost")).toMatchObject([{ jobs: 1, reason: "not renewed in time" }]);
    expect([starts, await fixture.state(id)], "it rests before it claims again").toEqual([1, "ready"]);
    await fixture.clock.advance(250);
    expect([starts, await fixture.state(id), await fixture.outcomes(id)]).toEqual([2, "running", ["released"]]);
    expect(await fixture.job(id)).toMatchObject({ attempts: 0, crashes: 0 });
  });

  test("it is counted from when the claim was sent, not from when it was answered", async () => {
    const reasons: unknown[] = [];
    const answer = barrier();
    const long = task("long", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push([why(signal), fixture.clock.monotonic()]));
      return new Promise<never>(() => {});
    });
    fixture = new MemoryFixture({
      tasks: [long],
      wrapStore: (store) =>
        faultyStore(store, (operation) =>
          operation === "leases.claim" ? { kind: "delay", until: answer.opened } : operation === "leases.renew" ? { kind: "fail" } : undefined,
        ),
    });
    await fixture.enqueue(long);
    await fixture.work();
    await fixture.clock.advance(10_000);
    answer.open();
    await fixture.clock.advance(3_000);
    expect(reasons).toEqual([["lease_lost", 13_000]]);
  });

  test("A1: a handler that blocks for three leases commits at most once; its late settlement is stale", async () => {
    let runs = 0;
    const blocking = task("blocking", { timeout: "5m" }, async (_: unknown, { signal }) => {
      runs++;
      if (runs > 1) return "second";
      // The whole process stands still: no timer of its own runs meanwhile, but another one reaps.
      fixture.clock.leap(45_000);
      await dutiesOf(fixture.inner).reap(10);
      return `first, ${signal.aborted}`;
    });
    fixture = new MemoryFixture({ tasks: [blocking] });
    const id = await fixture.enqueue(blocking);
    await fixture.work();
    await fixture.clock.advance(5_000);
    expect(runs).toBe(2);
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: '"second"', crashes: 1, attempts: 1 });
    expect(await fixture.outcomes(id)).toEqual(["crashed", "succeeded"]);
    expect(fixture.eventsNamed("worker.blocked").length).toBeGreaterThan(0);
  });

  test("A1: a lease renewed elsewhere while the event loop was blocked is not given up", async () => {
    let renewed: (lease: LeaseId, at: number) => void = () => {};
    const leases = new Set<LeaseId>();
    const renewer: Renewer = {
      hold: (lease) => void leases.add(lease),
      drop: (lease) => void leases.delete(lease),
      onRenewed: (call) => {
        renewed = call;
      },
      onLost: () => {},
      stop: async () => {},
    };
    const end = barrier<string>();
    const blocking = task("blocking", { timeout: "5m" }, async (input: { n: number }) => {
      if (input.n > 0) return "after";
      await fixture.inner.leases.renew(worker.ref, [...leases], 60_000);
      // The thread renewed it all the while; its message is behind the timers in the queue of this one.
      setImmediate(() => renewed([...leases][0] as LeaseId, fixture.clock.monotonic()));
      fixture.clock.leap(40_000);
      return end.opened;
    });
    fixture = new MemoryFixture({ tasks: [blocking] });
    const worker = fixture.worker({ renewer });
    const id = await fixture.enqueue(blocking, { n: 0 });
    await worker.start();
    await fixture.clock.quiet();
    end.open("done");
    await fixture.clock.quiet();
    expect(fixture.eventsNamed("lease.lost")).toEqual([]);
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: '"done"' });
  });

  test("what lies claimed under it is not started", async () => {
    const ran: number[] = [];
    const end = barrier();
    const first = task("first", async ({ n }: { n: number }) => {
      ran.push(n);
      if (n === 1) await end.opened;
    });
    let away = false;
    fixture = new MemoryFixture({
      tasks: [first],
      wrapStore: (store) => faultyStore(store, (operation) => (away && operation !== "leases.settle" ? { kind: "fail" } : undefined)),
    });
    const worker = await fixture.work({ concurrency: 1, leaseDuration: "1s", renewInterval: "300ms" });
    await fixture.enqueueMany(
      first,
      Array.from({ length: 10 }, () => ({ n: 0 })),
    );
    await fixture.clock.quiet();
    ran.length = 0;
    await fixture.enqueueMany(first, [{ n: 1 }, { n: 2 }, { n: 3 }]);
    await fixture.clock.quiet();
    expect(worker.status().buffered).toBe(2);
    away = true;
    await fixture.clock.advance(800);
    end.open();
    await fixture.clock.quiet();
    expect(ran).toEqual([1]);
    expect(worker.status()).toMatchObject({ buffered: 0, leases: 0, overrun: 0 });
    expect(fixture.eventsNamed("lease.lost")).toMatchObject([{ jobs: 3 }]);
  });

  test("nor in the moment after the event loop was blocked past its end, before any timer has run", async () => {
    const ran: string[] = [];
    const mixed = task("mixed", { timeout: "5m" }, ({ name, block }: { name: string; block?: number }) => {
      ran.push(name);
      if (block !== undefined) late += block;
    });
    let late = 0;
    fixture = new MemoryFixture({
      tasks: [mixed],
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "leases.renew" ? { kind: "fail" } : undefined)),
    });
    // Time passes without a timer, as it does for a process that is busy.
    const { monotonic } = fixture.clock;
    Object.assign(fixture.clock, { monotonic: () => monotonic() + late });
    const worker = await fixture.work({ concurrency: 1 });
    await fixture.enqueueMany(
      mixed,
      Array.from({ length: 10 }, () => ({ name: "warm" })),
    );
    await fixture.clock.quiet();
    ran.length = 0;
    await fixture.enqueueMany(mixed, [{ name: "blocks", block: 20_000 }, { name: "second" }]);
    await Promise.resolve();
    expect(ran.slice(0, 2)).not.toContain("second");
    await fixture.clock.quiet();
    expect(fixture.eventsNamed("lease.lost")).toMatchObject([{ jobs: 1 }]);
    expect(worker.status().buffered).toBe(0);
  });

  test("A9: a renewal counts only if the store extended that lease", async () => {
    const reasons: unknown[] = [];
    const long = task("long", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(why(signal)));
      return new Promise<never>(() => {});
    });
    fixture = new MemoryFixture({
      tasks: [long],
      wrapStore: (store) => ({ ...store, leases: { ...store.leases, renew: async () => ({ held: [] }) } }),
    });
    await fixture.enqueue(long);
    const worker = await fixture.work();
    await fixture.clock.advance(5_000);
    expect(reasons).toEqual(["lease_lost"]);
    expect(fixture.eventsNamed("lease.lost")).toMatchObject([{ jobs: 1, reason: expect.stringContaining("does not know it") }]);
    expect(worker.status()).toMatchObject({ leases: 0, running: 0, overrun: 1 });
  });

  test("a lease that is gone because its last job is settled is not called lost", async () => {
    const slowAnswer = barrier();
    const end = barrier();
    const long = task("long", () => end.opened);
    fixture = new MemoryFixture({
      tasks: [long],
      wrapStore: (store) =>
        faultyStore(store, (operation) => (operation === "leases.settle" ? { kind: "delay", until: slowAnswer.opened } : undefined)),
    });
    const id = await fixture.enqueue(long);
    const worker = await fixture.work();
    end.open();
    await fixture.clock.advance(6_000);
    expect(worker.status().settling).toBe(1);
    slowAnswer.open();
    await fixture.clock.quiet();
    expect(fixture.eventsNamed("lease.lost")).toEqual([]);
    expect(await fixture.state(id)).toBe("succeeded");
    expect(worker.status()).toMatchObject({ settling: 0, leases: 0 });
  });
});

describe("a hung process", () => {
  test("loses its lease once the latest deadline of its jobs has passed", async () => {
    const renewals: number[] = [];
    const quick = task("quick", { timeout: "20s" }, () => new Promise<never>(() => {}));
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) => ({
        ...store,
        leases: {
          ...store.leases,
          renew(worker, leases, duration) {
            if (leases.includes("1" as LeaseId)) renewals.push(fixture.clock.monotonic());
            return store.leases.renew(worker, leases, duration);
          },
          // Nothing it settles arrives, as if its event loop never came to it.
          settle: () => new Promise<never>(() => {}),
        },
      }),
    });
    const id = await fixture.enqueue(quick);
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(60_000);
    expect(Math.max(...renewals)).toBeLessThan(35_000);
    expect((await fixture.outcomes(id))[0]).toBe("crashed");
  });
});
