import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { isEncrypted } from "../../core/access/encrypted-value.js";
import { idSuffixOf, type JobId } from "../../core/jobs/id.js";
import { type AnyTask, task } from "../../core/jobs/task.js";
import { type PawlOptions, startPawl } from "../../pawl.js";
import { idempotencyKeyOfBatch, idempotencyKeyOfJob } from "../../scheduler/enqueue/idempotency-key.js";
import { schedule } from "../../scheduler/schedules/schedule.js";
import { serviceOf } from "../../service-of.js";
import { memoryStore } from "../memory/index.js";
import type { Store } from "../port/index.js";
import { inputContext, jobContext } from "./encrypter.js";

const key = () => randomBytes(32).toString("base64");
const LANE = { queue: "default", priority: 5, tenant: "default" } as const;
const MARKER = "canary-7f3a";
const EVERYONE = "everyone" as const;

const start = (store: Store, keys: readonly string[] | undefined, tasks: readonly AnyTask[] = [], more: PawlOptions = {}) =>
  startPawl({ ...store, close: async () => {} }, { tasks, ...more, ...(keys === undefined ? {} : { encryption: { masterKeys: keys } }) });

const charge = task("charge", { retry: [0, 0, 0] }, async (input: { card: string }, ctx) => {
  ctx.log.info(`charging ${input.card}`, { card: input.card });
  ctx.progress({ card: input.card });
  const receipt = await ctx.once("pay", () => ({ receipt: input.card }));
  return { charged: input.card, ...receipt };
});
const fail = task("fail", { retry: [] }, (input: { card: string }) => {
  throw new Error(`no funds on ${input.card}`);
});

describe("a store in which what jobs hold is encrypted", () => {
  test("what is encrypted for a job is bound to the digits of its id's end, now as ever: or nothing encrypted before would open", () => {
    const id = "018b0f2c-3d40-7abc-8def-0123456789ab" as JobId;
    expect(inputContext("charge", idSuffixOf(id)).subject).toBe("7abc8def0123456789ab");
    expect(jobContext("effect", id, "pay").subject).toBe("7abc8def0123456789ab pay");
  });

  test("handlers, results, history, logs and listings have the plain values, and the store below has none of them", async () => {
    const store = memoryStore();
    const recorded: string[] = [];
    const watched: Store = {
      ...store,
      records: {
        ...store.records,
        record(worker, entry) {
          recorded.push(entry.value);
          return store.records.record(worker, entry);
        },
      },
    };
    await using pawl = await start(watched, [key()], [charge, fail]);
    await pawl.work();
    const job = await pawl.enqueue(charge, { card: MARKER });
    expect(await job.result()).toEqual({ charged: MARKER, receipt: MARKER });
    const dead = await pawl.enqueue(fail, { card: MARKER });
    await expect(dead.result()).rejects.toThrow(`no funds on ${MARKER}`);
    const view = await pawl.jobs.get(job);
    expect(view).toMatchObject({ input: { card: MARKER }, progress: { card: MARKER } });
    expect(JSON.stringify(await pawl.jobs.logs(job))).toContain(`charging ${MARKER}`);
    expect(JSON.stringify(await pawl.jobs.history(dead))).toContain(`no funds on ${MARKER}`);
    expect(JSON.stringify((await pawl.dead.groups()).items.map(({ sample }) => sample))).toContain(MARKER);

    const below = [
      await store.jobs.list(EVERYONE, {}, { limit: 10 }),
      await store.jobs.history(EVERYONE, job.id),
      await store.jobs.history(EVERYONE, dead.id),
      await store.jobs.logs(EVERYONE, job.id),
      recorded,
    ];
    expect(JSON.stringify(below)).not.toContain(MARKER);
    expect(recorded).toHaveLength(1);
    expect(isEncrypted((await store.jobs.get(EVERYONE, job.id))?.output)).toBe(true);
  });

  test("what a job died of between its attempts is encrypted with what the last one failed with, and opens again", async () => {
    const store = memoryStore();
    const late = task<{ card: string }>("charge", { retry: ["1h"], finishWithin: "1m" }, ({ card }) => {
      throw new Error(`no funds on ${card}`);
    });
    await using pawl = await start(store, [key()], [late]);
    await pawl.work();
    const job = await pawl.enqueue(late, { card: MARKER });
    await expect(job.result()).rejects.toMatchObject({ code: "job_failed" });
    const { failure } = await pawl.jobs.get(job);
    expect(failure).toMatchObject({ kind: "deadline", causes: [{ name: "Error", message: `no funds on ${MARKER}` }] });
    expect((await pawl.jobs.history(job)).items.map(({ failure }) => failure?.kind)).toEqual(["error", "deadline"]);
    expect(JSON.stringify(await store.jobs.history(EVERYONE, job.id))).not.toContain(MARKER);
    expect((await pawl.dead.groups({ failure: "deadline" })).items).toMatchObject([{ count: 1 }]);
  });

  test("deaths of one cause have one fingerprint, as without", async () => {
    await using encrypted = await start(memoryStore(), [key()], [fail]);
    await using plain = await start(memoryStore(), undefined, [fail]);
    const groups = [];
    for (const pawl of [encrypted, plain]) {
      await pawl.work();
      for (const card of ["1111", "2222"]) await pawl.jobs.wait(await pawl.enqueue(fail, { card }));
      groups.push((await pawl.dead.groups()).items.map(({ fingerprint, count }) => ({ fingerprint, count })));
    }
    expect(groups[0]).toHaveLength(1);
    expect(groups[0]).toEqual(groups[1]);
  });

  test("S50: an encrypted input that is moved to another job does not open there: that job dies alone, at once, and says why", async () => {
    const store = memoryStore();
    const master = key();
    await using pawl = await start(store, [master], [charge]);
    const [first, second] = [await pawl.enqueue(charge, { card: "1" }), await pawl.enqueue(charge, { card: "2" })];
    const stolen = (await store.jobs.get(EVERYONE, first.id))?.input as string;
    const swapped: Store = {
      ...store,
      leases: {
        ...store.leases,
        async claim(request) {
          const claimed = await store.leases.claim(request);
          return claimed && { ...claimed, jobs: claimed.jobs.map((job) => (job.id === second.id ? { ...job, input: stolen } : job)) };
        },
      },
    };
    await using other = await start(swapped, [master], [charge]);
    await other.work();
    expect(await first.result()).toMatchObject({ charged: "1" });
    const dead = await pawl.jobs.wait(second);
    expect(dead).toMatchObject({ state: "dead", attempts: 1, failure: { kind: "payload_undecryptable", code: "payload_altered" } });
  });

  test("a master key that is none is refused when the store is opened, also where a function answers it", async () => {
    const wrong = { code: "option_invalid", details: { option: "encryption.masterKeys[0]" } };
    await expect(start(memoryStore(), ["c2hvcnQ="])).rejects.toMatchObject(wrong);
    await expect(startPawl(memoryStore(), { encryption: { masterKeys: async () => ["c2hvcnQ="] } })).rejects.toMatchObject(wrong);
  });

  test("master keys that are none for a moment, as in a file that is being written, leave the last ones in use", async () => {
    const store = memoryStore();
    const good = key();
    let answer: readonly string[] = [good];
    await using pawl = await startPawl(store, { allowUnknownTasks: true, encryption: { masterKeys: () => answer } });
    answer = [good.slice(0, 7)];
    const job = await pawl.enqueue("charge", { card: "1" }, { tenant: "new" });
    expect(isEncrypted((await store.jobs.get(EVERYONE, job.id))?.input)).toBe(true);
  });

  test("a worker without the master key is refused at its start, with or without other keys", async () => {
    const store = memoryStore();
    await using pawl = await start(store, [key()], [charge]);
    await pawl.enqueue(charge, { card: "1" });
    await using keyless = await start(store, undefined, [charge]);
    await expect(keyless.work()).rejects.toMatchObject({ code: "encryption_missing" });
    expect(await serviceOf(keyless).encryption.status()).toMatchObject([{ count: 1, here: false }]);
    await using stranger = await start(store, [key()], [charge]);
    await expect(stranger.work()).rejects.toMatchObject({ code: "master_key_missing" });
  });

  test("S50: a job whose key is not here is put off without an attempt, and never comes before the handler", async () => {
    const store = memoryStore();
    const seen: unknown[] = [];
    const peek = task("charge", {}, (input) => void seen.push(input));
    await using keyless = await start(store, undefined, [peek]);
    await keyless.work();
    await using pawl = await start(store, [key()], [charge], { maintenance: false });
    const job = await pawl.enqueue(charge, { card: "1" });
    await expect.poll(async () => (await keyless.jobs.get(job)).state).toBe("scheduled");
    expect(await keyless.jobs.get(job)).toMatchObject({ attempts: 0, input: "(encrypted)", encrypted: true });
    expect(seen).toEqual([]);
  });

  test.each([
    ["no master key", undefined],
    ["another master key", [key()]],
  ])("S50: a running worker with %s says so: on the bus, in the job's history, and to whoever asks why", async (_, keys) => {
    const store = memoryStore();
    await using keyless = await start(store, keys, [charge]);
    const heard = new Promise((resolve) => keyless.on("attempt.settled", resolve));
    await keyless.work();
    await using pawl = await start(store, [key()], [charge], { maintenance: false });
    const job = await pawl.enqueue(charge, { card: "1" });
    const failure = { kind: "payload_undecryptable", code: "payload_locked", message: expect.stringContaining("no master key") };
    expect(await heard).toMatchObject({ job: job.id, outcome: "snoozed", next: "scheduled", failure });
    expect((await pawl.jobs.history(job)).items).toMatchObject([{ outcome: "snoozed", failure }]);
    const { reasons, text, estimatedStart } = await pawl.jobs.explain(job);
    expect(reasons[0]).toMatchObject({ kind: "undecryptable", at: expect.any(Date) });
    expect(text).toContain("the worker that had it last has no master key for it");
    expect(estimatedStart).toBeUndefined();
  });

  test("S51: a tenant's key that is gone takes what it encrypted with it: the job dies and its facts stay", async () => {
    const store = memoryStore();
    const master = key();
    await using producer = await start(store, [master], [charge]);
    const job = await producer.enqueue(charge, { card: "1" });
    await store.purges.rest("default", 100);
    await using pawl = await start(store, [master], [charge]);
    await pawl.work();
    expect(await pawl.jobs.wait(job)).toMatchObject({ state: "dead", failure: { code: "payload_shredded" }, input: "(encrypted)", task: "charge" });
  });

  test("S51: after a rewrap the old master key can be taken away, and everything opens", async () => {
    const store = memoryStore();
    const [old, fresh] = [key(), key()];
    await using before = await start(store, [old], [charge]);
    const job = await before.enqueue(charge, { card: "1" });
    await using both = await start(store, [fresh, old]);
    expect((await serviceOf(both).encryption.status()).map(({ count, here }) => [count, here])).toEqual([
      [0, true],
      [1, true],
    ]);
    expect(await serviceOf(both).encryption.rewrap()).toEqual({ rewrapped: 1, left: 0 });
    await using after = await start(store, [fresh], [charge]);
    await after.work();
    expect(await after.jobs.result(job)).toMatchObject({ charged: "1" });
  });

  test("S51: after a rotation new jobs have another data key, and old ones still open", async () => {
    const store = memoryStore();
    await using pawl = await start(store, [key()], [charge]);
    const first = await pawl.enqueue(charge, { card: "1" });
    expect(await serviceOf(pawl).encryption.rotate("default")).toEqual({ version: 2 });
    const second = await pawl.enqueue(charge, { card: "2" });
    const keyIn = async (id: typeof first.id) => (await store.jobs.get(EVERYONE, id))?.input.split(":")[4];
    expect(await keyIn(first.id)).not.toBe(await keyIn(second.id));
    await pawl.work();
    expect(await first.result()).toMatchObject({ charged: "1" });
    expect(await second.result()).toMatchObject({ charged: "2" });
  });

  test("what was stored before encryption was asked for is read as it is", async () => {
    const store = memoryStore();
    await using plain = await start(store, undefined, [charge]);
    const job = await plain.enqueue(charge, { card: "1" });
    await using pawl = await start(store, [key()], [charge]);
    await pawl.work();
    expect(await pawl.jobs.result(job)).toMatchObject({ charged: "1" });
  });

  test("a schedule put again with the same input is unchanged, and its jobs get the input", async () => {
    const store = memoryStore();
    await using pawl = await start(store, [key()], [charge]);
    const times = { every: "1h", input: { card: MARKER } } as const;
    expect(await pawl.schedules.put("hourly", charge, times)).toBe("created");
    expect(await pawl.schedules.put("hourly", charge, times)).toBe("unchanged");
    expect(JSON.stringify(await store.schedules.list(EVERYONE, {}, { limit: 5 }))).not.toContain(MARKER);
    await pawl.work();
    expect(await (await pawl.schedules.trigger("hourly")).result()).toMatchObject({ charged: MARKER });
    expect(await (await pawl.schedules.trigger("hourly", { input: { card: "other" } })).result()).toMatchObject({ charged: "other" });
  });

  test("a schedule that was changed at run time is known by code that says what it said, though that is encrypted too", async () => {
    const store = memoryStore();
    const keys = [key()];
    const deploy = (every: string) => start(store, keys, [charge], { schedules: [schedule("hourly", charge, { every, input: { card: MARKER } })] });
    {
      await using pawl = await deploy("1h");
      expect(await pawl.schedules.update("hourly", { input: { card: `${MARKER} of people` } })).toBe("changed");
      expect(await pawl.schedules.get("hourly")).toMatchObject({ app: "default", overridden: true, revision: 2 });
    }
    {
      await using pawl = await deploy("1h");
      expect(await pawl.schedules.get("hourly")).toMatchObject({ app: "default", overridden: true, revision: 2 });
      expect(JSON.stringify(await store.schedules.list(EVERYONE, {}, { limit: 5 }))).not.toContain(MARKER);
      await pawl.work();
      expect(await (await pawl.schedules.trigger("hourly")).result()).toMatchObject({ charged: `${MARKER} of people` });
    }
    await using pawl = await deploy("2h");
    const view = await pawl.schedules.get("hourly");
    expect(view).toMatchObject({ app: "default", every: 7_200_000, revision: 3 });
    expect(view).not.toHaveProperty("overridden");
    await pawl.work();
    expect(await (await pawl.schedules.trigger("hourly")).result()).toMatchObject({ charged: MARKER });
  });

  test("a redriven job opens with the input it was given, and its history with the one before", async () => {
    const store = memoryStore();
    await using pawl = await start(store, [key()], [fail]);
    await pawl.work();
    const job = await pawl.enqueue(fail, { card: "first" });
    await pawl.jobs.wait(job);
    await pawl.jobs.redrive(job, { input: { card: "second" } });
    await expect(job.result()).rejects.toThrow("no funds on second");
    expect(JSON.stringify(await store.jobs.history(EVERYONE, job.id))).not.toMatch(/first|second/);
  });

  test.each([
    ["no list", "x", /not a list/],
    ["an empty list", [], /not a list/],
    ["a short key", ["c2hvcnQ="], /masterKeys\[0\].*32 bytes/],
    ["half a key", ["ab".repeat(31)], /32 bytes/],
  ])("keys that are %s are refused, and not repeated", async (_, keys, message) => {
    const failed = start(memoryStore(), keys as readonly string[]);
    await expect(failed).rejects.toMatchObject({ code: "option_invalid", message: expect.stringMatching(message) });
    await expect(failed).rejects.not.toThrow(/c2hvcnQ|abab/);
  });

  test("the digest of a batch confirms no guess at its inputs, and a repeated batch is known, also after a rotation and a rewrap", async () => {
    const [store, old, later] = [memoryStore(), key(), key()];
    const inputs = [{ card: MARKER }];
    await using plain = await start(store, undefined, [charge]);
    const before = await plain.enqueueMany(charge, inputs, { idempotencyKey: "before" });
    const given: string[] = [];
    const enqueue: Store["batches"]["enqueue"] = (request, ...rest) => {
      given.push(request.digest);
      return store.batches.enqueue(request, ...rest);
    };
    const watched: Store = {
      ...store,
      batches: { ...store.batches, enqueue },
    };
    const ids = async (keys: readonly string[], request: string) => {
      await using pawl = await start(watched, keys, [charge]);
      const jobs = await pawl.enqueueMany(charge, inputs, { idempotencyKey: request });
      await serviceOf(pawl).encryption.rewrap();
      await serviceOf(pawl).encryption.rotate("default");
      return jobs.map(({ id }) => id);
    };
    const first = await ids([old], "r");
    expect(await ids([later, old], "r")).toEqual(first);
    expect(await ids([later], "r")).toEqual(first);
    expect(await ids([later], "before")).toEqual(before.map(({ id }) => id));
    const guess = idempotencyKeyOfBatch("default", "r", [
      { lane: { queue: "default", tenant: "default", task: "charge", priority: 5 } as never, input: JSON.stringify(inputs[0]) },
    ]);
    expect(await store.batches.get({ ...guess, id: "before/0" })).toMatchObject({ kind: "repeated" });
    expect(given).toHaveLength(4);
    expect(given).not.toContain(guess.digest);
  });

  test("the digest of a job's request confirms no guess at its input, and a repeated request is known, also after a rotation and a rewrap", async () => {
    const [store, old, later] = [memoryStore(), key(), key()];
    await using plain = await start(store, undefined, [charge]);
    const before = await plain.enqueue(charge, { card: MARKER }, { idempotencyKey: "before" });
    const given: string[] = [];
    const watched: Store = {
      ...store,
      jobs: {
        ...store.jobs,
        enqueue(jobs, tx) {
          given.push(...jobs.flatMap(({ idempotencyKey }) => idempotencyKey?.digest ?? []));
          return store.jobs.enqueue(jobs, tx);
        },
      },
    };
    const use = async (keys: readonly string[], request: string, card = MARKER) => {
      await using pawl = await start(watched, keys, [charge, fail]);
      const job = await pawl.enqueue(charge, { card }, { idempotencyKey: request });
      await expect(pawl.enqueue(fail, { card }, { idempotencyKey: request })).rejects.toMatchObject({ code: "idempotency_key_reused" });
      await serviceOf(pawl).encryption.rewrap();
      await serviceOf(pawl).encryption.rotate("default");
      return job.id;
    };
    const first = await use([old], "r");
    expect(await use([later, old], "r")).toBe(first);
    expect(await use([later], "r")).toBe(first);
    expect(await use([later], "before")).toBe(before.id);
    await expect(use([later], "before", "another")).rejects.toMatchObject({ code: "idempotency_key_reused" });
    const guess = idempotencyKeyOfJob("r", "charge", JSON.stringify({ card: MARKER }));
    expect(
      await store.jobs.enqueue([
        {
          idSuffix: idSuffixOf(before.id),
          lane: { ...LANE, task: "charge" },
          input: "1",
          options: undefined,
          idempotencyKey: { ...guess, id: "before" },
        },
      ]),
    ).toMatchObject([{ kind: "existing" }]);
    expect(given.length).toBeGreaterThan(4);
    expect(given).not.toContain(guess.digest);
  });

  test("a schedule that is triggered twice with one idempotency key is triggered once", async () => {
    const store = memoryStore();
    await using pawl = await start(store, [key()], [charge]);
    await pawl.schedules.put("nightly", charge, { every: "1d", input: { card: MARKER } });
    const first = await pawl.schedules.trigger("nightly", { idempotencyKey: "r" });
    expect(await pawl.schedules.trigger("nightly", { idempotencyKey: "r" })).toMatchObject({ id: first.id, enqueued: "existing" });
    await expect(pawl.schedules.trigger("nightly", { idempotencyKey: "r", input: { card: "other" } })).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
  });

  test("an option that is misspelt is refused", async () => {
    await expect(startPawl(memoryStore(), { encryption: { key: [key()] } as never })).rejects.toMatchObject({ code: "option_invalid" });
  });
});
