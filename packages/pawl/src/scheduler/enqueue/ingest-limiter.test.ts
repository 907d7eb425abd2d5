import { describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import type { Events } from "../../core/observe/event.js";
import type { Policies, PolicyKind } from "../../core/sharing/policy.js";
import type { Store } from "../../store/port/index.js";
import { faultyStore } from "../../testing/faulty.js";
import { type BareScheduler, bareScheduler } from "../../testing/scheduler.js";

const work = task<number, void>("work", () => {});
const RATE = { limit: 10, per: 1_000, burst: 10 };

async function put<K extends PolicyKind>({ store }: BareScheduler, kind: K, name: string, policy: Policies[K]): Promise<void> {
  const version = (await store.policies.get({ kind, name }))?.version ?? 0;
  expect(await store.policies.put({ kind, name }, policy, version)).toBe("stored");
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const limited = { name: "PawlError", code: "ingest_limited" };

describe("an enqueue over an ingest limit", () => {
  test("is refused with an error that says by what, and when to try again, and nothing is stored", async () => {
    const bare = bareScheduler({ tasks: [work] });
    await put(bare, "tenant", "acme", { ingest: { rate: RATE } });
    const acme = bare.scheduler.forTenant("acme");
    await acme.enqueueMany(work, numbers(10));
    await expect(acme.enqueue(work, 1)).rejects.toMatchObject({
      ...limited,
      message: "tenant acme takes no more jobs for now, by the rate it is limited to. Enqueue again in 100 ms, or have the limit raised.",
      details: { kind: "tenant", name: "acme", limit: "rate", retryAfter: 100 },
    });
    expect(await bare.records()).toHaveLength(10);
    bare.clock.leap(100);
    await acme.enqueue(work, 1);
    expect(await bare.records()).toHaveLength(11);
  });

  test("stores all of a call or nothing of it", async () => {
    const bare = bareScheduler({ tasks: [work] });
    await put(bare, "queue", "default", { ingest: { depth: 10 } });
    await bare.scheduler.enqueueMany(work, numbers(8));
    await expect(bare.scheduler.enqueueMany(work, numbers(3))).rejects.toMatchObject({ ...limited, details: { limit: "depth", stored: 0 } });
    await bare.scheduler.enqueueMany(work, numbers(2));
    expect(await bare.records()).toHaveLength(10);
  });

  test("of many thousands says how many were stored", async () => {
    const bare = bareScheduler({ tasks: [work] });
    await put(bare, "queue", "default", { ingest: { rate: { limit: 1, per: 1_000, burst: 2_000 } } });
    await expect(bare.scheduler.enqueueMany(work, numbers(2_500))).rejects.toMatchObject({ ...limited, details: { stored: 2_000 } });
  });

  test("is that caller's alone, though others shared its write", async () => {
    const bare = bareScheduler({ tasks: [work] });
    await put(bare, "tenant", "acme", { ingest: { rate: { ...RATE, burst: 1 } } });
    const answers = await Promise.allSettled([
      bare.scheduler.enqueue(work, 1, { tenant: "acme" }),
      bare.scheduler.enqueue(work, 2, { tenant: "umbrella" }),
      bare.scheduler.enqueue(work, 3, { tenant: "acme" }),
      bare.scheduler.enqueue(work, 4, { tenant: "umbrella" }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect((await bare.records()).map(({ input }) => input).sort()).toEqual(["1", "2", "4"]);
    const ids = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value.id] : []));
    expect(new Set(ids).size).toBe(3);
  });

  test("is told to whoever listens", async () => {
    const bare = bareScheduler({ tasks: [work] });
    const heard: Events["ingest.refused"][] = [];
    bare.bus.on("ingest.refused", (event) => heard.push(event));
    await put(bare, "queue", "default", { ingest: { rate: { ...RATE, burst: 5 } } });
    await bare.scheduler.enqueueMany(work, numbers(5));
    await expect(bare.scheduler.enqueueMany(work, numbers(2))).rejects.toMatchObject(limited);
    expect(heard).toEqual([{ kind: "queue", name: "default", limit: "rate", jobs: 2, retryAfter: 200 }]);
  });

  test("in a delay spends the rate and is not asked for room", async () => {
    const bare = bareScheduler({ tasks: [work] });
    await put(bare, "queue", "default", { ingest: { depth: 1 } });
    await bare.scheduler.enqueue(work, 1);
    await bare.scheduler.enqueue(work, 2, { delay: "1h" });
    await put(bare, "queue", "default", { ingest: { rate: { ...RATE, burst: 1 } } });
    await bare.scheduler.enqueue(work, 3, { delay: "1h" });
    await expect(bare.scheduler.enqueue(work, 4, { delay: "1h" })).rejects.toMatchObject(limited);
  });

  test("is also a rerun", async () => {
    const bare = bareScheduler({ tasks: [work] });
    const job = await bare.scheduler.enqueue(work, 1);
    await bare.attempt({ kind: "succeeded" });
    await put(bare, "queue", "default", { ingest: { rate: { ...RATE, burst: 1 } } });
    await bare.scheduler.jobs.rerun(job);
    await expect(bare.scheduler.jobs.rerun(job)).rejects.toMatchObject(limited);
  });
});

describe("enqueueStream", () => {
  test("waits until it is let in, and goes on", async () => {
    const bare = bareScheduler({ tasks: [work] });
    await put(bare, "queue", "default", { ingest: { rate: { limit: 1_000, per: 1_000, burst: 1_000 } } });
    const streamed = bare.scheduler.enqueueStream(work, numbers(3_000));
    await bare.clock.advance(5_000);
    expect(await streamed).toMatchObject({ created: 3_000 });
  });

  test("gives up when it would have to wait for longer than its patience, and says how many were stored", async () => {
    const bare = bareScheduler({ tasks: [work] });
    await put(bare, "queue", "default", { ingest: { rate: { limit: 1, per: 1_000, burst: 1_000 } } });
    const streamed = bare.scheduler.enqueueStream(work, numbers(3_000), { wait: "5s" });
    await expect(streamed).rejects.toMatchObject({ ...limited, details: { stored: 1_000 } });
  });

  test.each([[-1], ["soon"], [null]])("refuses a patience of %o", async (patience) => {
    const { scheduler } = bareScheduler({ tasks: [work] });
    await expect(scheduler.enqueueStream(work, [1], { wait: patience as number })).rejects.toMatchObject({ code: "duration_invalid" });
  });
});

/** Notes every call. */
const seeing = (store: Store, calls: string[]) =>
  faultyStore(store, (operation) => {
    calls.push(operation);
    return undefined;
  });

describe("what limits there are", () => {
  test("is known at once where they are set, and asks nothing of the store for jobs under none", async () => {
    const calls: string[] = [];
    const bare = bareScheduler({ tasks: [work] }, (store) => seeing(store, calls));
    await put(bare, "tenant", "acme", { ingest: { rate: RATE } });
    for (let n = 0; n < 5; n++) await bare.scheduler.enqueue(work, n);
    expect(calls.filter((call) => call === "ingest.take")).toEqual([]);
    expect(calls.filter((call) => call === "ingest.limits")).toHaveLength(1);
    await bare.scheduler.enqueue(work, 1, { tenant: "acme" });
    expect(calls.filter((call) => call === "ingest.take")).toHaveLength(1);
    await put(bare, "tenant", "acme", {});
    await bare.scheduler.enqueue(work, 1, { tenant: "acme" });
    expect(calls.filter((call) => call === "ingest.take")).toHaveLength(1);
  });

  test("is read again every second, soon after an enqueue and not beside it, and waited for after five", async () => {
    const calls: string[] = [];
    const bare = bareScheduler({ tasks: [work] }, (store) => seeing(store, calls));
    await bare.scheduler.enqueue(work, 1);
    bare.clock.leap(999);
    await bare.scheduler.enqueue(work, 2);
    expect(calls).toEqual(["ingest.limits", "jobs.enqueue", "jobs.enqueue"]);
    bare.clock.leap(1_000);
    await bare.scheduler.enqueue(work, 3);
    expect(calls.slice(3)).toEqual(["jobs.enqueue"]);
    await bare.clock.advance(10);
    expect(calls.slice(3)).toEqual(["jobs.enqueue", "ingest.limits"]);
    bare.clock.leap(5_000);
    await bare.scheduler.enqueue(work, 4);
    expect(calls.slice(5)).toEqual(["ingest.limits", "jobs.enqueue"]);
  });

  test("that cannot be read fail the enqueue at first, and stop nobody while they are known", async () => {
    let broken = true;
    const bare = bareScheduler({ tasks: [work] }, (store) =>
      faultyStore(store, (operation) => (broken && operation === "ingest.limits" ? { kind: "fail", error: new Error("no") } : undefined)),
    );
    await expect(bare.scheduler.enqueue(work, 1)).rejects.toThrow("no");
    broken = false;
    await bare.scheduler.enqueue(work, 1);
    broken = true;
    bare.clock.leap(2_000);
    await bare.scheduler.enqueue(work, 2);
    bare.clock.leap(10_000);
    await expect(bare.scheduler.enqueue(work, 3)).rejects.toThrow("no");
  });
});
