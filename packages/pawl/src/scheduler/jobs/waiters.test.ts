import { describe, expect, test } from "vitest";
import { failure } from "../../core/jobs/failure.js";
import { faultyStore } from "../../testing/faulty.js";
import { bareScheduler } from "../../testing/scheduler.js";

const done = { kind: "succeeded", output: "42" } as const;
const died = { kind: "failed", failure: failure("error", "it broke"), retryable: false } as const;

describe("a result", () => {
  test("of a job that has succeeded is its output", async () => {
    const { scheduler, attempt } = bareScheduler();
    const job = await scheduler.enqueue("t");
    await attempt(done);
    expect(await job.result()).toBe(42);
  });

  test("comes with the wakeup, without the clock moving", async () => {
    const { scheduler, attempt, clock } = bareScheduler();
    const job = await scheduler.enqueue("t");
    const result = job.result();
    await clock.quiet();
    await attempt(done);
    expect(await result).toBe(42);
  });

  test("comes by polling where wakeups are lost, less and less often", async () => {
    const reads: number[] = [];
    const { scheduler, attempt, clock } = bareScheduler({}, (store) => ({
      ...store,
      onWakeup: () => () => {},
      jobs: {
        ...store.jobs,
        get: (scope, id) => {
          reads.push(clock.now());
          return store.jobs.get(scope, id);
        },
      },
    }));
    const job = await scheduler.enqueue("t");
    const result = job.result();
    const start = clock.now();
    await clock.advance(5_000);
    expect(reads.map((at) => at - start)).toEqual([0, 50, 100, 200, 400, 800, 1_600, 2_600, 3_600, 4_600]);
    await attempt(done);
    await clock.advance(1_000);
    expect(await result).toBe(42);
    const before = reads.length;
    await clock.advance(10_000);
    expect(reads.length, "nobody waits, so nobody looks").toBe(before);
  });

  test("of a job somebody begins to wait for is looked at soon, however long others have waited", async () => {
    const { scheduler, attempt, clock } = bareScheduler({}, (store) => ({ ...store, onWakeup: () => () => {} }));
    const [old, fresh] = await scheduler.enqueueMany("t", [1, 2], { each: (input) => ({ delay: input === 1 ? "1d" : 0 }) });
    void old?.result();
    await clock.advance(10_000);
    const result = fresh?.result();
    await clock.quiet();
    await attempt(done);
    await clock.advance(60);
    expect(await result).toBe(42);
  });

  test("is shared by all who wait: one look serves them", async () => {
    let reads = 0;
    const { scheduler, attempt, clock } = bareScheduler({}, (store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        get: (scope, id) => {
          reads++;
          return store.jobs.get(scope, id);
        },
      },
    }));
    const job = await scheduler.enqueue("t");
    const results = Array.from({ length: 10 }, () => job.result());
    await clock.quiet();
    reads = 0;
    await attempt(done);
    expect(await Promise.all(results)).toEqual(Array(10).fill(42));
    expect(reads).toBe(1);
  });

  test("of very many is read a few at a time", async () => {
    let reading = 0;
    let most = 0;
    const { scheduler, attempt, clock } = bareScheduler({}, (store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        async get(scope, id) {
          most = Math.max(most, ++reading);
          const record = await store.jobs.get(scope, id);
          reading--;
          return record;
        },
      },
    }));
    const jobs = await scheduler.enqueueMany("t", Array(500).fill(0));
    const results = jobs.map((job) => job.result());
    await clock.quiet();
    expect(most).toBe(16);
    await attempt(done);
    expect(await Promise.all(results)).toEqual(Array(500).fill(42));
    expect(most).toBe(16);
  });

  test("is not read again for those who saw it at first", async () => {
    let reads = 0;
    const { scheduler, attempt, clock } = bareScheduler({}, (store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        async get(scope, id) {
          reads++;
          await new Promise((resolve) => setImmediate(resolve));
          return store.jobs.get(scope, id);
        },
      },
    }));
    const jobs = await scheduler.enqueueMany("t", Array(200).fill(0));
    const results = jobs.map((job) => job.result());
    // The wakeup finds most of them in line for their first look.
    await attempt(done);
    await Promise.all(results);
    await clock.advance(1_000);
    expect(reads).toBeLessThan(232);
  });

  test("of a dead or cancelled job is an error with the reason", async () => {
    const { scheduler, attempt } = bareScheduler();
    const dead = await scheduler.enqueue("t");
    await attempt(died);
    await expect(dead.result()).rejects.toMatchObject({
      code: "job_failed",
      details: { state: "dead", reason: "it broke" },
      cause: { kind: "error" },
    });
    const cancelled = await scheduler.enqueue("t");
    await cancelled.cancel("not needed");
    await expect(cancelled.result()).rejects.toMatchObject({ code: "job_failed", details: { state: "cancelled", reason: "not needed" } });
    expect(await scheduler.jobs.wait(cancelled)).toMatchObject({ state: "cancelled" });
  });

  test("is waited for no longer than asked", async () => {
    const { scheduler, clock } = bareScheduler();
    const job = await scheduler.enqueue("t");
    const result = expect(job.result("2s")).rejects.toMatchObject({ code: "wait_timeout", details: { wait: 2_000 } });
    await clock.advance(2_000);
    await result;
    expect(clock.nextIn(), "no timer is left behind").toBeUndefined();
    await expect(job.result(-1)).rejects.toMatchObject({ code: "duration_invalid" });
  });

  test("can be given up by a signal, before and while it is waited for", async () => {
    const { scheduler, clock } = bareScheduler();
    const job = await scheduler.enqueue("t");
    const controller = new AbortController();
    const result = expect(job.result({ signal: controller.signal })).rejects.toThrow("enough");
    await clock.quiet();
    controller.abort(new Error("enough"));
    await result;
    await expect(job.result({ signal: controller.signal })).rejects.toThrow("enough");
    expect(clock.nextIn()).toBeUndefined();
  });

  test("of a job that was redriven is the new one", async () => {
    const { scheduler, attempt, clock } = bareScheduler();
    const job = await scheduler.enqueue("t");
    await attempt(died);
    await expect(job.result()).rejects.toMatchObject({ code: "job_failed" });
    await job.redrive();
    const result = job.result();
    await clock.quiet();
    await attempt(done);
    expect(await result).toBe(42);
  });

  test("of a job that is deleted meanwhile is unknown", async () => {
    const { scheduler, attempt, clock, store } = bareScheduler({}, (inner) => ({ ...inner, onWakeup: () => () => {} }));
    const job = await scheduler.enqueue("t");
    const result = expect(job.result()).rejects.toMatchObject({ code: "job_unknown" });
    await clock.quiet();
    await attempt(done);
    await store.jobs.delete("everyone", job.id);
    await clock.advance(50);
    await result;
  });

  test("survives a store that is away for a while", async () => {
    const { scheduler, attempt, clock } = bareScheduler({}, (store) =>
      faultyStore(store, (operation, earlier) => (operation === "jobs.get" && earlier > 0 && earlier < 4 ? { kind: "fail" } : undefined)),
    );
    const job = await scheduler.enqueue("t");
    const result = job.result();
    await clock.quiet();
    await attempt(done);
    await clock.advance(5_000);
    expect(await result).toBe(42);
  });

  test("is not waited for after the end", async () => {
    const { scheduler, deps, clock } = bareScheduler();
    const job = await scheduler.enqueue("t");
    const result = expect(job.result()).rejects.toMatchObject({ code: "closed" });
    await clock.quiet();
    deps.waiters.close();
    await result;
  });
});
