import { describe, expect, test } from "vitest";
import { z } from "zod";
import { failure } from "../../core/jobs/failure.js";
import { task } from "../../core/jobs/task.js";
import { bareScheduler } from "../../testing/scheduler.js";
import type { Jobs } from "../scheduler.js";

const mail = task("mail", { input: z.object({ to: z.string() }), queue: "post" }, () => {});
const died = { kind: "failed", failure: failure("error", "no such address"), retryable: false } as const;
const done = { kind: "succeeded", output: '{"sent":true}' } as const;

describe("a view of a job", () => {
  test("has its lane, its options, its values decoded and its times as dates", async () => {
    const { scheduler, clock } = bareScheduler({ tasks: [mail] });
    const job = await scheduler.enqueue(
      mail,
      { to: "ann" },
      { priority: "high", tenant: "acme", tags: ["a"], unique: "k", delay: "1h", timeout: "5s" },
    );
    const due = new Date(clock.now() + 3_600_000);
    expect(await job.get()).toEqual({
      id: job.id,
      task: "mail",
      queue: "post",
      priority: 7,
      tenant: "acme",
      state: "scheduled",
      input: { to: "ann" },
      createdAt: new Date(clock.now()),
      dueAt: due,
      nextRunAt: due,
      attempts: 0,
      crashes: 0,
      tags: ["a"],
      uniqueKey: "k",
      atMostOnce: false,
      timeout: 5_000,
    });
  });

  test("has the output of one that succeeded, and the history says how", async () => {
    const { scheduler, attempt } = bareScheduler();
    const job = await scheduler.enqueue("t");
    await attempt(done);
    expect(await job.get()).toMatchObject({ state: "succeeded", output: { sent: true }, attempts: 1, finishedAt: expect.any(Date) });
    expect((await job.history()).items).toMatchObject([
      { outcome: "succeeded", worker: "test", next: "succeeded", output: { sent: true }, duration: 0 },
    ]);
    expect((await job.logs()).items).toEqual([]);
  });
});

describe("an id", () => {
  const verbs: readonly Exclude<keyof Jobs, "list" | "count" | "bulk" | "restore">[] = [
    "get",
    "history",
    "logs",
    "cancel",
    "pause",
    "resume",
    "promote",
    "redrive",
    "rerun",
    "delete",
    "wait",
    "result",
  ];

  test.each(verbs)("that is nobody's, malformed or no text at all is unknown to %s", async (verb) => {
    const { scheduler } = bareScheduler();
    for (const id of ["01890000-0000-7000-8000-000000000000", "42", "'; drop table job", "", null, undefined, {}]) {
      await expect(scheduler.jobs[verb](id as string)).rejects.toMatchObject({ code: "job_unknown" });
    }
  });

  test("may be in capitals", async () => {
    const { scheduler } = bareScheduler();
    const { id } = await scheduler.enqueue("t");
    expect(await scheduler.jobs.get(id.toUpperCase())).toMatchObject({ id });
  });
});

describe("verbs", () => {
  test("answer with the change", async () => {
    const { scheduler } = bareScheduler();
    const job = await scheduler.enqueue("t", 1, { delay: "1h" });
    expect(await job.pause()).toEqual({ from: "scheduled", to: "parked" });
    expect(await job.resume()).toEqual({ from: "parked", to: "scheduled" });
    expect(await job.promote()).toEqual({ from: "scheduled", to: "ready" });
    expect(await job.cancel("changed my mind")).toEqual({ from: "ready", to: "cancelled" });
    expect((await job.get()).failure?.message).toBe("changed my mind");
    expect(await job.delete()).toBeUndefined();
    await expect(job.get()).rejects.toMatchObject({ code: "job_unknown" });
  });

  test("that do not apply are refused with the state", async () => {
    const { scheduler } = bareScheduler();
    const job = await scheduler.enqueue("t");
    for (const verb of ["resume", "promote", "redrive", "delete", "rerun"] as const) {
      await expect(scheduler.jobs[verb](job)).rejects.toMatchObject({ code: "job_state_conflict", details: { state: "ready", verb } });
    }
  });

  test.each(["", "a\u0000b", "\ud800", 7])("cancel refuses the reason %j", async (reason) => {
    const { scheduler } = bareScheduler();
    const job = await scheduler.enqueue("t");
    await expect(job.cancel(reason as string)).rejects.toMatchObject({ code: "option_invalid" });
    expect(await job.get()).toMatchObject({ state: "ready" });
  });
});

describe("redrive", () => {
  test("runs a dead job again, with another input if asked", async () => {
    const { scheduler, attempt } = bareScheduler({ tasks: [mail] });
    const job = await scheduler.enqueue(mail, { to: "nobody" });
    await attempt(died);
    expect(await job.get()).toMatchObject({ state: "dead", failure: { message: "no such address" } });
    expect(await job.redrive({ input: { to: "ann" }, delay: "1m" })).toEqual({ from: "dead", to: "scheduled" });
    expect(await job.get()).toMatchObject({ input: { to: "ann" }, attempts: 0 });
  });

  test("checks the new input like any other, and leaves the job as it was", async () => {
    const { scheduler, attempt } = bareScheduler({ tasks: [mail] });
    const job = await scheduler.enqueue(mail, { to: "nobody" });
    await attempt(died);
    await expect(job.redrive({ input: { to: 7 } })).rejects.toMatchObject({ code: "input_invalid" });
    await expect(job.redrive({ delay: -1 })).rejects.toMatchObject({ code: "duration_invalid" });
    await expect(job.redrive({ inputt: 1 } as object)).rejects.toMatchObject({ code: "option_invalid" });
    expect(await job.get()).toMatchObject({ state: "dead", input: { to: "nobody" } });
  });
});

describe("rerun", () => {
  test("makes a new job like the finished one, which keeps its key", async () => {
    const { scheduler, attempt } = bareScheduler({ tasks: [mail] });
    const job = await scheduler.enqueue(mail, { to: "ann" }, { priority: 8, tenant: "acme", unique: "k", tags: ["x"], retry: 1 });
    await attempt(done);
    const again = await scheduler.jobs.rerun(job);
    expect(again.id).not.toBe(job.id);
    const view = await again.get();
    expect(view).toMatchObject({
      state: "ready",
      rerunOf: job.id,
      input: { to: "ann" },
      queue: "post",
      priority: 8,
      tenant: "acme",
      tags: ["x"],
      retry: 1,
    });
    expect(view).not.toHaveProperty("uniqueKey");
  });
});

describe("list", () => {
  test("pages from the newest due time on, by filter", async () => {
    const { scheduler, clock } = bareScheduler();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      clock.leap(1);
      ids.unshift((await scheduler.enqueue(i % 2 === 0 ? "even" : "odd", i)).id);
    }
    const first = await scheduler.jobs.list({}, { limit: 2 });
    expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const second = await scheduler.jobs.list({}, { limit: 2, cursor: first.next as string });
    expect(second.items.map(({ id }) => id)).toEqual(ids.slice(2, 4));
    const every: unknown[] = [];
    for await (const { id } of scheduler.jobs.list({}, { limit: 2 })) every.push(id);
    expect(every, "iterated, the list goes on page by page").toEqual(ids);
    expect((await scheduler.jobs.list({ task: "odd" })).items.map(({ input }) => input)).toEqual([3, 1]);
  });

  test.each([
    [{ stat: "dead" }, {}, "option_invalid", /filter\.stat/],
    [{ state: "waiting" }, {}, "option_invalid", /filter\.state.*waiting/],
    [{ queue: "" }, {}, "name_invalid", /queue/],
    [{}, { limit: 0 }, "option_invalid", /page\.limit/],
    [{}, { limit: 1e9 }, "option_invalid", /page\.limit/],
    [{}, { after: "x" }, "option_invalid", /page\.after/],
    [{}, { cursor: "x" }, "option_invalid", /page\.cursor/],
    [{}, { cursor: 7 }, "option_invalid", /page\.cursor/],
    [{}, { size: 1 }, "option_invalid", /page\.size/],
    [null, {}, "option_invalid", /filter/],
  ])("refuses the filter %o and page %o", async (filter, page, code, says) => {
    const { scheduler } = bareScheduler();
    await expect(scheduler.jobs.list(filter as object, page as object)).rejects.toMatchObject({ code, message: expect.stringMatching(says) });
  });
});
