import { describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { faultyStore } from "../../testing/faulty.js";
import { bareScheduler } from "../../testing/scheduler.js";

const encode = task(
  "encode",
  { queue: "media", priority: "low", finishWithin: "1h", startWithin: "10m", maxCrashes: 7, atMostOnce: true, retry: ["1m"], timeout: "5m" },
  (_: string) => {},
);

/** A process that has no code, on a store where another one has published its tasks. */
async function producer(published = [encode]) {
  const reads: string[] = [];
  const bare = bareScheduler({}, (store) =>
    faultyStore(store, (operation) => {
      if (operation === "tasks.get") reads.push(operation);
      return undefined;
    }),
  );
  await bare.store.tasks.publish(bareScheduler({ tasks: published }).deps.registry.records());
  return { ...bare, reads };
}

describe("a job enqueued by the name of its task", () => {
  test("is as the task's code says it should be, though that is in another process", async () => {
    const { scheduler, records } = await producer();
    const job = await scheduler.enqueue("encode", "film");
    const [stored] = await records();
    expect(stored).toMatchObject({
      id: job.id,
      lane: { queue: "media", priority: 2, task: "encode" },
      options: { finishWithin: 3_600_000, startWithin: 600_000, maxCrashes: 7, atMostOnce: true },
    });
    // These are read where it runs, so that a deploy can change them for jobs that wait.
    expect(stored?.options).not.toHaveProperty("retry");
    expect(stored?.options).not.toHaveProperty("timeout");
  });

  test("says otherwise where it was asked to", async () => {
    const { scheduler, records } = await producer();
    await scheduler.enqueue("encode", "film", { queue: "urgent", priority: 9, finishWithin: "2h" });
    expect(await records()).toMatchObject([{ lane: { queue: "urgent", priority: 9 }, options: { finishWithin: 7_200_000, startWithin: 600_000 } }]);
  });

  test.each([
    ["enqueueMany", (name: string) => (bare: Awaited<ReturnType<typeof producer>>) => bare.scheduler.enqueueMany(name, [1, 2])],
    ["enqueueStream", (name: string) => (bare: Awaited<ReturnType<typeof producer>>) => bare.scheduler.enqueueStream(name, [1, 2])],
  ])("knows its queue when many are stored by %s", async (_, enqueue) => {
    const bare = await producer();
    await enqueue("encode")(bare);
    expect((await bare.records()).map(({ lane }) => lane.queue)).toEqual(["media", "media"]);
  });

  test("has the defaults of all jobs where nobody published its task", async () => {
    const { scheduler, records } = await producer([]);
    await scheduler.enqueue("encode", "film");
    expect(await records()).toMatchObject([{ lane: { queue: "default", priority: 5 }, options: {} }]);
  });

  test("costs one look at the store in a few seconds, however many are enqueued at once", async () => {
    const { scheduler, clock, reads, records } = await producer();
    await Promise.all([1, 2, 3].map((n) => scheduler.enqueue("encode", n)));
    clock.leap(4_999);
    await scheduler.enqueue("encode", 4);
    expect(reads).toHaveLength(1);
    clock.leap(1);
    await scheduler.enqueue("encode", 5);
    expect(reads).toHaveLength(2);
    expect(await records()).toHaveLength(5);
  });

  test("sees new defaults of its task a few seconds after they were published", async () => {
    const { scheduler, clock, store, records } = await producer();
    await scheduler.enqueue("encode", 1);
    await store.tasks.publish([{ name: "encode", defaults: { queue: "films" } }]);
    clock.leap(5_000);
    await scheduler.enqueue("encode", 2);
    expect((await records()).map(({ lane }) => lane.queue).sort()).toEqual(["films", "media"]);
  });

  test("is not stored where the store cannot be asked, and the next one asks again", async () => {
    const { scheduler, store } = bareScheduler({}, (inner) =>
      faultyStore(inner, (operation, earlier) => (operation === "tasks.get" && earlier === 0 ? { kind: "fail" } : undefined)),
    );
    await expect(scheduler.enqueue("encode", 1)).rejects.toThrow("tasks.get was made to fail");
    await scheduler.enqueue("encode", 2);
    expect((await store.jobs.list("everyone", {}, { limit: 10 })).jobs).toHaveLength(1);
  });
});
