import { afterEach, describe, expect, test } from "vitest";
import { gate, World } from "../../../../test/support/world.js";
import { pawlError } from "../core/error.js";
import type { LeaseId } from "../core/id.js";
import type { Renewer } from "../store/port-leases.js";
import { faultyStore } from "../testing/faulty.js";
import { task } from "./task.js";

let world: World;
afterEach(() => world.close());

const why = (signal: AbortSignal): unknown => signal.reason?.why;

describe("renewal", () => {
  test("A2: a job ten times as long as its lease runs exactly once", async () => {
    let ran = 0;
    const long = task("long", { timeout: "10m" }, async () => {
      ran++;
      await new Promise<void>((resolve) => world.clock.after(150_000, resolve));
      return "done";
    });
    world = new World({ tasks: [long] });
    const id = await world.enqueue(long);
    await world.work();
    await world.work();
    await world.upkeep();
    await world.clock.advance(151_000);
    expect(ran).toBe(1);
    expect(await world.job(id)).toMatchObject({ state: "succeeded", crashes: 0 });
    expect(await world.outcomes(id)).toEqual(["succeeded"]);
  });

  test("is one call for all leases that are due, and none for those that are settled", async () => {
    const calls: number[] = [];
    const long = task("long", () => new Promise<never>(() => {}));
    const quick = task("quick", async () => {});
    world = new World({
      tasks: [long, quick],
      around: (store) => ({
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
    await world.work();
    for (let i = 0; i < 3; i++) {
      await world.enqueue(long);
      await world.enqueue(quick);
      await world.clock.advance(300);
    }
    await world.clock.advance(10_000);
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
    world = new World({ tasks: [quick] });
    await world.enqueue(quick);
    await world.work({ renewer });
    expect(held).toEqual(["hold 1 until 35000", "handler", "drop 1"]);
  });
});

describe("a lease that is lost", () => {
  test("claims rest longer and longer while renewals never get through, and go on as before once they do", async () => {
    let broken = true;
    const startedAt: number[] = [];
    const long = task("long", { timeout: "10m" }, async (_: unknown, { signal }) => {
      startedAt.push(world.clock.monotonic());
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve());
        world.clock.after(60_000, resolve);
      });
      signal.throwIfAborted();
    });
    world = new World({
      tasks: [long],
      around: (store) => faultyStore(store, (operation) => (operation === "leases.renew" && broken ? { kind: "fail" } : undefined)),
    });
    const id = await world.enqueue(long);
    await world.work({ lease: "1s", renewal: "300ms" });
    await world.clock.advance(600_000);
    // A lease is worked under for 800 ms. Claimed again at once, that would be 750 starts.
    expect(startedAt.length).toBeGreaterThan(5);
    expect(startedAt.length).toBeLessThan(150);
    expect(await world.job(id)).toMatchObject({ spent: 0, crashes: 0 });
    broken = false;
    await world.clock.advance(30_000 + 61_000);
    expect(await world.state(id)).toBe("succeeded");
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
    world = new World({ tasks: [quick] });
    const id = await world.enqueue(quick);
    await world.work({ renewer });
    for (let i = 0; i < 50; i++) {
      tell(pawlError("renewal_failed", { reason: "no thread" }));
      await world.clock.advance(100);
    }
    expect(await world.state(id)).toBe("ready");
    const said = world.heard("duty.failed");
    expect(said[0]).toMatchObject({ duty: "worker: renew", error: { code: "renewal_failed" } });
    expect(said.length, "in five seconds").toBeLessThanOrEqual(6);
  });

  test("A8: a worker that cannot renew stops its own work before the lease ends, and gives it back: it is no crash", async () => {
    const reasons: unknown[] = [];
    let starts = 0;
    const long = task("long", (_: unknown, { signal }) => {
      starts++;
      signal.addEventListener("abort", () => reasons.push([why(signal), world.clock.monotonic()]));
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    });
    world = new World({
      tasks: [long],
      around: (store) => faultyStore(store, (operation) => (operation === "leases.renew" ? { kind: "fail" } : undefined)),
    });
    const id = await world.enqueue(long);
    await world.work();
    await world.clock.advance(12_999);
    expect(reasons).toEqual([]);
    await world.clock.advance(1);
    expect(reasons).toEqual([["lease_lost", 13_000]]);
    expect(world.heard("lease.lost")).toMatchObject([{ jobs: 1, why: "not renewed in time" }]);
    expect([starts, await world.state(id)], "it rests before it claims again").toEqual([1, "ready"]);
    await world.clock.advance(250);
    expect([starts, await world.state(id), await world.outcomes(id)]).toEqual([2, "running", ["released"]]);
    expect(await world.job(id)).toMatchObject({ spent: 0, crashes: 0 });
  });

  test("it is counted from when the claim was sent, not from when it was answered", async () => {
    const reasons: unknown[] = [];
    const answer = gate();
    const long = task("long", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push([why(signal), world.clock.monotonic()]));
      return new Promise<never>(() => {});
    });
    world = new World({
      tasks: [long],
      around: (store) =>
        faultyStore(store, (operation) =>
          operation === "leases.claim" ? { kind: "delay", until: answer.opened } : operation === "leases.renew" ? { kind: "fail" } : undefined,
        ),
    });
    await world.enqueue(long);
    await world.work();
    await world.clock.advance(10_000);
    answer.open();
    await world.clock.advance(3_000);
    expect(reasons).toEqual([["lease_lost", 13_000]]);
  });

  test("A1: a handler that blocks for three leases commits at most once; its late settlement is stale", async () => {
    let runs = 0;
    const blocking = task("blocking", { timeout: "5m" }, async (_: unknown, { signal }) => {
      runs++;
      if (runs > 1) return "second";
      // The whole process stands still: no timer of its own runs meanwhile, but another one reaps.
      world.clock.leap(45_000);
      await world.inner.leases.reap(10);
      return `first, ${signal.aborted}`;
    });
    world = new World({ tasks: [blocking] });
    const id = await world.enqueue(blocking);
    await world.work();
    await world.clock.advance(5_000);
    expect(runs).toBe(2);
    expect(await world.job(id)).toMatchObject({ state: "succeeded", output: '"second"', crashes: 1, spent: 1 });
    expect(await world.outcomes(id)).toEqual(["crashed", "succeeded"]);
    expect(world.heard("attempt.blocked").length).toBeGreaterThan(0);
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
    const end = gate<string>();
    const blocking = task("blocking", { timeout: "5m" }, async (input: { n: number }) => {
      if (input.n > 0) return "after";
      await world.inner.leases.renew(worker.ref, [...leases], 60_000);
      // The thread renewed it all the while; its message is behind the timers in the queue of this one.
      setImmediate(() => renewed([...leases][0] as LeaseId, world.clock.monotonic()));
      world.clock.leap(40_000);
      return end.opened;
    });
    world = new World({ tasks: [blocking] });
    const worker = world.worker({ renewer });
    const id = await world.enqueue(blocking, { n: 0 });
    await worker.start();
    await world.clock.quiet();
    end.open("done");
    await world.clock.quiet();
    expect(world.heard("lease.lost")).toEqual([]);
    expect(await world.job(id)).toMatchObject({ state: "succeeded", output: '"done"' });
  });

  test("what lies claimed under it is not started", async () => {
    const ran: number[] = [];
    const end = gate();
    const first = task("first", async ({ n }: { n: number }) => {
      ran.push(n);
      if (n === 1) await end.opened;
    });
    let away = false;
    world = new World({
      tasks: [first],
      around: (store) => faultyStore(store, (operation) => (away && operation !== "leases.settle" ? { kind: "fail" } : undefined)),
    });
    const worker = await world.work({ concurrency: 1, lease: "1s", renewal: "300ms" });
    await world.enqueueMany(
      first,
      Array.from({ length: 10 }, () => ({ n: 0 })),
    );
    await world.clock.quiet();
    ran.length = 0;
    await world.enqueueMany(first, [{ n: 1 }, { n: 2 }, { n: 3 }]);
    await world.clock.quiet();
    expect(worker.status().buffered).toBe(2);
    away = true;
    await world.clock.advance(800);
    end.open();
    await world.clock.quiet();
    expect(ran).toEqual([1]);
    expect(worker.status()).toMatchObject({ buffered: 0, leases: 0, overrun: 0 });
    expect(world.heard("lease.lost")).toMatchObject([{ jobs: 3 }]);
  });

  test("nor in the moment after the event loop was blocked past its end, before any timer has run", async () => {
    const ran: string[] = [];
    const mixed = task("mixed", { timeout: "5m" }, ({ name, block }: { name: string; block?: number }) => {
      ran.push(name);
      if (block !== undefined) late += block;
    });
    let late = 0;
    world = new World({
      tasks: [mixed],
      around: (store) => faultyStore(store, (operation) => (operation === "leases.renew" ? { kind: "fail" } : undefined)),
    });
    // Time passes without a timer, as it does for a process that is busy.
    const { monotonic } = world.clock;
    Object.assign(world.clock, { monotonic: () => monotonic() + late });
    const worker = await world.work({ concurrency: 1 });
    await world.enqueueMany(
      mixed,
      Array.from({ length: 10 }, () => ({ name: "warm" })),
    );
    await world.clock.quiet();
    ran.length = 0;
    await world.enqueueMany(mixed, [{ name: "blocks", block: 20_000 }, { name: "second" }]);
    await Promise.resolve();
    expect(ran.slice(0, 2)).not.toContain("second");
    await world.clock.quiet();
    expect(world.heard("lease.lost")).toMatchObject([{ jobs: 1 }]);
    expect(worker.status().buffered).toBe(0);
  });

  test("A9: a renewal counts only if the store extended that lease", async () => {
    const reasons: unknown[] = [];
    const long = task("long", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(why(signal)));
      return new Promise<never>(() => {});
    });
    world = new World({ tasks: [long], around: (store) => ({ ...store, leases: { ...store.leases, renew: async () => ({ held: [] }) } }) });
    await world.enqueue(long);
    const worker = await world.work();
    await world.clock.advance(5_000);
    expect(reasons).toEqual(["lease_lost"]);
    expect(world.heard("lease.lost")).toMatchObject([{ jobs: 1, why: expect.stringContaining("does not know it") }]);
    expect(worker.status()).toMatchObject({ leases: 0, running: 0, overrun: 1 });
  });

  test("a lease that is gone because its last job is settled is not called lost", async () => {
    const slowAnswer = gate();
    const end = gate();
    const long = task("long", () => end.opened);
    world = new World({
      tasks: [long],
      around: (store) => faultyStore(store, (operation) => (operation === "leases.settle" ? { kind: "delay", until: slowAnswer.opened } : undefined)),
    });
    const id = await world.enqueue(long);
    const worker = await world.work();
    end.open();
    await world.clock.advance(6_000);
    expect(worker.status().settling).toBe(1);
    slowAnswer.open();
    await world.clock.quiet();
    expect(world.heard("lease.lost")).toEqual([]);
    expect(await world.state(id)).toBe("succeeded");
    expect(worker.status()).toMatchObject({ settling: 0, leases: 0 });
  });
});

describe("a hung process", () => {
  test("loses its lease once the latest deadline of its jobs has passed", async () => {
    const renewals: number[] = [];
    const quick = task("quick", { timeout: "20s" }, () => new Promise<never>(() => {}));
    world = new World({
      tasks: [quick],
      around: (store) => ({
        ...store,
        leases: {
          ...store.leases,
          renew(worker, leases, duration) {
            if (leases.includes("1" as LeaseId)) renewals.push(world.clock.monotonic());
            return store.leases.renew(worker, leases, duration);
          },
          // Nothing it settles arrives, as if its event loop never came to it.
          settle: () => new Promise<never>(() => {}),
        },
      }),
    });
    const id = await world.enqueue(quick);
    await world.work();
    await world.upkeep();
    await world.clock.advance(60_000);
    expect(Math.max(...renewals)).toBeLessThan(35_000);
    expect((await world.outcomes(id))[0]).toBe("crashed");
  });
});
