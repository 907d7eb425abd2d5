import { describe, expect, test } from "vitest";
import { z } from "zod";
import { task } from "../../core/jobs/task.js";
import { isPawlError, pawlError } from "../../core/values/error.js";
import { faultyStore } from "../../testing/faulty.js";
import { bareScheduler } from "../../testing/scheduler.js";
import type { EnqueueItem } from "../options.js";
import type { EnqueueAnswer } from "../scheduler.js";

const number = task("number", { input: z.number() }, () => {});
const slow = task("slow", { input: z.number().refine(async (n) => n < 10) }, () => {});
const tasks = [number, slow];

const outcomesOf = (answers: readonly EnqueueAnswer[]) => answers.map((answer) => ("error" in answer ? answer.error.code : answer.enqueued));
const ids = (answers: readonly EnqueueAnswer[]) => answers.map((answer) => ("error" in answer ? undefined : answer.id));
const NOBODY = "01890000-0000-7000-8000-000000000000";
const LOST = pawlError("enqueue_uncertain", { count: 2 });

describe("enqueueAll", () => {
  test("stores jobs of several tasks in one step, each with its options, and answers in order", async () => {
    let steps = 0;
    const { scheduler } = bareScheduler({ tasks }, (inner) => faultyStore(inner, (operation) => void (operation === "jobs.enqueue" && steps++)));
    const { repeated, results } = await scheduler.enqueueAll([
      { task: number, input: 1 },
      { task: "slow", input: 2, priority: 9, tags: ["t"] },
      { task: "number", input: 3, delay: "1h" },
    ]);
    const views = await Promise.all(results.map((answer) => ("error" in answer ? undefined : answer.get())));
    expect(views).toMatchObject([
      { task: "number", input: 1, state: "ready" },
      { task: "slow", input: 2, priority: 9, tags: ["t"] },
      { task: "number", input: 3, state: "scheduled" },
    ]);
    expect([repeated, steps]).toEqual([false, 1]);
  });

  test("what is wrong with one is its answer, and the others are stored", async () => {
    const { scheduler, records } = bareScheduler({ tasks });
    await scheduler.enqueue(number, 0, { unique: "k" });
    const { results } = await scheduler.enqueueAll([
      { task: number, input: "one" },
      { task: "number", input: 1 },
      { task: "nobody's" },
      { task: slow, input: 11 },
      { task: number, input: 2, delay: "?" },
      { task: number, input: 3, dependsOn: NOBODY },
      { task: number, input: 4, unique: { key: "k", onConflict: "reject" } },
      { task: number, input: 5, tx: {} } as EnqueueItem,
    ]);
    expect(outcomesOf(results)).toEqual([
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
    const jobs: EnqueueItem[] = [
      { task: number, input: 1 },
      { task: slow, input: 11 },
    ];
    await expect(scheduler.enqueueAll(jobs, { atomic: true })).rejects.toMatchObject({ code: "input_invalid", details: { index: 1 } });
    expect(await records()).toEqual([]);
    const late = [
      { task: number, input: 1 },
      { task: number, input: 2, dependsOn: NOBODY },
    ];
    await expect(scheduler.enqueueAll(late, { atomic: true })).rejects.toMatchObject({ code: "dependency_unknown", details: { stored: 1 } });
  });

  test("repeated with its idempotency key it is answered alike, stores nothing, and says so", async () => {
    const { scheduler, records, clock } = bareScheduler({ tasks });
    const jobs: EnqueueItem[] = [
      { task: number, input: 1 },
      { task: number, input: "two" },
      { task: slow, input: 3 },
    ];
    const first = await scheduler.enqueueAll(jobs, { idempotencyKey: "r" });
    const again = await scheduler.enqueueAll(jobs, { idempotencyKey: "r" });
    expect([first.repeated, again.repeated]).toEqual([false, true]);
    expect([outcomesOf(again.results), ids(again.results)]).toEqual([outcomesOf(first.results), ids(first.results)]);
    expect(await records()).toHaveLength(2);
    await expect(scheduler.enqueueAll([{ task: number, input: 2 }], { idempotencyKey: "r" })).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
    await clock.advance(86_400_000);
    expect((await scheduler.enqueueAll(jobs, { idempotencyKey: "r" })).repeated).toBe(false);
  });

  test("an answer that was lost is had by repeating it, and the error says with what", async () => {
    const { scheduler, records } = bareScheduler({ tasks }, (inner) =>
      faultyStore(inner, (operation, earlier) => (operation === "batches.enqueue" && earlier === 0 ? { kind: "lose", error: LOST } : undefined)),
    );
    const jobs = [
      { task: number, input: 1 },
      { task: number, input: 2 },
    ];
    await expect(scheduler.enqueueAll(jobs, { idempotencyKey: "r" })).rejects.toMatchObject({
      code: "enqueue_uncertain",
      details: { idempotencyKey: "r" },
    });
    expect(await scheduler.enqueueAll(jobs, { idempotencyKey: "r" })).toMatchObject({ repeated: true, results: [{ enqueued: "created" }, {}] });
    expect(await records()).toHaveLength(2);
  });

  test("what an ingest limit turns away is that one's answer, the same when it is repeated, and stored is stored", async () => {
    const { scheduler, store, records } = bareScheduler({ tasks });
    await store.policies.put({ kind: "tenant", name: "flooded" }, { ingest: { rate: { limit: 1, per: 3_600_000, burst: 1 } } }, 0);
    const of = (tenant: string, input: number) => ({ task: number, input, tenant });
    const jobs = [of("flooded", 1), of("flooded", 2), of("calm", 3)];
    const first = await scheduler.enqueueAll(jobs, { idempotencyKey: "r" });
    expect(outcomesOf(first.results)).toEqual(["created", "ingest_limited", "created"]);
    const again = await scheduler.enqueueAll(jobs, { idempotencyKey: "r" });
    expect([again.repeated, outcomesOf(again.results), ids(again.results)]).toEqual([true, outcomesOf(first.results), ids(first.results)]);
    expect(await records()).toHaveLength(2);
    const whole = scheduler.enqueueAll([of("flooded", 4), of("calm", 5)], { atomic: true, idempotencyKey: "other" });
    await expect(whole).rejects.toMatchObject({ code: "ingest_limited" });
    expect(await records()).toHaveLength(2);
  });

  test("an idempotency key that was used for the jobs of other tenants is refused", async () => {
    const { scheduler, records } = bareScheduler({ tasks });
    const of = (...tenants: string[]) => tenants.map((tenant) => ({ task: number, input: 1, tenant }));
    await scheduler.enqueueAll(of("acme", "umbrella"), { idempotencyKey: "r" });
    expect((await scheduler.enqueueAll(of("acme", "umbrella"), { idempotencyKey: "r" })).repeated).toBe(true);
    for (const tenants of [
      ["acme", "acme"],
      ["umbrella", "acme"],
      ["default", "default"],
    ])
      await expect(scheduler.enqueueAll(of(...tenants), { idempotencyKey: "r" })).rejects.toMatchObject({ code: "idempotency_key_reused" });
    const each = (tenant: string) => ({ tenant });
    await scheduler.enqueueMany("number", [1], { idempotencyKey: "many" });
    await expect(scheduler.enqueueMany("number", [1], { idempotencyKey: "many", each: () => each("acme") })).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
    expect(await records()).toHaveLength(3);
  });

  test("idempotency keys are those of a tenant", async () => {
    const { scheduler } = bareScheduler({ tasks });
    const jobs = [{ task: number, input: 1 }];
    const [acme, umbrella] = ["acme", "umbrella"].map((tenant) => scheduler.forTenant(tenant));
    expect((await acme?.enqueueAll(jobs, { idempotencyKey: "r" }))?.repeated).toBe(false);
    expect((await umbrella?.enqueueAll(jobs, { idempotencyKey: "r" }))?.repeated).toBe(false);
    expect((await acme?.enqueueAll(jobs, { idempotencyKey: "r" }))?.repeated).toBe(true);
  });

  test.each([
    ["nothing", [], {}],
    ["too many", Array.from({ length: 1_001 }, () => ({ task: "number" })), {}],
    ["what is no array", { task: "number" }, {}],
    ["what is no job", ["number"], {}],
    ["a misspelt field", [{ task: "number", inputs: [1] }], {}],
    ["options that are none", [{ task: "number", options: 1 }], {}],
    ["options that are not beside the task", [{ task: "number", input: 1, options: { delay: "1h" } }], {}],
    ["an option of earlier versions", [{ task: "number", input: 1, key: "k" }], {}],
    ["a misspelt option", [{ task: "number" }], { requst: "r" }],
    ["atomic that is neither", [{ task: "number" }], { atomic: "yes" }],
    ["an idempotency key that is none", [{ task: "number" }], { idempotencyKey: "" }],
  ])("refuses %s", async (_, jobs, options) => {
    const { scheduler, records } = bareScheduler({ tasks });
    const refused = await scheduler.enqueueAll(jobs as never, options as never).catch((error: unknown) => error);
    expect(isPawlError(refused, "option_invalid") || isPawlError(refused, "name_invalid")).toBe(true);
    expect(await records()).toEqual([]);
  });
});

describe("enqueueMany with an idempotency key", () => {
  const inputs = Array.from({ length: 2_500 }, (_, n) => n);

  test("repeated, it answers with the first jobs and stores nothing", async () => {
    const { scheduler, store } = bareScheduler({ tasks });
    const first = await scheduler.enqueueMany(number, inputs, { idempotencyKey: "r" });
    const again = await scheduler.enqueueMany(number, inputs, { idempotencyKey: "r" });
    expect(again.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    expect([first[0]?.enqueued, again[0]?.enqueued]).toEqual(["created", "existing"]);
    expect((await store.records.counts()).map(({ counts }) => counts.ready)).toEqual([2_500]);
    await expect(scheduler.enqueueMany(number, [1], { idempotencyKey: "r" })).rejects.toMatchObject({ code: "idempotency_key_reused" });
  });

  test("after a failure half way it stores what was not stored, and only that", async () => {
    const full = pawlError("store_full", { reason: "no space" });
    const { scheduler, store } = bareScheduler({ tasks }, (inner) =>
      faultyStore(inner, (operation, earlier) => (operation === "batches.enqueue" && earlier === 1 ? { kind: "fail", error: full } : undefined)),
    );
    await expect(scheduler.enqueueMany(number, inputs, { idempotencyKey: "r" })).rejects.toMatchObject({ code: "store_full" });
    const summary = await scheduler.enqueueStream(number, inputs, { idempotencyKey: "r" });
    expect(summary).toMatchObject({ count: 2_500, created: expect.any(Number) });
    expect(summary.existing).toBeGreaterThanOrEqual(1_000);
    expect((await store.records.counts()).map(({ counts }) => counts.ready)).toEqual([2_500]);
  });

  test("a repetition is answered while an ingest limit lets nothing in", async () => {
    const { scheduler, store } = bareScheduler({ tasks });
    await store.policies.put({ kind: "tenant", name: "default" }, { ingest: { rate: { limit: 1, per: 3_600_000, burst: 1 } } }, 0);
    const first = await scheduler.enqueueMany(number, [1, 2], { idempotencyKey: "r" });
    expect((await scheduler.enqueueMany(number, [1, 2], { idempotencyKey: "r" })).map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    await expect(scheduler.enqueueMany(number, [1, 2], { idempotencyKey: "s" })).rejects.toMatchObject({ code: "ingest_limited" });
  });
});
