import { afterEach, describe, expect, test } from "vitest";
import { gate, World } from "../../../../test/support/world.js";
import { faultyStore } from "../testing/faulty.js";
import { task } from "./task.js";

let world: World;
afterEach(() => world.close());

describe("E7: stopping a worker", () => {
  test("lets handlers finish, and claims nothing meanwhile", async () => {
    const end = gate<string>();
    const slow = task("slow", () => end.opened);
    world = new World({ tasks: [slow] });
    const first = await world.enqueue(slow);
    const worker = await world.work({ concurrency: 5 });
    const stopping = worker.stop();
    const second = await world.enqueue(slow);
    await world.clock.advance(5_000);
    expect([worker.status().state, await world.state(first), await world.state(second)]).toEqual(["draining", "running", "ready"]);
    end.open("done");
    await stopping;
    expect(await world.job(first)).toMatchObject({ state: "succeeded", output: '"done"' });
    expect([worker.status().state, await world.state(second)]).toEqual(["stopped", "ready"]);
    expect(world.heard("worker.stopped")).toMatchObject([{ released: 0 }]);
  });

  test("at the deadline aborts the signals and gives the rest back at once, at no attempt", async () => {
    const reasons: unknown[] = [];
    const deaf = task("deaf", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason.why));
      return new Promise<never>(() => {});
    });
    world = new World({ tasks: [deaf] });
    const ids = await world.enqueueMany(deaf, [{}, {}]);
    const worker = await world.work();
    const stopping = worker.stop({ timeout: "3s" });
    await world.clock.advance(2_999);
    expect(reasons).toEqual([]);
    await world.clock.advance(1);
    await stopping;
    expect(reasons).toEqual(["shutdown", "shutdown"]);
    for (const id of ids) {
      expect(await world.job(id)).toMatchObject({ state: "ready", spent: 0, crashes: 0 });
      expect(await world.outcomes(id)).toEqual(["released"]);
    }
    expect(world.heard("worker.stopped")).toMatchObject([{ released: 2 }]);
  });

  test("gives back what was claimed and not started, before anything else", async () => {
    let slow = false;
    const moody = task("moody", () => (slow ? new Promise<never>(() => {}) : undefined));
    world = new World({ tasks: [moody] });
    const worker = await world.work({ concurrency: 1 });
    await world.enqueueMany(
      moody,
      Array.from({ length: 20 }, () => ({})),
    );
    await world.clock.quiet();
    slow = true;
    const ids = await world.enqueueMany(
      moody,
      Array.from({ length: 5 }, () => ({})),
    );
    await world.clock.quiet();
    expect(worker.status().buffered).toBe(4);
    const stopping = worker.stop({ timeout: "10s" });
    await world.clock.quiet();
    expect(await Promise.all(ids.map((id) => world.state(id)))).toEqual(["running", "ready", "ready", "ready", "ready"]);
    await world.whilePassing(stopping);
    expect(world.heard("worker.stopped")).toMatchObject([{ released: 5 }]);
  });

  test("A6: gives back a claim that was under way when it began to stop, and makes no other", async () => {
    const answer = gate();
    let ran = 0;
    let claims = 0;
    const quick = task("quick", () => void ran++);
    world = new World({
      tasks: [quick],
      around: (store) =>
        faultyStore(store, (operation) => {
          if (operation !== "leases.claim") return undefined;
          claims++;
          return { kind: "delay", until: answer.opened };
        }),
    });
    const ids = await world.enqueueMany(quick, [{}, {}, {}]);
    const worker = await world.work({ concurrency: 1 });
    const stopping = worker.stop();
    await world.clock.quiet();
    answer.open();
    await stopping;
    expect([ran, claims]).toEqual([0, 1]);
    expect(await Promise.all(ids.map((id) => world.state(id)))).toEqual(["ready", "ready", "ready"]);
    expect(await world.outcomes(ids[0] as never)).toEqual(["released"]);
  });

  test("A6: two workers of one name are two holders; one stopping takes nothing from the other", async () => {
    const end = gate();
    const slow = task("slow", () => end.opened);
    world = new World({ tasks: [slow] });
    const old = await world.work({ name: "web-1", concurrency: 1 });
    const [first, second] = await world.enqueueMany(slow, [{}, {}]);
    await world.clock.quiet();
    const fresh = await world.work({ name: "web-1", concurrency: 1 });
    expect(old.ref.boot).not.toBe(fresh.ref.boot);
    await world.whilePassing(old.stop({ timeout: "1s" }));
    expect(await world.job(first as never)).toMatchObject({ state: "ready", spent: 0 });
    expect(await world.state(second as never)).toBe("running");
  });

  test("a job that runs at most once and has begun is not given back: it is dead, interrupted", async () => {
    const once = task("once", { atMostOnce: true }, () => new Promise<never>(() => {}));
    world = new World({ tasks: [once] });
    const id = await world.enqueue(once, {}, { options: { atMostOnce: true } });
    const worker = await world.work();
    await world.whilePassing(worker.stop({ timeout: "1s" }));
    expect(await world.job(id)).toMatchObject({ state: "dead", failure: { kind: "interrupted" } });
  });

  test("does not wait for a store that is away longer than its leases last", async () => {
    let away = false;
    const end = gate();
    const slow = task("slow", () => end.opened);
    world = new World({ tasks: [slow], around: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    await world.enqueue(slow);
    const worker = await world.work();
    away = true;
    end.open();
    const before = world.clock.monotonic();
    await world.whilePassing(worker.stop());
    expect(world.clock.monotonic() - before).toBeLessThan(20_000);
  });

  test("a kill ends it now, and gives back without waiting", async () => {
    const reasons: unknown[] = [];
    const deaf = task("deaf", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason.why));
      return new Promise<never>(() => {});
    });
    world = new World({ tasks: [deaf] });
    const id = await world.enqueue(deaf);
    const worker = await world.work();
    const stopping = worker.stop();
    await world.clock.quiet();
    worker.kill();
    await stopping;
    await worker.stopped;
    expect(reasons).toEqual(["shutdown"]);
    await world.clock.quiet();
    expect(await world.job(id)).toMatchObject({ state: "ready", spent: 0, crashes: 0 });
  });

  test("keeps the contract of services", async () => {
    world = new World({ tasks: [] });
    const never = world.worker();
    await never.stop();
    await never.stopped;
    await expect(never.start()).rejects.toMatchObject({ code: "closed" });
    const worker = await world.work();
    await expect(worker.start()).rejects.toMatchObject({ code: "already_started" });
    expect(worker.stop()).toBe(worker.stop());
    await worker.stopped;
  });

  test("leaves no timer behind", async () => {
    const quick = task("quick", async () => {});
    world = new World({ tasks: [quick] });
    await world.enqueueMany(
      quick,
      Array.from({ length: 100 }, () => ({})),
    );
    const worker = await world.work();
    await world.clock.advance(2_000);
    await world.whilePassing(worker.stop());
    expect(world.clock.nextIn()).toBeUndefined();
  });
});
