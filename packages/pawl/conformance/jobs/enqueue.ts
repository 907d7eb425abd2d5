import { expect } from "vitest";
import { jobId } from "../../src/core/jobs/id.js";
import type { JobOptions } from "../../src/core/jobs/job.js";
import { DEFAULTS } from "../../src/core/values/defaults.js";
import type { Test } from "../suite.js";
import { DAY, FAILED, HOUR, lane, MINUTE, NOBODY, START } from "../world.js";

export function enqueueTests(test: Test): void {
  test("a job without a delay is ready at once, and is seen as it was given", async (w) => {
    const id = await w.add({ queue: "mail", priority: 7, tenant: "acme", task: "send", input: '{"to":"x"}' });
    expect(await w.get(id)).toEqual({
      id,
      lane: { queue: "mail", priority: 7, tenant: "acme", task: "send" },
      state: "ready",
      input: '{"to":"x"}',
      options: {},
      createdAt: START,
      dueAt: START,
      attempts: 0,
      crashes: 0,
    });
    expect(await w.store.jobs.history("everyone", id)).toEqual([]);
    expect(await w.store.jobs.logs("everyone", id)).toEqual([]);
  });

  test("a delayed job is scheduled for now plus its delay", async (w) => {
    const id = await w.add({ delay: HOUR });
    expect(await w.get(id)).toMatchObject({ state: "scheduled", createdAt: START, dueAt: START + HOUR, runAt: START + HOUR });
    expect(await w.claim()).toBeUndefined();
  });

  test("a job for a time to come is scheduled for it", async (w) => {
    expect(await w.get(await w.add({ runAt: START + 1 }))).toMatchObject({ state: "scheduled", dueAt: START + 1, runAt: START + 1 });
  });

  test("a job for a time gone by is due now", async (w) => {
    expect(await w.get(await w.add({ runAt: START - DAY }))).toMatchObject({ state: "ready", dueAt: START });
  });

  test("a given time outranks a delay", async (w) => {
    expect(await w.get(await w.add({ runAt: START + MINUTE, delay: HOUR }))).toMatchObject({ state: "scheduled", runAt: START + MINUTE });
  });

  test("an id carries the due time and the caller's id suffix", async (w) => {
    const job = w.newJob({ delay: HOUR });
    expect(await w.store.jobs.enqueue([job])).toEqual([{ kind: "created", id: jobId(START + HOUR, job.idSuffix) }]);
  });

  test("nothing in, nothing out", async (w) => {
    expect(await w.enqueue()).toEqual([]);
  });

  test("input comes back character by character", async (w) => {
    const input = '{"b":1,"a":[1e3,0.10,-0],"text":"ü 😀 \\" \\\\ \\n","deep":{"__proto__":{"x":null}},"b":2}';
    const id = await w.add({ input });
    expect((await w.get(id)).input).toBe(input);
    expect((await w.hold()).job.input).toBe(input);
  });

  test("the trace of a job comes back with every claim of it, in a batch that shares it and beside jobs that have none", async (w) => {
    const trace = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "vendor=a,other=b c" };
    const traced = { trace };
    await w.enqueue({ options: traced }, { options: traced }, {}, { options: { trace: { traceparent: trace.traceparent } } });
    const claimed = (await w.claim())?.jobs.map(({ options }) => options?.trace);
    expect(claimed).toEqual([trace, trace, undefined, { traceparent: trace.traceparent }]);
    const failing = await w.add({ options: traced });
    await w.run(failing, FAILED, [0]);
    expect((await w.hold()).job.options?.trace).toEqual(trace);
    expect((await w.get(failing)).options.trace).toEqual(trace);
  });

  test("options come back as they were given", async (w) => {
    const options: JobOptions = {
      retry: { kind: "exponential", retries: 4, min: 10, max: 100, factor: 1.5, jitter: 0.25 },
      timeout: 1_000,
      finishWithin: DAY,
      startWithin: HOUR,
      tags: ["a", "b"],
      uniqueKey: "k",
      atMostOnce: true,
      maxCrashes: 5,
      rerunOf: NOBODY,
    };
    const id = await w.add({ options });
    expect((await w.get(id)).options).toEqual(options);
    expect((await w.hold()).job.options).toEqual(options);
  });

  test("a batch answers in the order given, and one conflict is that one's answer alone", async (w) => {
    const taken = await w.add({ unique: { key: "k", hold: "unfinished", onConflict: "reject" } });
    const answers = await w.enqueue(
      { input: "1" },
      { unique: { key: "k", hold: "unfinished", onConflict: "reject" } },
      { after: [NOBODY] },
      { unique: { key: "k", hold: "unfinished", onConflict: "existing" } },
      { input: "2", delay: MINUTE },
    );
    const [first, , , , last] = answers;
    expect(answers).toEqual([
      { kind: "created", id: first?.kind === "created" && first.id },
      { kind: "rejected", holder: taken },
      { kind: "dependencyUnknown", parent: NOBODY },
      { kind: "existing", id: taken },
      { kind: "created", id: last?.kind === "created" && last.id },
    ]);
    const { jobs } = await w.store.jobs.list("everyone", {}, { limit: 10 });
    expect(jobs.map(({ input, state }) => [input, state])).toEqual([
      ["2", "scheduled"],
      ["1", "ready"],
      ["null", "ready"],
    ]);
  });

  test("a batch waits in the order it was given", async (w) => {
    const answers = await w.enqueue(...Array.from({ length: 200 }, (_, n) => ({ input: String(n) })));
    const ids = answers.map((answer) => answer.kind === "created" && answer.id);
    expect(await w.claimIds({ limit: 1_000 })).toEqual(ids);
  });

  test("an idempotency key answers with its first job, and stores nothing more", async (w) => {
    const id = await w.add({ idempotencyKey: "r1", input: "1" });
    w.clock.advance(MINUTE);
    expect(await w.enqueue({ idempotencyKey: "r1", input: "1", delay: HOUR })).toEqual([{ kind: "existing", id }]);
    const { jobs } = await w.store.jobs.list("everyone", {}, { limit: 10 });
    expect(jobs.map(({ input }) => input)).toEqual(["1"]);
  });

  test("an idempotency key that was used for another task or input is refused, stores nothing, and goes on answering with its first job", async (w) => {
    const id = await w.add({ idempotencyKey: "r1", input: "1" });
    const reused = { kind: "idempotencyKeyReused", first: id };
    expect(await w.enqueue({ idempotencyKey: "r1", input: "2" }, { idempotencyKey: "r1", task: "else", input: "1" })).toEqual([reused, reused]);
    expect(await w.enqueue({ idempotencyKey: "r1", input: "2", unique: { key: "k", hold: "unfinished", onConflict: "existing" } })).toEqual([reused]);
    expect(await w.enqueue({ idempotencyKey: "r1", input: "1" })).toEqual([{ kind: "existing", id }]);
    await w.run(id);
    await w.store.jobs.delete("everyone", id);
    expect(await w.enqueue({ idempotencyKey: "r1", input: "2" })).toEqual([reused]);
    w.clock.advance(DEFAULTS.keep.idempotencyKey);
    const [next] = await w.enqueue({ idempotencyKey: "r1", input: "2" });
    expect(next?.kind).toBe("created");
    expect(await w.enqueue({ idempotencyKey: "r1", input: "1" }), "what was asked for before is forgotten").toMatchObject([
      { kind: "idempotencyKeyReused" },
    ]);
  });

  test("of two jobs of one batch with the same idempotency key the first one wins", async (w) => {
    const same = { idempotencyKey: "r1", input: "1" };
    const [first, second, other] = await w.enqueue(same, same, { idempotencyKey: "r1", input: "2" });
    const id = first?.kind === "created" && first.id;
    expect([second, other]).toEqual([
      { kind: "existing", id },
      { kind: "idempotencyKeyReused", first: id },
    ]);
  });

  test("of two jobs that come at once with the same idempotency key one is stored, and the other is refused", async (w) => {
    const answers = (await Promise.all(["1", "2"].map((input) => w.enqueue({ idempotencyKey: "r1", input })))).flat();
    const created = answers.find(({ kind }) => kind === "created");
    expect(answers).toContainEqual({ kind: "idempotencyKeyReused", first: created?.kind === "created" && created.id });
    expect((await w.store.jobs.list("everyone", {}, { limit: 10 })).jobs).toHaveLength(1);
  });

  test("an idempotency key answers with its job after the job is finished, and after it is gone", async (w) => {
    const id = await w.add({ idempotencyKey: "r1" });
    await w.run(id);
    expect(await w.enqueue({ idempotencyKey: "r1" })).toEqual([{ kind: "existing", id }]);
    await w.store.jobs.delete("everyone", id);
    expect(await w.enqueue({ idempotencyKey: "r1" })).toEqual([{ kind: "existing", id }]);
  });

  test("an idempotency key is kept for a day", async (w) => {
    const id = await w.add({ idempotencyKey: "r1" });
    w.clock.advance(DEFAULTS.keep.idempotencyKey - 1);
    expect(await w.enqueue({ idempotencyKey: "r1" })).toEqual([{ kind: "existing", id }]);
    w.clock.advance(1);
    expect(await w.enqueue({ idempotencyKey: "r1" })).toMatchObject([{ kind: "created" }]);
  });

  test("tenants have their own idempotency keys", async (w) => {
    await w.add({ idempotencyKey: "r1", tenant: "acme" });
    expect(await w.enqueue({ idempotencyKey: "r1", tenant: "umbrella" })).toMatchObject([{ kind: "created" }]);
  });

  test("a rejected job, and one with an unknown dependency, leave their idempotency keys unused", async (w) => {
    const holder = await w.add({ unique: { key: "k", hold: "unfinished", onConflict: "reject" } });
    const rejected = { request: "r1", unique: { key: "k", hold: "unfinished", onConflict: "reject" } } as const;
    expect(await w.enqueue(rejected, { idempotencyKey: "r2", after: [NOBODY] })).toMatchObject([{ kind: "rejected" }, { kind: "dependencyUnknown" }]);
    await w.run(holder);
    expect(await w.enqueue(rejected, { idempotencyKey: "r2" })).toMatchObject([{ kind: "created" }, { kind: "created" }]);
  });

  test("names of every script are lanes of their own", async (w) => {
    const names = ["ä", "a", "A", "名前", "😀", "a b", "a'b", 'a"b', "a\\b", "a,b", "{a}", "%", "null", "NULL"];
    const ids = await Promise.all(names.map((name) => w.add({ queue: name, task: name, tenant: name })));
    for (const [n, name] of names.entries()) {
      expect(await w.claimIds({ lanes: [lane({ queue: name, task: name, tenant: name })] })).toEqual([ids[n]]);
    }
  });
}
