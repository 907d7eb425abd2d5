import { describe, expect, test } from "vitest";
import { z } from "zod";
import { exponential } from "./core/jobs/retry.js";
import { type TaskOptions, task } from "./core/jobs/task.js";
import { type OpenOptions, open } from "./open.js";
import { openTest } from "./testing/open.js";
import type { WorkerOptions } from "./worker/options.js";

const plain = task("plain", (_: unknown) => {});

/** What callers without types pass. */
type Wrong = readonly [what: string, given: object, says: RegExp];

function refused(says: RegExp) {
  return { name: "PawlError", code: expect.stringMatching(/_(invalid|unknown)$/), message: expect.stringMatching(says) };
}

describe("open refuses", () => {
  test.each<Wrong>([
    ["a misspelt option", { task: [] }, /option task .*did you mean tasks\?/],
    ["tasks that are no array", { tasks: {} }, /tasks.*an object is not an array/],
    ["a task that is a name", { tasks: ["double"] }, /tasks/],
    ["any task by a word", { allowUnknownTasks: "yes" }, /allowUnknownTasks.*neither true nor false/],
    ["a misspelt option of maintenance", { maintenance: { pollIntervall: 1 } }, /maintenance\.pollIntervall .*did you mean pollInterval\?/],
    ["maintenance that is a word", { maintenance: "yes" }, /maintenance/],
    ["a pace that is none", { maintenance: { reapInterval: "soon" } }, /maintenance\.reapInterval "soon" is not a duration/],
    ["a batch of nothing", { maintenance: { batchSize: 0 } }, /maintenance\.batchSize.*0 is not a whole number/],
    ["a misspelt time to keep", { keep: { job: "1d" } }, /keep\.job .*did you mean jobs\?/],
    ["no time to keep", { keep: { dead: 0 } }, /keep\.dead/],
    ["an export that is no function", { keep: { exportFinished: "s3://bucket" } }, /keep\.exportFinished.*not a function/],
    ["an export that is no function, without maintenance", { maintenance: false, keep: { exportFinished: 1 } }, /keep\.exportFinished/],
    ["an engine nobody knows", { engine: "natve" }, /engine.*did you mean native\?/],
    ["a migration that is a word", { migrate: "no" }, /migrate.*neither true nor false/],
    ["a misspelt option of Postgres", { postgres: { connection: 3 } }, /postgres\.connection .*did you mean connections\?/],
    ["no connections", { postgres: { connections: 0 } }, /postgres\.connections/],
    ["a timeout that is a text", { postgres: { statementTimeout: "4s" } }, /postgres\.statementTimeout/],
    ["a schema that is more than a name", { postgres: { schema: 'pawl"; drop table x' } }, /postgres\.schema/],
    ["a place to listen that is no URL", { postgres: { listenUrl: "localhost" } }, /postgres\.listenUrl/],
    ["statements prepared otherwise", { postgres: { prepare: true } }, /postgres\.prepare/],
    ["a tracing without its attempts", { tracing: { enqueue: () => undefined } }, /tracing\.attempt.*not a function/],
    ["a misspelt part of tracing", { tracing: { enqueue() {}, attempts() {} } }, /tracing\.attempts .*did you mean attempt\?/],
    ["queue defaults that are an array", { queueDefaults: ["mail"] }, /queueDefaults.*not an object/],
    ["a misspelt default of a queue", { queueDefaults: { mail: { timeot: 1 } } }, /queueDefaults\.mail\.timeot .*did you mean timeout\?/],
  ])("%s", async (_, given, says) => {
    await expect(open("memory:", given as OpenOptions)).rejects.toMatchObject(refused(says));
  });
});

describe("task refuses", () => {
  test.each<Wrong>([
    ["a misspelt option", { retires: 3 }, /option t\.retires .*did you mean retry\?/],
    ["an option of jobs", { delay: "1s" }, /t\.delay/],
    ["an input that is no schema", { input: { cartId: "string" } }, /t\.input.*Standard Schema/],
    ["a word for at most once", { atMostOnce: "yes" }, /t\.atMostOnce/],
    ["options that are none", ["1m"], /the options of t/],
  ])("%s", (_, given, says) => {
    expect(() => task("t", given as TaskOptions, () => {})).toThrow(expect.objectContaining(refused(says)));
  });

  test("a handler that is none", () => {
    expect(() => task("t", {}, undefined as never)).toThrow(expect.objectContaining(refused(/t\.handler.*not a function/)));
  });

  test("nothing that is right", () => {
    const all = { queue: "q", priority: "high", retry: 1, timeout: 1, finishWithin: 1, startWithin: 1, maxCrashes: 1, atMostOnce: true } as const;
    expect(() => task("t", { ...all, input: z.string() }, () => {})).not.toThrow();
  });
});

describe("work refuses", () => {
  test.each<Wrong>([
    ["a misspelt option", { concurency: 3 }, /concurency .*did you mean concurrency\?/],
    ["no concurrency", { concurrency: 0 }, /concurrency/],
    ["middleware that is no function", { middleware: [async () => {}, 5] }, /middleware\[1\].*5 is not a function/],
    ["middleware that is no array", { middleware: () => {} }, /middleware.*a function is not an array/],
    ["concurrency of queues by another name", { concurrency: { queue: { mail: 1 } } }, /concurrency\.queue .*did you mean queues\?/],
    ["concurrency that is a text", { concurrency: "5" }, /concurrency.*"5" is neither a number nor \{ total, queues, tasks \}/],
    ["concurrency that is a list", { concurrency: [5] }, /concurrency.*neither a number nor/],
    ["a total of nothing", { concurrency: { total: 0 } }, /concurrency\.total/],
    ["concurrency of queues that is a number", { concurrency: { queues: 5 } }, /concurrency\.queues.*not an object/],
    ["a queue's concurrency that is a text", { concurrency: { queues: { mail: "2" } } }, /concurrency\.queues\.mail.*"2" is not a whole number/],
    ["concurrency of a task nobody registered", { concurrency: { tasks: { plane: 1 } } }, /no task is registered as "plane"/],
    ["slots, which concurrency has", { slots: { queues: { mail: 1 } } }, /there is no such option.*concurrency/],
    ["queues that are a text", { queues: "mail" }, /queues.*not an array/],
    ["a queue that is a number", { queues: [5] }, /queue/],
    ["tasks that are a text", { tasks: "plain" }, /tasks.*not an array/],
    ["a task nobody registered", { tasks: ["plane"] }, /plane/],
    ["a lease that is no time", { leaseDuration: "long" }, /leaseDuration "long" is not a duration/],
    ["a grace that is negative", { shutdownGrace: -1 }, /shutdownGrace -1 is not a duration/],
    ["no time between looks", { pollInterval: 0 }, /pollInterval/],
  ])("%s", async (_, given, says) => {
    await using world = await openTest({ tasks: [plain], work: false });
    await expect(world.pawl.work(given as WorkerOptions)).rejects.toMatchObject(refused(says));
  });
});

describe("an open pawl refuses", () => {
  test("listeners for what never happens, and names the event that was meant", async () => {
    await using world = await openTest();
    expect(() => world.pawl.on("attempt.setled" as "attempt.settled", () => {})).toThrow(
      expect.objectContaining(refused(/event.*"attempt\.setled" \(did you mean attempt\.settled\?\)/)),
    );
    expect(() => world.pawl.on("attempt.settled", undefined as never)).toThrow(expect.objectContaining(refused(/listener/)));
  });

  test.each<Wrong>([
    ["a misspelt option of a job", { retires: 3 }, /retires .*did you mean retry\?/],
    ["a trace that is a text", { trace: "00-1" }, /trace.*not an object/],
    ["a trace of another shape", { trace: { traceparent: "00-1" } }, /trace\.traceparent.*W3C Trace Context/],
    ["a misspelt unique rule", { unique: { key: "k", onconflict: "reject" } }, /unique\.onconflict .*did you mean onConflict\?/],
    ["a policy that is misspelt", { unique: { key: "k", onConflict: "existng" } }, /unique\.onConflict.*did you mean existing\?/],
  ])("%s", async (_, given, says) => {
    await using world = await openTest({ tasks: [plain], work: false });
    await expect(world.pawl.enqueue(plain, 1, given)).rejects.toMatchObject(refused(says));
  });

  test("options of many that are no functions, or answer with no options", async () => {
    await using world = await openTest({ tasks: [plain], work: false });
    const { pawl } = world;
    await expect(pawl.enqueueStream(plain, [1], { onChunk: 5 as never })).rejects.toMatchObject(refused(/onChunk.*not a function/));
    await expect(pawl.enqueueMany(plain, [1], { each: "key" as never })).rejects.toMatchObject(refused(/each.*not a function/));
    await expect(pawl.enqueueMany(plain, [1], { each: () => 5 as never })).rejects.toMatchObject(refused(/each answers.*not an object/));
  });

  test("a misspelt way to wait or to stop", async () => {
    await using world = await openTest({ tasks: [plain], work: false });
    const job = await world.pawl.enqueue(plain, 1);
    await expect(job.result({ signl: 5 } as object)).rejects.toMatchObject(refused(/signl .*did you mean signal\?/));
    await expect(job.result({ signal: {} as AbortSignal })).rejects.toMatchObject(refused(/signal.*AbortSignal/));
    const worker = await world.pawl.work();
    expect(() => worker.stop({ grase: 5 } as object)).toThrow(expect.objectContaining(refused(/grase .*did you mean grace\?/)));
  });

  test("a misspelt backoff", () => {
    expect(() => exponential({ retires: 3 } as object)).toThrow(expect.objectContaining(refused(/retry\.retires .*did you mean retries\?/)));
  });
});
