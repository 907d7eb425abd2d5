import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { open, task } from "./index.js";
import { openTest } from "./testing.js";

const double = task("double", { input: z.number() }, (n) => n * 2);

describe("a pawl", () => {
  test("is the README's shape: open, enqueue, work, result", async () => {
    const pawl = await open("memory:", { tasks: [double], queueDefaults: { mail: { retry: 5, timeout: "1m" } } });
    const job = await pawl.enqueue(double, 21, { queue: "mail", priority: 7, tenant: "acme", unique: "answer" });
    {
      await using worker = await pawl.work({ concurrency: 50 });
      expect(await job.result()).toBe(42);
      expect(worker.status()).toMatchObject({ state: "working", concurrency: 50 });
    }
    await pawl.close();
    await pawl.close();
  });

  test("keeps finished jobs as long as it says, and no longer", async () => {
    await using world = await openTest({ tasks: [double], keep: { jobs: "1h" }, maintenance: { pruneInterval: "1m" } });
    const job = await world.pawl.enqueue(double, 1);
    await world.advance("50m");
    expect(await job.get()).toMatchObject({ state: "succeeded" });
    await world.advance("15m");
    await expect(job.get()).rejects.toMatchObject({ code: "job_unknown" });
  });

  test("that is closed says so", async () => {
    const pawl = await open("memory:", { tasks: [double] });
    await pawl.close();
    await expect(pawl.work()).rejects.toMatchObject({ code: "closed" });
    await expect(pawl.enqueue(double, 1)).rejects.toMatchObject({ code: "closed" });
    await expect(pawl.jobs.list()).rejects.toMatchObject({ code: "closed" });
  });

  test("lets handlers finish, and enqueue, before it closes", async () => {
    const stored: string[] = [];
    const parent = task("parent", async () => {
      started.resolve();
      await go.promise;
      stored.push((await world.pawl.enqueue(double, 1)).id);
    });
    const started = deferred();
    const go = deferred();
    const world = await openTest({ tasks: [parent, double], work: { tasks: ["parent"] } });
    await world.pawl.enqueue(parent);
    await started.promise;
    const closed = world.pawl.close();
    go.resolve();
    await closed;
    expect(stored).toHaveLength(1);
  });

  test("does not close under enqueues that were made before", async () => {
    const pawl = await open("memory:");
    const enqueued = Promise.all(Array.from({ length: 2_500 }, (_, i) => pawl.enqueue("t", i)));
    await new Promise((resolve) => setImmediate(resolve));
    await pawl.close();
    expect(await enqueued).toHaveLength(2_500);
  });

  test("pauses and resumes queues and tasks, and lists them with their counts", async () => {
    await using world = await openTest({ tasks: [double], queueDefaults: { mail: {} } });
    const { pawl } = world;
    await pawl.queues.pause("mail");
    await pawl.tasks.pause("other");
    const job = await pawl.enqueue(double, 1, { queue: "mail" });
    await world.advance("1m");
    expect(await job.get()).toMatchObject({ state: "ready" });
    expect((await pawl.queues.list()).items).toMatchObject([{ queue: "mail", paused: true, counts: { ready: 1, succeeded: 0 } }]);
    expect((await pawl.tasks.list()).items).toMatchObject([
      { task: "double", paused: false, registered: true, counts: { ready: 1 } },
      { task: "other", paused: true, registered: false, counts: { ready: 0 } },
    ]);
    await pawl.queues.resume("mail");
    await world.idle();
    expect(await job.get()).toMatchObject({ state: "succeeded" });
    expect(await pawl.counts()).toMatchObject({ ready: 0, succeeded: 1 });
    expect(await pawl.counts({ queue: "none" })).toMatchObject({ succeeded: 0 });
    await expect(pawl.queues.pause("")).rejects.toMatchObject({ code: "name_invalid" });
  });

  test("says what it stands on", async () => {
    await using world = await openTest({ tasks: [double] });
    expect(await world.pawl.info()).toMatchObject({ engine: "memory", durability: "none", receivesWakeups: true, tasks: ["double"] });
  });

  test("tells what happens, until it is not wanted any more", async () => {
    await using world = await openTest({ tasks: [double] });
    const heard: string[] = [];
    const stop = world.pawl.on("attempt.settled", ({ lane, outcome }) => heard.push(`${lane.task} ${outcome}`));
    await world.pawl.enqueue(double, 1);
    await world.idle();
    stop();
    await world.pawl.enqueue(double, 2);
    await world.idle();
    expect(heard).toEqual(["double succeeded"]);
  });

  test("wakes workers for jobs of a transaction that has committed", async () => {
    const tx = { query: async () => ({ rows: [] }) };
    // A store whose transactional enqueues nobody is told of, as with a database.
    await using world = await openTest({
      tasks: [double],
      wrapStore: (store) => {
        let muted = false;
        return {
          ...store,
          transactions: { join: (joined) => joined as never, run: () => Promise.reject(new Error("this test joins transactions only")) },
          onWakeup: (listener) => store.onWakeup((wakeup) => muted || listener(wakeup)),
          jobs: {
            ...store.jobs,
            async enqueue(jobs, given) {
              muted = given !== undefined;
              const answers = await store.jobs.enqueue(jobs);
              muted = false;
              return answers;
            },
          },
        };
      },
    });
    const job = await world.pawl.enqueue(double, 1, { tx });
    await world.idle();
    expect(await job.get()).toMatchObject({ state: "ready" });
    world.pawl.wake();
    await world.idle();
    expect(await job.get()).toMatchObject({ state: "succeeded" });
  });

  test("leaves the signals of the process alone once it is closed", async () => {
    const before = process.listenerCount("SIGTERM");
    const pawl = await open("memory:", { tasks: [double] });
    await pawl.work();
    expect(process.listenerCount("SIGTERM")).toBe(before);
    const closed = pawl.closeOnSignal();
    expect(process.listenerCount("SIGTERM")).toBe(before + 1);
    await pawl.close();
    await closed;
    expect(process.listenerCount("SIGTERM")).toBe(before);
  });
});

describe("a process", () => {
  const script = fileURLToPath(new URL("../../../test/fixtures/signals.ts", import.meta.url));

  async function started() {
    const child = spawn(process.execPath, ["--import", "tsx", script], { stdio: ["ignore", "pipe", "inherit"] });
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (line) => lines.push(line));
    await once(reader, "line");
    return { child, lines };
  }

  test("stays while a worker works, and on a signal finishes what runs, then ends", async () => {
    const { child, lines } = await started();
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    expect({ code, lines }).toEqual({ code: 0, lines: ["running", "finished"] });
  });

  test("ends at once on the second signal", async () => {
    const { child, lines } = await started();
    child.kill("SIGINT");
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    expect([130, 143]).toContain(code);
    expect(lines).toEqual(["running"]);
  });
});

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
