import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { NewJob } from "../../core/jobs/job.js";
import { task } from "../../core/jobs/task.js";
import { pawlError } from "../../core/values/error.js";
import type { Store } from "../../store/port/index.js";
import { faultyStore } from "../../testing/faulty.js";
import { bareScheduler } from "../../testing/scheduler.js";
import type { StreamSummary } from "../options.js";

const number = task("number", { input: z.number() }, () => {});

describe("enqueueMany", () => {
  test("answers with a handle for each, in order", async () => {
    const { scheduler } = bareScheduler();
    const jobs = await scheduler.enqueueMany(number, [3, 1, 2], { queue: "q" });
    expect(await Promise.all(jobs.map(async (job) => (await job.get()).input))).toEqual([3, 1, 2]);
    expect(await jobs[0]?.get()).toMatchObject({ task: "number", queue: "q", state: "ready" });
  });

  test("of nothing is nothing", async () => {
    expect(await bareScheduler().scheduler.enqueueMany(number, [])).toEqual([]);
  });

  test("gives each its own options where asked", async () => {
    const { scheduler } = bareScheduler();
    const jobs = await scheduler.enqueueMany(number, [1, 2, 3], {
      tags: ["import"],
      each: (input, index) => (input === 2 ? undefined : { unique: `k${index}`, delay: input * 1_000 }),
    });
    const views = await Promise.all(jobs.map((job) => job.get()));
    expect(views.map(({ uniqueKey, state, tags }) => [uniqueKey, state, tags])).toEqual([
      ["k0", "scheduled", ["import"]],
      [undefined, "ready", ["import"]],
      ["k2", "scheduled", ["import"]],
    ]);
  });

  test("answers in order also where it sends the jobs of each tenant together", async () => {
    const { scheduler } = bareScheduler();
    const inputs = Array.from({ length: 2_500 }, (_, n) => n);
    const jobs = await scheduler.enqueueMany(number, inputs, { each: (n) => ({ tenant: `t${n % 7}` }) });
    for (const n of [0, 1, 7, 1_000, 2_499]) expect(await jobs[n]?.get()).toMatchObject({ input: n, tenant: `t${n % 7}` });
  });

  test("tells existing and rejected ones apart, as values", async () => {
    const { scheduler } = bareScheduler();
    const first = await scheduler.enqueue(number, 1, { unique: "k" });
    const jobs = await scheduler.enqueueMany(number, [2, 3, 4], {
      each: (input) => (input === 4 ? {} : { unique: { key: "k", onConflict: input === 2 ? "existing" : "reject" } }),
    });
    expect(jobs.map(({ enqueued }) => enqueued)).toEqual(["existing", "rejected", "created"]);
    expect(jobs.slice(0, 2).map(({ id }) => id)).toEqual([first.id, first.id]);
  });

  test("says how many were stored if one depends on a job that does not exist", async () => {
    const { scheduler } = bareScheduler();
    const nobody = "01890000-0000-7000-8000-000000000000";
    const enqueued = scheduler.enqueueMany(number, [1, 2], { each: (input) => (input === 2 ? { dependsOn: nobody } : {}) });
    await expect(enqueued).rejects.toMatchObject({ code: "dependency_unknown", details: { parent: nobody, stored: 1 } });
  });

  test("goes in chunks of a thousand, and a chunk that fails says how many were stored before", async () => {
    const full = pawlError("store_full", { reason: "no space" });
    const { scheduler, store } = bareScheduler({}, (inner) =>
      faultyStore(inner, (operation, earlier) => (operation === "jobs.enqueue" && earlier === 2 ? { kind: "fail", error: full } : undefined)),
    );
    const inputs = Array.from({ length: 5_000 }, (_, i) => i);
    await expect(scheduler.enqueueMany(number, inputs)).rejects.toMatchObject({ code: "store_full" });
    const [row] = await store.records.counts();
    const stored = row?.counts.ready;
    await expect(scheduler.enqueueMany(number, [Number.NaN])).rejects.toMatchObject({ details: { stored: 0 } });
    expect(stored).toBeGreaterThanOrEqual(2_000);
    expect(stored).toBeLessThanOrEqual(3_000);
    expect((stored as number) % 1_000).toBe(0);
  });

  test("the count in the error is what the store holds", async () => {
    const full = pawlError("store_full", { reason: "no space" });
    const { scheduler, store } = bareScheduler({}, (inner) =>
      faultyStore(inner, (operation, earlier) => (operation === "jobs.enqueue" && earlier === 1 ? { kind: "fail", error: full } : undefined)),
    );
    const error = await scheduler
      .enqueueMany(
        number,
        Array.from({ length: 4_000 }, (_, i) => i),
      )
      .catch((caught: unknown) => caught);
    const [row] = await store.records.counts();
    expect(error).toMatchObject({ code: "store_full", details: { stored: row?.counts.ready } });
  });

  test("makes smaller chunks of large inputs", async () => {
    const chunks: number[] = [];
    const { scheduler } = bareScheduler({}, (store) =>
      enqueuing(store, (jobs, enqueue) => {
        chunks.push(jobs.length);
        return enqueue(jobs);
      }),
    );
    await scheduler.enqueueMany("t", Array(50).fill("x".repeat(1_000_000)));
    expect(chunks).toEqual([17, 17, 16]);
  });

  test("in a transaction of the caller's sends one chunk after the other", async () => {
    let flying = 0;
    let most = 0;
    const { scheduler } = bareScheduler({}, (store) =>
      enqueuing(store, async (jobs, enqueue) => {
        most = Math.max(most, ++flying);
        const answers = await enqueue(jobs);
        await new Promise((resolve) => setImmediate(resolve));
        flying--;
        return answers;
      }),
    );
    const inputs = Array.from({ length: 3_500 }, (_, i) => i);
    await scheduler.enqueueMany(number, inputs, { tx: { query: async () => ({ rows: [] }) } });
    expect(most).toBe(1);
    await scheduler.enqueueMany(number, inputs);
    expect(most).toBe(3);
  });
});

describe("enqueueStream", () => {
  test("takes any iterable, and sums up", async () => {
    const { scheduler } = bareScheduler();
    await scheduler.enqueue(number, 0, { unique: "0" });
    const summary = await scheduler.enqueueStream(number, new Set([0, 1, 2]), { each: (input) => ({ unique: String(input) }) });
    expect(summary).toEqual({ count: 3, created: 2, existing: 1, rejected: 0, dependencyUnknown: 0, idempotencyKeyReused: 0 });
  });

  test("waits for an asynchronous schema", async () => {
    const slow = task("slow", { input: z.number().refine(async (value) => value < 3, "too much") }, () => {});
    const { scheduler, records } = bareScheduler();
    expect(await scheduler.enqueueStream(slow, [1, 2])).toMatchObject({ created: 2 });
    await expect(scheduler.enqueueStream(slow, [1, 2, 3])).rejects.toMatchObject({ code: "input_invalid", details: { stored: 0 } });
    expect(await records()).toHaveLength(2);
  });

  test("tells of every chunk", async () => {
    const { scheduler } = bareScheduler();
    const heard: StreamSummary[] = [];
    await scheduler.enqueueStream(number, range(2_500), { onChunk: (soFar) => heard.push(soFar) });
    expect(heard.map(({ count }) => count)).toEqual([1_000, 2_000, 2_500]);
  });

  test("closes what it reads from when it fails, and passes on what that throws", async () => {
    const { scheduler, records } = bareScheduler();
    let closed = false;
    async function* source() {
      try {
        for (let i = 0; ; i++) yield i === 1_500 ? (Number.NaN as number) : i;
      } finally {
        closed = true;
      }
    }
    await expect(scheduler.enqueueStream(number, source())).rejects.toMatchObject({ code: "input_unencodable", details: { stored: 1_000 } });
    expect(closed).toBe(true);
    expect(await records()).toHaveLength(1_000);

    // biome-ignore lint/correctness/useYield: it fails before its first
    async function* broken(): AsyncGenerator<number> {
      throw new RangeError("the file ends here");
    }
    await expect(scheduler.enqueueStream(number, broken())).rejects.toThrow(RangeError);
  });

  test("stores 200,000 of an endless source at a flat cost of memory", async () => {
    const { scheduler } = bareScheduler({}, forgetful);
    const used: number[] = [];
    const summary = await scheduler.enqueueStream("t", lines(200_000), {
      onChunk({ count }) {
        if (count % 20_000 === 0) used.push(heapUsed());
      },
    });
    expect(summary).toMatchObject({ count: 200_000, created: 200_000 });
    // All jobs together are over 200 MB; what is on its way at any moment is four chunks of a megabyte.
    const growth = Math.min(...used.slice(-3)) - Math.min(...used.slice(0, 3));
    expect(growth).toBeLessThan(8 * 1_048_576);
  });

  test("reads no further ahead than what is on its way", async () => {
    let read = 0;
    let stored = 0;
    let ahead = 0;
    const { scheduler } = bareScheduler({}, (store) =>
      enqueuing(store, async (jobs, enqueue) => {
        const answers = await enqueue(jobs);
        ahead = Math.max(ahead, read - stored);
        stored += jobs.length;
        return answers;
      }),
    );
    await scheduler.enqueueStream("t", counted(20_000));
    expect(ahead).toBeLessThanOrEqual(4_000);

    function* counted(count: number) {
      for (; read < count; read++) yield read;
    }
  });
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function* range(count: number) {
  for (let i = 0; i < count; i++) yield i;
}

async function* lines(count: number) {
  for (let i = 0; i < count; i++) yield { line: i, text: `${i} `.padEnd(500, "x") };
}

/** Without its garbage. */
function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function enqueuing(
  store: Store,
  around: (
    jobs: readonly NewJob[],
    enqueue: (jobs: readonly NewJob[]) => ReturnType<Store["jobs"]["enqueue"]>,
  ) => ReturnType<Store["jobs"]["enqueue"]>,
): Store {
  return {
    ...store,
    transactions: { join: (tx) => tx as never, run: () => Promise.reject(new Error("this test joins transactions only")) },
    jobs: { ...store.jobs, enqueue: (jobs) => around(jobs, (given) => store.jobs.enqueue(given)) },
  };
}

/** Answers and keeps nothing, so that what is measured is the scheduler. */
function forgetful(store: Store): Store {
  return enqueuing(store, async (jobs) => {
    await new Promise((resolve) => setImmediate(resolve));
    return jobs.map(({ idSuffix }) => ({ kind: "created", id: idSuffix as never }));
  });
}
