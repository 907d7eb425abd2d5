import { isPawlError, task } from "pawl";
import { expect, test } from "vitest";
import { z } from "zod";
import { describeBoth } from "./local-and-remote.js";

const UNKNOWN = "0197a0c0-7d1e-7000-8000-000000000000";

describeBoth("a scheduler", (opening) => {
  test("stores a job and shows it as it is", async () => {
    const { pawl } = await opening();
    const job = await pawl.enqueue("mail", { to: "ann" }, { priority: "high", tags: ["a"], delay: "1h", unique: "k" });
    expect(job).toMatchObject({ task: "mail", enqueued: "created" });
    const view = await job.get();
    expect(view).toMatchObject({
      id: job.id,
      task: "mail",
      queue: "default",
      priority: 7,
      tenant: "default",
      state: "scheduled",
      input: { to: "ann" },
      tags: ["a"],
      uniqueKey: "k",
    });
    expect(view.dueAt).toBeInstanceOf(Date);
    expect(view.nextRunAt?.getTime()).toBe(view.dueAt.getTime());
    expect(await pawl.jobs.list({ task: "mail" })).toMatchObject({ items: [{ id: job.id }] });
    expect((await job.history()).items).toEqual([]);
    expect((await job.logs()).items).toEqual([]);
    expect(await job.explain()).toMatchObject({ job: job.id, state: "scheduled", text: expect.stringContaining("") });
  });

  test("keeps the trace that a job is enqueued in, alone, among others and of many", async () => {
    const { pawl } = await opening();
    const trace = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "vendor=1" };
    const alone = await pawl.enqueue("mail", 1, { trace });
    const together = await Promise.all([pawl.enqueue("mail", 2, { trace }), pawl.enqueue("mail", 3)]);
    const many = await pawl.enqueueMany("mail", [4, 5], { trace });
    const views = await Promise.all([alone, ...together, ...many].map((job) => job.get()));
    expect(views.map((view) => view.trace)).toEqual([trace, trace, undefined, trace, trace]);
    await expect(pawl.enqueue("mail", 6, { trace: { traceparent: "00-0-0-01" } })).rejects.toMatchObject({ code: "option_invalid" });
  });

  test("answers a second enqueue of a key with the first job, or refuses it", async () => {
    const { pawl } = await opening();
    const first = await pawl.enqueue("mail", 1, { unique: "k" });
    expect(await pawl.enqueue("mail", 2, { unique: "k" })).toMatchObject({ id: first.id, enqueued: "existing" });
    const refused = await pawl.enqueue("mail", 3, { unique: { key: "k", onConflict: "reject" } }).catch((error: unknown) => error);
    expect(isPawlError(refused, "unique_key_taken") && refused.details).toMatchObject({ key: "k", task: "mail", job: first.id });
  });

  test("stores the jobs of one turn together, and tells each caller its own error", async () => {
    const { pawl } = await opening();
    await pawl.enqueue("mail", 0, { unique: "k" });
    const answers = await Promise.allSettled([
      pawl.enqueue("mail", 1),
      pawl.enqueue("mail", 2, { unique: { key: "k", onConflict: "reject" } }),
      pawl.enqueue("mail", 3),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(answers[1]).toMatchObject({ reason: { code: "unique_key_taken" } });
    expect((await pawl.jobs.list()).items).toHaveLength(3);
  });

  test("stores many in order, each with options of its own", async () => {
    const { pawl } = await opening();
    const jobs = await pawl.enqueueMany("mail", [10, 20, 30], { priority: 9, each: (input) => (input === 20 ? { tags: ["twenty"] } : undefined) });
    const views = await Promise.all(jobs.map((job) => job.get()));
    expect(views.map(({ input, priority, tags }) => [input, priority, tags])).toEqual([
      [10, 9, []],
      [20, 9, ["twenty"]],
      [30, 9, []],
    ]);
  });

  test("stores a batch of several tasks in one step, and answers for each", async () => {
    const { pawl } = await opening();
    const held = await pawl.enqueue("mail", 0, { unique: "k" });
    const jobs = [
      { task: "mail", input: 1, priority: 9 },
      { task: "report", input: 2, delay: "?" },
      { task: "report", input: 3, dependsOn: UNKNOWN },
      { task: "mail", input: 4, unique: { key: "k", onConflict: "reject" } },
    ] as const;
    const { repeated, results } = await pawl.enqueueAll(jobs as never);
    expect(results.map((answer) => ("error" in answer ? answer.error.code : [answer.task, answer.enqueued]))).toEqual([
      ["mail", "created"],
      "duration_invalid",
      "dependency_unknown",
      ["mail", "rejected"],
    ]);
    expect([repeated, results[3]]).toMatchObject([false, { id: held.id }]);
    await expect(pawl.enqueueAll(jobs as never, { atomic: true })).rejects.toMatchObject({ code: "duration_invalid" });
    await expect(pawl.enqueueAll([])).rejects.toMatchObject({ code: "option_invalid" });
  });

  test("answers many and a batch that are repeated with their idempotency key by their first jobs", async () => {
    const { pawl } = await opening();
    const inputs = Array.from({ length: 1_200 }, (_, n) => n);
    const [first, again] = [
      await pawl.enqueueMany("mail", inputs, { idempotencyKey: "r" }),
      await pawl.enqueueMany("mail", inputs, { idempotencyKey: "r" }),
    ];
    expect(again.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    expect([first, again].map(([job]) => job?.enqueued)).toEqual(["created", "existing"]);
    const batch = [{ task: "mail", input: 1 }];
    const once = await pawl.enqueueAll(batch, { idempotencyKey: "b" });
    const twice = await pawl.enqueueAll(batch, { idempotencyKey: "b" });
    expect(twice).toMatchObject({ repeated: true, results: [{ enqueued: "created", id: (once.results[0] as { id: string }).id }] });
    await expect(pawl.enqueueAll([{ task: "mail", input: 2 }], { idempotencyKey: "b" })).rejects.toMatchObject({ code: "idempotency_key_reused" });
    expect(await pawl.counts({ task: "mail" })).toMatchObject({ ready: 1_201 });
  });

  test("refuses an idempotency key that was used for another task or input, of one job, of many, of a batch and of a schedule", async () => {
    const { pawl } = await opening();
    const first = await pawl.enqueue("mail", { to: "ann" }, { idempotencyKey: "r" });
    expect(await pawl.enqueue("mail", { to: "ann" }, { idempotencyKey: "r", delay: "1h" })).toMatchObject({ id: first.id, enqueued: "existing" });
    const reused = { code: "idempotency_key_reused", details: { idempotencyKey: "r" } };
    await expect(pawl.enqueue("charge", { to: "ann" }, { idempotencyKey: "r" })).rejects.toMatchObject(reused);
    await expect(pawl.enqueue("mail", { to: "bob" }, { idempotencyKey: "r" })).rejects.toMatchObject(reused);
    const together = await Promise.allSettled([
      pawl.enqueue("mail", 1),
      pawl.enqueue("charge", { to: "ann" }, { idempotencyKey: "r" }),
      pawl.enqueue("mail", { to: "ann" }, { idempotencyKey: "r" }),
    ]);
    expect(together).toMatchObject([{ status: "fulfilled" }, { reason: reused }, { value: { id: first.id, enqueued: "existing" } }]);
    const each = (_: unknown, index: number) => (index === 1 ? { idempotencyKey: "r" } : undefined);
    await expect(pawl.enqueueMany("mail", [2, 3], { each })).rejects.toMatchObject({ ...reused, details: { idempotencyKey: "r", stored: 1 } });
    const batch = await pawl.enqueueAll([
      { task: "mail", input: 4 },
      { task: "charge", idempotencyKey: "r" },
    ]);
    expect(batch.results).toMatchObject([{ enqueued: "created" }, { error: reused }]);
    await pawl.schedules.put("nightly", "mail", { every: "1d", input: { to: "all" } });
    await expect(pawl.schedules.trigger("nightly", { idempotencyKey: "r" })).rejects.toMatchObject(reused);
    const triggered = await pawl.schedules.trigger("nightly", { idempotencyKey: "t" });
    expect(await pawl.schedules.trigger("nightly", { idempotencyKey: "t" })).toMatchObject({ id: triggered.id, enqueued: "existing" });
    await expect(pawl.schedules.trigger("nightly", { idempotencyKey: "t", input: 1 })).rejects.toMatchObject({ code: "idempotency_key_reused" });
    expect(await pawl.counts({ task: "charge" })).toMatchObject({ ready: 0, scheduled: 0 });
  });

  test("stores nothing of a call for many whose idempotency key was used for other inputs", async () => {
    const { pawl } = await opening();
    await pawl.enqueueMany("mail", [1, 2], { idempotencyKey: "r" });
    const others = Array.from({ length: 2_500 }, (_, n) => ({ n }));
    await expect(pawl.enqueueMany("mail", others, { idempotencyKey: "r" })).rejects.toMatchObject({
      code: "idempotency_key_reused",
      details: { idempotencyKey: "r", stored: 0 },
    });
    await expect(pawl.enqueueStream("mail", others, { idempotencyKey: "r" })).rejects.toMatchObject({
      code: "idempotency_key_reused",
      details: { idempotencyKey: "r", stored: 0 },
    });
    expect(await pawl.counts({ task: "mail" })).toMatchObject({ ready: 2 });
  });

  test("stores what a stream yields, and counts it", async () => {
    const { pawl } = await opening();
    async function* inputs() {
      for (let n = 0; n < 2_500; n++) yield n;
    }
    const seen: number[] = [];
    const summary = await pawl.enqueueStream("mail", inputs(), { onChunk: ({ count }) => seen.push(count) });
    expect(summary).toEqual({ count: 2_500, created: 2_500, existing: 0, rejected: 0, dependencyUnknown: 0, idempotencyKeyReused: 0 });
    expect(seen).toHaveLength(3);
    expect(await pawl.counts({ task: "mail" })).toMatchObject({ ready: 2_500 });
  });

  test("applies verbs to jobs, and refuses those that do not apply", async () => {
    const { pawl } = await opening();
    const job = await pawl.enqueue("mail", 1, { delay: "1h" });
    expect(await job.pause()).toEqual({ from: "scheduled", to: "parked" });
    expect(await job.resume()).toMatchObject({ from: "parked" });
    expect(await job.promote()).toEqual({ from: "scheduled", to: "ready" });
    expect(await job.cancel("not needed")).toEqual({ from: "ready", to: "cancelled" });
    expect(await job.get()).toMatchObject({ state: "cancelled", failure: { message: "not needed" } });
    const error = await job.cancel().catch((refused: unknown) => refused);
    expect(error).toMatchObject({ code: "job_state_conflict", details: { job: job.id, state: "cancelled", verb: "cancel" } });
    const again = await pawl.jobs.rerun(job);
    expect(await again.get()).toMatchObject({ state: "ready", rerunOf: job.id });
    expect(await job.delete()).toBeUndefined();
    await expect(job.get()).rejects.toMatchObject({ code: "job_unknown" });
  });

  test("says of ids that are nobody's, and of those that are none, that it knows no such job", async () => {
    const { pawl } = await opening();
    for (const id of [UNKNOWN, "what", "../jobs"]) {
      await expect(pawl.jobs.get(id)).rejects.toMatchObject({ code: "job_unknown" });
      await expect(pawl.jobs.cancel(id)).rejects.toMatchObject({ code: "job_unknown" });
      await expect(pawl.jobs.wait(id, 100)).rejects.toMatchObject({ code: "job_unknown" });
    }
  });

  test("keeps tenants apart", async () => {
    const { pawl } = await opening();
    const [ours, theirs] = [pawl.forTenant("ours"), pawl.forTenant("theirs")];
    const job = await ours.enqueue("mail", 1);
    expect(await ours.jobs.get(job)).toMatchObject({ tenant: "ours" });
    await expect(theirs.jobs.get(job.id)).rejects.toMatchObject({ code: "job_unknown" });
    await expect(theirs.jobs.cancel(job.id)).rejects.toMatchObject({ code: "job_unknown" });
    expect((await theirs.jobs.list()).items).toEqual([]);
    expect((await ours.jobs.list()).items).toHaveLength(1);
    await expect(ours.enqueue("mail", 1, { tenant: "theirs" })).rejects.toMatchObject({ code: "option_invalid" });
    expect(() => ours.forTenant("theirs")).toThrow(/acts for/);
  });

  test.each([
    ["an option that does not exist", { prioritty: 1 }, "option_invalid"],
    ["a priority that is none", { priority: 11 }, "option_invalid"],
    ["a duration that is none", { delay: "soon" }, "duration_invalid"],
    ["a queue with a control character", { queue: "a\u0001" }, "name_invalid"],
    ["two ways to be the only one", { unique: "a", debounce: { key: "b", wait: "1s" } }, "option_invalid"],
    ["a parent that is no job", { dependsOn: "x" }, "option_invalid"],
  ])("refuses %s", async (_, options, code) => {
    const { pawl } = await opening();
    await expect(pawl.enqueue("mail", 1, options as object)).rejects.toMatchObject({ code });
    await expect(pawl.enqueueMany("mail", [1], { each: () => options as object })).rejects.toMatchObject({ code });
    expect((await pawl.jobs.list()).items).toEqual([]);
  });

  test("refuses inputs that are no JSON, or do not match the schema of their task, with the path", async () => {
    const mail = task("mail", { input: z.object({ to: z.string() }) }, () => {});
    const { pawl } = await opening([mail]);
    await expect(pawl.enqueue(mail, { to: 1 } as never)).rejects.toMatchObject({ code: "input_invalid", message: expect.stringContaining("to") });
    await expect(pawl.enqueue(mail, { to: 10n } as never)).rejects.toMatchObject({ code: "input_unencodable" });
    await expect(pawl.enqueue("other", 1)).rejects.toMatchObject({ code: "task_unknown" });
  });

  test("lets dependents wait, and says which parent does not exist", async () => {
    const { pawl } = await opening();
    const parent = await pawl.enqueue("mail");
    const child = await pawl.enqueue("mail", 2, { dependsOn: parent });
    expect(await child.get()).toMatchObject({ state: "blocked", waitsFor: [parent.id] });
    await expect(pawl.enqueue("mail", 3, { dependsOn: UNKNOWN })).rejects.toMatchObject({ code: "dependency_unknown" });
  });

  test("calls a task: stores its job with its options, waits, and answers with the output", async () => {
    const double = task("double", (n: number) => n * 2);
    const { pawl } = await opening([double]);
    await pawl.work();
    expect(await pawl.call(double, 21, { wait: "30s", priority: 9 })).toBe(42);
    expect(await pawl.call("double", 4)).toBe(8);
    const first = await pawl.enqueue(double, 5, { unique: "five", delay: 100 });
    expect(await pawl.call(double, 6, { unique: "five" }), "the output of the job that has the key").toBe(10);
    expect(await first.get()).toMatchObject({ state: "succeeded" });
  });

  test("a call throws what its job failed of", async () => {
    const fails = task("fails", { retry: 0 }, () => {
      throw new Error("no");
    });
    const { pawl } = await opening([fails]);
    await pawl.work();
    await expect(pawl.call(fails)).rejects.toMatchObject({ code: "job_failed", details: { state: "dead", reason: "no" } });
  });

  test("a call whose wait is over, or is ended by its signal, leaves its job to go on, and says which it is", async () => {
    const { pawl } = await opening();
    const late = await pawl.call("mail", 1, { wait: 50 }).catch((error: unknown) => error);
    if (!isPawlError(late, "wait_timeout")) throw late;
    expect(await pawl.jobs.get(late.details.job as string)).toMatchObject({ state: "ready", input: 1 });
    const gone = new AbortController();
    const waiting = pawl.call("mail", 2, { signal: gone.signal });
    gone.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow(/enough|abort/i);
    await expect.poll(async () => (await pawl.counts({ task: "mail" })).ready).toBe(2);
  });

  test.each([
    ["a wait that is none", { wait: "soon" }, "duration_invalid"],
    ["a signal that is none", { signal: {} }, "option_invalid"],
    ["a transaction, before whose commit nobody could run the job", { tx: { query: async () => ({ rows: [] }) } }, "option_invalid"],
    ["an option that does not exist", { waitt: "1s" }, "option_invalid"],
    ["options that are none", 7, "option_invalid"],
  ])("a call with %s stores nothing", async (_, options, code) => {
    const { pawl } = await opening();
    await expect(pawl.call("mail", 1, options as object)).rejects.toMatchObject({ code });
    await expect(pawl.call("mail", 1, { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
    expect(await pawl.counts({ task: "mail" })).toMatchObject({ ready: 0 });
  });

  test("gives up waiting after its timeout, or when it is told to", async () => {
    const { pawl } = await opening();
    const job = await pawl.enqueue("mail");
    await expect(job.result(50)).rejects.toMatchObject({ code: "wait_timeout" });
    const gone = new AbortController();
    const waiting = job.result({ signal: gone.signal });
    gone.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow(/enough|abort/i);
  });

  test("keeps schedules: puts, changes, previews, triggers and removes them", async () => {
    const { pawl } = await opening();
    expect(await pawl.schedules.put("nightly", "report", { cron: "0 3 * * *", timeZone: "Europe/Berlin", missed: "skip" })).toBe("created");
    expect(await pawl.schedules.put("nightly", "report", { cron: "0 3 * * *", timeZone: "Europe/Berlin", missed: "skip" })).toBe("unchanged");
    expect(await pawl.schedules.update("nightly", { cron: "0 4 * * *" })).toBe("changed");
    const view = await pawl.schedules.get("nightly");
    expect(view).toMatchObject({ name: "nightly", task: "report", cron: "0 4 * * *", timeZone: "Europe/Berlin" });
    expect(view.next).toBeInstanceOf(Date);
    const ticks = await pawl.schedules.preview("nightly", { count: 2, from: new Date("2030-01-01T00:00:00Z") });
    expect(ticks.map(({ at }) => at.toISOString())).toEqual(["2030-01-01T03:00:00.000Z", "2030-01-02T03:00:00.000Z"]);
    const job = await pawl.schedules.trigger("nightly", { input: 7 });
    expect(await job.get()).toMatchObject({ task: "report", input: 7 });
    await pawl.schedules.pause("nightly");
    expect(await pawl.schedules.list({ paused: true })).toMatchObject({ items: [{ name: "nightly", pausedSince: expect.any(Date) }] });
    await pawl.schedules.resume("nightly");
    await pawl.schedules.delete("nightly");
    await expect(pawl.schedules.get("nightly")).rejects.toMatchObject({ code: "schedule_unknown" });
  });

  test("pauses, limits and counts queues, tasks and tenants", async () => {
    const { pawl } = await opening();
    await pawl.enqueue("mail", 1, { queue: "post" });
    await pawl.queues.pause("post");
    expect(await pawl.queues.get("post")).toMatchObject({ queue: "post", paused: true, counts: { ready: 1 } });
    await pawl.queues.resume("post");
    expect(await pawl.tasks.update("mail", { concurrency: 3 })).toMatchObject({ concurrency: 3 });
    expect((await pawl.tasks.list()).items).toMatchObject([{ task: "mail", policy: { concurrency: 3 } }]);
    expect(await pawl.tenants.update("acme", { weight: 2 })).toMatchObject({ weight: 2 });
    expect(await pawl.breakers.open({ tenant: "acme", task: "mail" })).toMatchObject({ state: "open", forced: true, since: expect.any(Date) });
    expect((await pawl.breakers.list()).items).toHaveLength(1);
    expect(await pawl.counts()).toMatchObject({ ready: 1 });
    expect(await pawl.forTenant("default").counts({ task: "mail" })).toEqual({
      blocked: 0,
      scheduled: 0,
      ready: 1,
      parked: 0,
      running: 0,
      dead: 0,
    });
    expect(await pawl.info()).toMatchObject({ engine: "memory", durability: "none" });
    const lonely = { lane: { task: "mail" }, workers: 0, lacks: expect.any(Array), why: expect.any(String) };
    expect((await pawl.lanes.list({ unserved: true })).items).toMatchObject([lonely]);
    expect((await pawl.lanes.list()).items).toMatchObject([lonely]);
    expect(await pawl.workers.get("nobody")).toBeUndefined();
  });

  test("lists the keys at which jobs wait, page by page", async () => {
    const call = task("call", { limits: [{ name: "per account", key: (input) => input, rate: { limit: 1, per: "1h" } }] }, (_: string) => {});
    const { pawl } = await opening([call]);
    for (const account of ["a/b c", "z"]) for (let n = 0; n < 2; n++) await pawl.enqueue(call, account);
    const first = await pawl.limits.list({}, { limit: 1 });
    const place = { tenant: "default", name: "per account", key: "a/b c" };
    expect(first).toEqual({
      items: [
        {
          ...place,
          ...{ rate: { limit: 1, per: 3_600_000, burst: 1 }, held: 0, waiting: 1, tokens: 0, fullAt: expect.any(Date) },
          next: { job: expect.any(String), for: "rate" },
        },
      ],
      next: expect.any(String),
    });
    expect((await pawl.limits.list({}, { cursor: first.next as string })).items.map(({ key }) => key)).toEqual(["z"]);
    expect((await pawl.limits.list(place)).items).toHaveLength(1);
    expect((await pawl.limits.list({ tenant: "other" })).items).toEqual([]);
    for (const [filter, page] of [
      [{ name: "per account" }, {}],
      [{ nmae: "per account" }, {}],
      [{}, { size: 1 }],
      [{}, { limit: 1_001 }],
    ])
      await expect(pawl.limits.list(filter as never, page as never)).rejects.toMatchObject({ code: "option_invalid" });
    await expect(pawl.limits.list({}, { cursor: "default/per account" })).rejects.toMatchObject({ code: "option_invalid" });
    const keys: string[] = [];
    for await (const { key } of pawl.limits.list({}, { limit: 1 })) keys.push(key);
    expect(keys).toEqual(["a/b c", "z"]);
  });

  test("tells what happened over time", async () => {
    const { pawl } = await opening();
    await pawl.enqueueMany("mail", [1, 2], { queue: "post" });
    const { from, to, step, series } = await pawl.series({ by: "queue", last: "10m", step: "5m" });
    expect([to.getTime() - from.getTime(), step]).toEqual([600_000, 300_000]);
    expect(series).toMatchObject([{ queue: "post", points: [{ at: from }, { states: { ready: 2 } }] }]);
    expect(series[0]?.points.reduce((sum, { enqueued }) => sum + enqueued, 0)).toBe(2);
    const past = await pawl.series({ from: new Date(to.getTime() - 3_600_000), to: from, step: "5m" });
    expect(past.series[0]?.points).toHaveLength(10);
    await expect(pawl.series({ step: "90s" })).rejects.toMatchObject({ code: "option_invalid" });
  });
});
