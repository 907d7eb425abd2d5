import { task } from "pawl";
import { describe, expect, test } from "vitest";
import { describeBoth } from "./local-and-remote.js";

describeBoth("jobs by filter", (opening) => {
  test("are counted, by state, queue and task, and by anything finer", async () => {
    const { pawl } = await opening();
    await pawl.enqueueMany("mail", [1, 2, 3], { queue: "slow" });
    await pawl.enqueue("mail", 4, { delay: "1h", tags: ["vip"], tenant: "acme" });
    expect(await pawl.jobs.count()).toBe(4);
    expect(await pawl.jobs.count({ task: "mail", queue: "slow", state: "ready" })).toBe(3);
    expect(await pawl.jobs.count({ state: "scheduled" })).toBe(1);
    expect(await pawl.jobs.count({ tag: "vip" })).toBe(1);
    expect(await pawl.jobs.count({ tenant: "acme" })).toBe(1);
    expect(await pawl.forTenant("acme").jobs.count({ task: "mail" })).toBe(1);
    await expect(pawl.jobs.count({ tsk: "mail" } as object)).rejects.toThrow(/did you mean task/);
  });

  test("are changed by one verb, as many as are wanted, and the history says why", async () => {
    const { pawl } = await opening();
    const jobs = await pawl.enqueueMany("mail", [1, 2, 3, 4, 5], { delay: "1h" });
    await pawl.enqueue("other", 1, { delay: "1h" });
    const filter = { task: "mail", state: "scheduled" } as const;
    expect(await pawl.jobs.bulk("cancel", filter, { limit: 2, reason: "not needed" })).toEqual({ changed: 2, skipped: 0, failed: 0, failures: [] });
    expect(await pawl.jobs.count(filter)).toBe(3);
    expect(await pawl.jobs.bulk("promote", filter)).toMatchObject({ changed: 3 });
    expect(await pawl.jobs.count({ task: "other", state: "scheduled" })).toBe(1);
    const cancelled = (await pawl.jobs.list({ task: "mail", state: "cancelled" })).items;
    expect(cancelled).toHaveLength(2);
    for (const { id } of cancelled)
      expect((await pawl.jobs.history(id)).items).toMatchObject([{ outcome: "cancelled", failure: { message: "not needed" } }]);
    expect(await pawl.jobs.bulk("delete", { task: "mail" }), "those that are not finished are skipped").toMatchObject({ changed: 2, skipped: 3 });
    expect(jobs).toHaveLength(5);
  });

  test.each<[string, unknown[], RegExp]>([
    ["a verb that is for no filter", ["rerun", {}], /verb.*none of cancel/],
    ["a pace that only redrive has", ["cancel", {}, { pace: "1s" }], /pace.*it is for redrive/],
    ["a pace of nothing", ["redrive", {}, { pace: 0 }], /pace.*longer than nothing/],
    ["a pace that is none", ["redrive", {}, { pace: "10/fortnight" }], /pace.*is not a rate/],
    ["jobs that are not dead to redrive", ["redrive", { state: "ready" }], /redrive is for dead jobs/],
    ["a misspelt option", ["cancel", {}, { limt: 1 }], /did you mean limit/],
    ["a reason that says nothing", ["pause", {}, { reason: " " }], /reason.*says nothing/],
    ["an instant without an offset", ["pause", { since: "2026-01-01T00:00" }], /no offset: write "2026-11-15T12:00:00Z"/],
  ])("are not changed by %s", async (_, args, says) => {
    const { pawl } = await opening();
    await expect((pawl.jobs.bulk as (...given: unknown[]) => Promise<unknown>)(...args)).rejects.toThrow(says);
  });

  test("that are dead are redriven at a rate", async () => {
    const { pawl } = await opening([task("mail", { retry: 0 }, () => Promise.reject(new Error("no such address")))]);
    const worker = await pawl.work();
    const jobs = await pawl.enqueueMany("mail", [1, 2, 3]);
    for (const job of jobs) await job.wait("30s");
    await worker.stop();
    const before = Date.now();
    expect(await pawl.jobs.bulk("redrive", { task: "mail" }, { pace: "2/h", reason: "the address is back" })).toMatchObject({ changed: 3 });
    const due = (await Promise.all(jobs.map((job) => job.get()))).map(({ nextRunAt }) =>
      nextRunAt === undefined ? 0 : nextRunAt.getTime() - before,
    );
    const [first = -1, second = -1, third = -1] = due.sort((a, b) => a - b);
    expect(first).toBe(0);
    expect(Math.round(second / 1_800_000)).toBe(1);
    expect(Math.round(third / 1_800_000)).toBe(2);
    expect((await jobs[0]?.history())?.items.at(-1)).toMatchObject({ outcome: "redriven", failure: { message: "the address is back" } });
  });
});

describeBoth("a job", (opening) => {
  test("is waited for by a duration or by options, and run again", async () => {
    const { pawl } = await opening([task("greet", (name: string) => `hello ${name}`)]);
    await pawl.work();
    const job = await pawl.enqueue<string, string, string>("greet" as never, "ann");
    expect(await job.wait({ wait: "30s" })).toMatchObject({ id: job.id, state: "succeeded" });
    expect(await job.result("30s")).toBe("hello ann");
    const again = await job.rerun();
    expect(await again.result(30_000)).toBe("hello ann");
    expect(await again.get()).toMatchObject({ rerunOf: job.id });
    await expect(job.result("soon")).rejects.toMatchObject({ code: "duration_invalid" });
  });

  test("has reasons with dates", async () => {
    const { pawl } = await opening();
    const job = await pawl.enqueue("mail", 1, { delay: "1h" });
    const { reasons, estimatedStart } = await job.explain();
    const due = reasons.find(({ kind }) => kind === "due");
    expect(due).toMatchObject({ at: (await job.get()).nextRunAt });
    expect(estimatedStart === undefined || estimatedStart instanceof Date).toBe(true);
  });

  test("and its verbs take a reason, which an event tells", async () => {
    const { pawl } = await opening();
    const events: unknown[] = [];
    const told = new Promise<void>((resolve) => {
      pawl.on("job.changed", ({ verb, reason }) => {
        events.push([verb, reason]);
        if (verb === "promote") resolve();
      });
    });
    const job = await pawl.enqueue("mail", 1, { delay: "1h" });
    await job.pause("maintenance");
    await job.resume("it is over");
    await job.promote();
    await told;
    expect(events).toEqual([
      ["pause", "maintenance"],
      ["resume", "it is over"],
      ["promote", undefined],
    ]);
  });
});

describeBoth("a task with a unique key of its own", (opening) => {
  const charge = task("charge", { unique: { key: (order: { id: number }) => `order-${order.id}` } }, () => {});

  test("makes one job per key, enqueued alone, many, or all at once", async () => {
    const { pawl } = await opening([charge]);
    const first = await pawl.enqueue(charge, { id: 1 });
    expect(first.enqueued).toBe("created");
    expect(await first.get()).toMatchObject({ uniqueKey: "order-1" });
    expect(await pawl.enqueue(charge, { id: 1 })).toMatchObject({ id: first.id, enqueued: "existing" });
    const many = await pawl.enqueueMany(charge, [{ id: 1 }, { id: 2 }]);
    expect(many.map(({ enqueued }) => enqueued)).toEqual(["existing", "created"]);
    const { results } = await pawl.enqueueAll([
      { task: charge, input: { id: 2 } },
      { task: "charge", input: { id: 3 } },
    ]);
    expect(results).toMatchObject([{ enqueued: "existing" }, { enqueued: "created" }]);
    expect(await pawl.enqueueStream(charge, [{ id: 3 }, { id: 4 }])).toMatchObject({ existing: 1, created: 1 });
  });

  test("gives way to what the call says", async () => {
    const { pawl } = await opening([charge]);
    const first = await pawl.enqueue(charge, { id: 1 });
    const other = await pawl.enqueue(charge, { id: 1 }, { unique: "another" });
    expect([other.enqueued, (await other.get()).uniqueKey]).toEqual(["created", "another"]);
    const later = await pawl.enqueue(charge, { id: 1 }, { debounce: { key: "quiet", wait: "1h" } });
    expect([later.enqueued, (await later.get()).uniqueKey]).toEqual(["created", "quiet"]);
    expect(later.id).not.toBe(first.id);
  });

  test("can leave an input without a key, refuse a second job, and be wrong", async () => {
    const picky = task("picky", { unique: { key: (order: { id?: string }) => order.id, for: "1h", onConflict: "reject" } }, () => {});
    const { pawl } = await opening([picky]);
    const free = await pawl.enqueueMany(picky, [{}, {}]);
    expect(free.map(({ enqueued }) => enqueued)).toEqual(["created", "created"]);
    const { id } = await pawl.enqueue(picky, { id: "a" });
    await expect(pawl.enqueue(picky, { id: "a" })).rejects.toMatchObject({ code: "unique_key_taken", details: { key: "a", job: id } });
    await expect(pawl.enqueue(picky, { id: "" })).rejects.toMatchObject({ code: "name_invalid" });
  });
});

describe("the options of a task", () => {
  test.each<[string, unknown, RegExp]>([
    ["a key that is no function", { key: "one for all" }, /t\.unique\.key.*is not a function/],
    ["a time that is none", { key: String, for: "soon" }, /t\.unique\.for/],
    ["a conflict that is none", { key: String, onConflict: "explode" }, /t\.unique\.onConflict/],
    ["a misspelt name", { key: String, while: "unstarted" }, /t\.unique\.while/],
  ])("refuse %s", (_, unique, says) => {
    expect(() => task("t", { unique } as object, () => {})).toThrow(says);
  });
});

describeBoth("what is live", (opening) => {
  test("is a page, and an iterable of all", async () => {
    const { pawl } = await opening();
    await pawl.enqueue("mail", 1);
    const lanes: unknown[] = [];
    for await (const { lane } of pawl.lanes.list({ unserved: true })) lanes.push(lane.task);
    expect(lanes).toEqual(["mail"]);
    expect(await pawl.workers.list()).toEqual({ items: [] });
  });

  test("has one limit key by name, and a breaker that is closed while nobody has seen it fail", async () => {
    const call = task("call", { limits: [{ name: "account", key: (input) => input, concurrency: 1 }] }, (_: string) => {});
    const { pawl } = await opening([call]);
    await pawl.enqueueMany(call, ["a", "a"]);
    const key = { tenant: "default", name: "account", key: "a" };
    await expect.poll(() => pawl.limits.get(key), { timeout: 30_000 }).toMatchObject({ ...key, waiting: expect.any(Number) });
    expect(await pawl.limits.get({ ...key, key: "b" })).toBeUndefined();
    await expect(pawl.limits.get({ tenant: "default", name: "account" } as never)).rejects.toMatchObject({ code: "name_invalid" });
    expect(await pawl.breakers.get({ tenant: "default", task: "call" })).toMatchObject({ state: "closed", forced: false, since: expect.any(Date) });
  });
});
