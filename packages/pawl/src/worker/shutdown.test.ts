import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../test/support/fixtures/memory-fixture.js";
import { task } from "../core/jobs/task.js";
import { faultyStore } from "../testing/faulty.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

describe("E7: stopping a worker", () => {
  test("lets handlers finish, and claims nothing meanwhile", async () => {
    const end = barrier<string>();
    const slow = task("slow", () => end.opened);
    fixture = new MemoryFixture({ tasks: [slow] });
    const first = await fixture.enqueue(slow);
    const worker = await fixture.work({ concurrency: 5 });
    const stopping = worker.stop();
    const second = await fixture.enqueue(slow);
    await fixture.clock.advance(5_000);
    expect([worker.status().state, await fixture.state(first), await fixture.state(second)]).toEqual(["draining", "running", "ready"]);
    end.open("done");
    await stopping;
    expect(await fixture.job(first)).toMatchObject({ state: "succeeded", output: '"done"' });
    expect([worker.status().state, await fixture.state(second)]).toEqual(["stopped", "ready"]);
    expect(fixture.eventsNamed("worker.stopped")).toMatchObject([{ released: 0 }]);
  });

  test("at the deadline aborts the signals and gives the rest back at once, at no attempt", async () => {
    const reasons: unknown[] = [];
    const deaf = task("deaf", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason.why));
      return new Promise<never>(() => {});
    });
    fixture = new MemoryFixture({ tasks: [deaf] });
    const ids = await fixture.enqueueMany(deaf, [{}, {}]);
    const worker = await fixture.work();
    const stopping = worker.stop({ grace: "3s" });
    await fixture.clock.advance(2_999);
    expect(reasons).toEqual([]);
    await fixture.clock.advance(1);
    await stopping;
    expect(reasons).toEqual(["shutdown", "shutdown"]);
    for (const id of ids) {
      expect(await fixture.job(id)).toMatchObject({ state: "ready", attempts: 0, crashes: 0 });
      expect(await fixture.outcomes(id)).toEqual(["released"]);
    }
    expect(fixture.eventsNamed("worker.stopped")).toMatchObject([{ released: 2 }]);
  });

  test("gives back what was claimed and not started, before anything else", async () => {
    let slow = false;
    const moody = task("moody", () => (slow ? new Promise<never>(() => {}) : undefined));
    fixture = new MemoryFixture({ tasks: [moody] });
    const worker = await fixture.work({ concurrency: 1 });
    await fixture.enqueueMany(
      moody,
      Array.from({ length: 20 }, () => ({})),
    );
    await fixture.clock.quiet();
    slow = true;
    const ids = await fixture.enqueueMany(
      moody,
      Array.from({ length: 5 }, () => ({})),
    );
    await fixture.clock.quiet();
    expect(worker.status().buffered).toBe(4);
    const stopping = worker.stop({ grace: "10s" });
    await fixture.clock.quiet();
    expect(await Promise.all(ids.map((id) => fixture.state(id)))).toEqual(["running", "ready", "ready", "ready", "ready"]);
    await fixture.whileTimePasses(stopping);
    expect(fixture.eventsNamed("worker.stopped")).toMatchObject([{ released: 5 }]);
  });

  test("A6: gives back a claim that was under way when it began to stop, and makes no other", async () => {
    const answer = barrier();
    let ran = 0;
    let claims = 0;
    const quick = task("quick", () => void ran++);
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) =>
        faultyStore(store, (operation) => {
          if (operation !== "leases.claim") return undefined;
          claims++;
          return { kind: "delay", until: answer.opened };
        }),
    });
    const ids = await fixture.enqueueMany(quick, [{}, {}, {}]);
    const worker = await fixture.work({ concurrency: 1 });
    const stopping = worker.stop();
    await fixture.clock.quiet();
    answer.open();
    await stopping;
    expect([ran, claims]).toEqual([0, 1]);
    expect(await Promise.all(ids.map((id) => fixture.state(id)))).toEqual(["ready", "ready", "ready"]);
    expect(await fixture.outcomes(ids[0] as never)).toEqual(["released"]);
  });

  test("A6: two workers of one name are two holders; one stopping takes nothing from the other", async () => {
    const end = barrier();
    const slow = task("slow", () => end.opened);
    fixture = new MemoryFixture({ tasks: [slow] });
    const old = await fixture.work({ name: "web-1", concurrency: 1 });
    const [first, second] = await fixture.enqueueMany(slow, [{}, {}]);
    await fixture.clock.quiet();
    const fresh = await fixture.work({ name: "web-1", concurrency: 1 });
    expect(old.ref.instance).not.toBe(fresh.ref.instance);
    await fixture.whileTimePasses(old.stop({ grace: "1s" }));
    expect(await fixture.job(first as never)).toMatchObject({ state: "ready", attempts: 0 });
    expect(await fixture.state(second as never)).toBe("running");
  });

  test("a job that runs at most once and has begun is not given back: it is dead, interrupted", async () => {
    const once = task("once", { atMostOnce: true }, () => new Promise<never>(() => {}));
    fixture = new MemoryFixture({ tasks: [once] });
    const id = await fixture.enqueue(once, {}, { options: { atMostOnce: true } });
    const worker = await fixture.work();
    await fixture.whileTimePasses(worker.stop({ grace: "1s" }));
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "interrupted" } });
  });

  test("does not wait for a store that is away longer than its leases last", async () => {
    let away = false;
    const end = barrier();
    const slow = task("slow", () => end.opened);
    fixture = new MemoryFixture({ tasks: [slow], wrapStore: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    await fixture.enqueue(slow);
    const worker = await fixture.work();
    away = true;
    end.open();
    const before = fixture.clock.monotonic();
    await fixture.whileTimePasses(worker.stop());
    expect(fixture.clock.monotonic() - before).toBeLessThan(20_000);
  });

  test("a kill ends it now, and gives back without waiting", async () => {
    const reasons: unknown[] = [];
    const deaf = task("deaf", (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason.why));
      return new Promise<never>(() => {});
    });
    fixture = new MemoryFixture({ tasks: [deaf] });
    const id = await fixture.enqueue(deaf);
    const worker = await fixture.work();
    const stopping = worker.stop();
    await fixture.clock.quiet();
    worker.kill();
    await stopping;
    await worker.stopped;
    expect(reasons).toEqual(["shutdown"]);
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "ready", attempts: 0, crashes: 0 });
  });

  test("keeps the contract of services", async () => {
    fixture = new MemoryFixture({ tasks: [] });
    const never = fixture.worker();
    await never.stop();
    await never.stopped;
    await expect(never.start()).rejects.toMatchObject({ code: "closed" });
    const worker = await fixture.work();
    await expect(worker.start()).rejects.toMatchObject({ code: "already_started" });
    expect(worker.stop()).toBe(worker.stop());
    await worker.stopped;
  });

  test("leaves no timer behind", async () => {
    const quick = task("quick", async () => {});
    fixture = new MemoryFixture({ tasks: [quick] });
    await fixture.enqueueMany(
      quick,
      Array.from({ length: 100 }, () => ({})),
    );
    const worker = await fixture.work();
    await fixture.clock.advance(2_000);
    await fixture.whileTimePasses(worker.stop());
    expect(fixture.clock.nextIn()).toBeUndefined();
  });
});
