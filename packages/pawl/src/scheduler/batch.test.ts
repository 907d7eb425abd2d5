import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isPawlError, pawlError } from "../core/error.js";
import { faultyStore } from "../testing/faulty.js";
import { bareScheduler } from "../testing/scheduler.js";
import { task } from "../worker/task.js";
import type { BatchJob } from "./options.js";
import type { BatchAnswer } from "./scheduler.js";

const number = task("number", { input: z.number() }, () => {});
const slow = task("slow", { input: z.number().refine(async (n) => n < 10) }, () => {});
const tasks = [number, slow];

const told = (answers: readonly BatchAnswer[]) => answers.map((answer) => ("error" in answer ? answer.error.code : answer.enqueued));
const ids = (answers: readonly BatchAnswer[]) => answers.map((answer) => ("error" in answer ? undefined : answer.id));
const NOBODY = "01890000-0000-7000-8000-000000000000";
const LOST = pawlError("enqueue_unknown", { count: 2 });

describe("enqueueBatch", () => {
  test("stores jobs of several tasks in one step, each with its options, and answers in order", async () => {
    let steps = 0;
    const { scheduler } = bareScheduler({ tasks }, (inner) => faultyStore(inner, (operation) => void (operation === "jobs.enqueue" && steps++)));
    const { repeated, answers } = await scheduler.enqueueBatch([
      { task: number, input: 1 },
      { task: "slow", input: 2, options: { priority: 9, tags: ["t"] } },
      { task: "number", input: 3, options: { delay: "1h" } },
    ]);
    const views = await Promise.all(answers.map((answer) => ("error" in answer ? undefined : answer.get())));
    expect(views).toMatchObject([
      { task: "number", input: 1, state: "ready" },
      { task: "slow", input: 2, priority: 9, tags: ["t"] },
      { task: "number", input: 3, state: "scheduled" },
    ]);
    expect([repeated, steps]).toEqual([false, 1]);
  });

  test("what is wrong with one is its answer, and the others are stored", async () => {
    const { scheduler, records } = bareScheduler({ tasks });
    await scheduler.enqueue(number, 0, { key: "k" });
    const { answers } = await scheduler.enqueueBatch([
      { task: number, input: "one" },
      { task: "number", input: 1 },
      { task: "nobody's" },
      { task: slow, input: 11 },
      { task: number, input: 2, options: { delay: "?" } },
      { task: number, input: 3, options: { dependsOn: NOBODY } },
      { task: number, input: 4, options: { unique: { key: "k", onConflict: "reject" } } },
      { task: number, input: 5, options: { tx: {} } as object },
    ]);
    expect(told(answers)).toEqual([
      "input_invalid",
      "created",
      "task_unknown",
      "input_invalid",
      "duration_invalid",
      "dependency_unknown",
      "rejected",
      "option_invalid",
    ]);
    expect(await records()).toHaveLength(2);
  });

  test("with atomic it is thrown, and nothing is stored", async () => {
    const { scheduler, records } = bareScheduler({ tasks });
    const jobs: BatchJob[] = [
      { task: number, input: 1 },
      { task: slow, input: 11 },
    ];
    await expect(scheduler.enqueueBatch(jobs, { atomic: true })).rejects.toMatchObject({ code: "input_invalid", details: { place: 1 } });
    expect(await records()).toEqual([]);
    const late = [
      { task: number, input: 1 },
      { task: number, input: 2, options: { dependsOn: NOBODY } },
    ];
    await expect(scheduler.enqueueBatch(late, { atomic: true })).rejects.toMatchObject({ code: "dependency_unknown", details: { stored: 1 } });
  });

  test("repeated with its request id it is answered alike, stores nothing, and says so", async () => {
    const { scheduler, records, clock } = bareScheduler({ tasks });
    const jobs: BatchJob[] = [
      { task: number, input: 1 },
      { task: number, input: "two" },
      { task: slow, input: 3 },
    ];
    const first = await scheduler.enqueueBatch(jobs, { request: "r" });
    const again = await scheduler.enqueueBatch(jobs, { request: "r" });
    expect([first.repeated, again.repeated]).toEqual([false, true]);
    expect([told(again.answers), ids(again.answers)]).toEqual([told(first.answers), ids(first.answers)]);
    expect(await records()).toHaveLength(2);
    await expect(scheduler.enqueueBatch([{ task: number, input: 2 }], { request: "r" })).rejects.toMatchObject({ code: "request_reused" });
    await clock.advance(86_400_000);
    expect((await scheduler.enqueueBatch(jobs, { request: "r" })).repeated).toBe(false);
  });

  test("an answer that was lost is had by repeating it, and the error says with what", async () => {
    const { scheduler, records } = bareScheduler({ tasks }, (inner) =>
      faultyStore(inner, (operation, earlier) => (operation === "batches.enqueue" && earlier === 0 ? { kind: "lose", error: LOST } : undefined)),
    );
    const jobs = [
      { task: number, input: 1 },
      { task: number, input: 2 },
    ];
    await expect(scheduler.enqueueBatch(jobs, { request: "r" })).rejects.toMatchObject({ code: "enqueue_unknown", details: { request: "r" } });
    expect(await scheduler.enqueueBatch(jobs, { request: "r" })).toMatchObject({ repeated: true, answers: [{ enqueued: "created" }, {}] });
    expect(await records()).toHaveLength(2);
  });

  test("what an ingest limit turns away is that one's answer, the same when it is repeated, and stored is stored", async () => {
    const { scheduler, store, records } = bareScheduler({ tasks });
    await store.policies.put({ kind: "tenant", name: "flooded" }, { ingest: { rate: { limit: 1, per: 3_600_000, burst: 1 } } }, 0);
    const of = (tenant: string, input: number) => ({ task: number, input, options: { tenant } });
    const jobs = [of("flooded", 1), of("flooded", 2), of("calm", 3)];
    const first = await scheduler.enqueueBatch(jobs, { request: "r" });
    expect(told(first.answers)).toEqual(["created", "ingest_limited", "created"]);
    const again = await scheduler.enqueueBatch(jobs, { request: "r" });
    expect([again.repeated, told(again.answers), ids(again.answers)]).toEqual([true, told(first.answers), ids(first.answers)]);
    expect(await records()).toHaveLength(2);
    const whole = scheduler.enqueueBatch([of("flooded", 4), of("calm", 5)], { atomic: true, request: "other" });
    await expect(whole).rejects.toMatchObject({ code: "ingest_limited" });
    expect(await records()).toHaveLength(2);
  });

  test("a request id that was used for the jobs of other tenants is refused", async () => {
    const { scheduler, records } = bareScheduler({ tasks });
    const of = (...tenants: string[]) => tenants.map((tenant) => ({ task: number, input: 1, options: { tenant } }));
    await scheduler.enqueueBatch(of("acme", "umbrella"), { request: "r" });
    expect((await scheduler.enqueueBatch(of("acme", "umbrella"), { request: "r" })).repeated).toBe(true);
    for (const tenants of [
      ["acme", "acme"],
      ["umbrella", "acme"],
      ["default", "default"],
    ])
      await expect(scheduler.enqueueBatch(of(...tenants), { request: "r" })).rejects.toMatchObject({ code: "request_reused" });
    const each = (tenant: string) => ({ tenant });
    await scheduler.enqueueMany("number", [1], { request: "many" });
    await expect(scheduler.enqueueMany("number", [1], { request: "many", each: () => each("acme") })).rejects.toMatchObject({
      code: "request_reused",
    });
    expect(await records()).toHaveLength(3);
  });

  test("request ids are those of a tenant", async () => {
    const { scheduler } = bareScheduler({ tasks });
    const jobs = [{ task: number, input: 1 }];
    const [acme, umbrella] = ["acme", "umbrella"].map((tenant) => scheduler.as({ tenant }));
    expect((await acme?.enqueueBatch(jobs, { request: "r" }))?.repeated).toBe(false);
    expect((await umbrella?.enqueueBatch(jobs, { request: "r" }))?.repeated).toBe(false);
    expect((await acme?.enqueueBatch(jobs, { request: "r" }))?.repeated).toBe(true);
  });

  test.each([
    ["nothing", [], {}],
    ["too many", Array.from({ length: 1_001 }, () => ({ task: "number" })), {}],
    ["what is no array", { task: "number" }, {}],
    ["what is no job", ["number"], {}],
    ["a misspelt field", [{ task: "number", inputs: [1] }], {}],
    ["options that are none", [{ task: "number", options: 1 }], {}],
    ["a misspelt option", [{ task: "number" }], { requst: "r" }],
    ["atomic that is neither", [{ task: "number" }], { atomic: "yes" }],
    ["a request id that is none", [{ task: "number" }], { request: "" }],
  ])("refuses %s", async (_, jobs, options) => {
    const { scheduler, records } = bareScheduler({ tasks });
    const refused = await scheduler.enqueueBatch(jobs as never, options as never).catch((error: unknown) => error);
    expect(isPawlError(refused, "option_invalid") || isPawlError(refused, "name_invalid")).toBe(true);
    expect(await records()).toEqual([]);
  });
});

describe("enqueueMany with a request id", () => {
  const inputs = Array.from({ length: 2_500 }, (_, n) => n);

  test("repeated, it answers with the first jobs and stores nothing", async () => {
    const { scheduler, store } = bareScheduler({ tasks });
    const first = await scheduler.enqueueMany(number, inputs, { request: "r" });
    const again = await scheduler.enqueueMany(number, inputs, { request: "r" });
    expect(again.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    expect([first[0]?.enqueued, again[0]?.enqueued]).toEqual(["created", "existing"]);
    expect((await store.records.counts()).map(({ counts }) => counts.ready)).toEqual([2_500]);
    await expect(scheduler.enqueueMany(number, [1], { request: "r" })).rejects.toMatchObject({ code: "request_reused" });
  });

  test("after a failure half way it stores what was not stored, and only that", async () => {
    const full = pawlError("store_full", { reason: "no space" });
    const { scheduler, store } = bareScheduler({ tasks }, (inner) =>
      faultyStore(inner, (operation, earlier) => (operation === "batches.enqueue" && earlier === 1 ? { kind: "fail", error: full } : undefined)),
    );
    await expect(scheduler.enqueueMany(number, inputs, { request: "r" })).rejects.toMatchObject({ code: "store_full" });
    const summary = await scheduler.enqueueStream(number, inputs, { request: "r" });
    expect(summary).toMatchObject({ count: 2_500, created: expect.any(Number) });
    expect(summary.existing).toBeGreaterThanOrEqual(1_000);
    expect((await store.records.counts()).map(({ counts }) => counts.ready)).toEqual([2_500]);
  });

  test("a repetition is answered while an ingest limit lets nothing in", async () => {
    const { scheduler, store } = bareScheduler({ tasks });
    await store.policies.put({ kind: "tenant", name: "default" }, { ingest: { rate: { limit: 1, per: 3_600_000, burst: 1 } } }, 0);
    const first = await scheduler.enqueueMany(number, [1, 2], { request: "r" });
    expect((await scheduler.enqueueMany(number, [1, 2], { request: "r" })).map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    await expect(scheduler.enqueueMany(number, [1, 2], { request: "s" })).rejects.toMatchObject({ code: "ingest_limited" });
  });
});
