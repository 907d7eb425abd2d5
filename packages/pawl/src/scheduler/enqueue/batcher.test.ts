import { describe, expect, test } from "vitest";
import type { Enqueued, NewJob } from "../../core/jobs/job.js";
import type { Lane } from "../../core/jobs/lane.js";
import { pawlError } from "../../core/values/error.js";
import { virtualClock } from "../../testing/clock.js";
import { faultyStore } from "../../testing/faulty.js";
import { bareScheduler } from "../../testing/scheduler.js";
import { Batcher } from "./batcher.js";

/** A store that answers when told to. */
function slowStore() {
  const calls: { jobs: readonly NewJob[]; answer: () => void; fail: (error: unknown) => void }[] = [];
  const store = (jobs: readonly NewJob[]) =>
    new Promise<readonly Enqueued[]>((resolve, reject) => {
      calls.push({
        jobs,
        answer: () => resolve(jobs.map(({ idSuffix }) => ({ kind: "created", id: idSuffix }) as unknown as Enqueued)),
        fail: reject,
      });
    });
  return { calls, store };
}

const LANE: Lane = { queue: "q", priority: 5, tenant: "a", task: "t" };
const job = (idSuffix: string, rest: Partial<NewJob> = {}) => ({ idSuffix, input: "", lane: LANE, ...rest }) as unknown as NewJob;
const sizes = (calls: readonly { jobs: readonly unknown[] }[]) => calls.map(({ jobs }) => jobs.length);

describe("single enqueues", () => {
  test("of one turn share a batch, and each gets its own answer", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock);
    const answers = ["a", "b", "c"].map((idSuffix) => batcher.add(job(idSuffix)));
    expect(calls).toHaveLength(0);
    await clock.quiet();
    expect(sizes(calls)).toEqual([3]);
    calls[0]?.answer();
    expect((await Promise.all(answers)).map((answer) => (answer as { id: string }).id)).toEqual(["a", "b", "c"]);
  });

  test("do not go out with large inputs of other tenants, and those of one tenant keep together", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock);
    const of = (tenant: string) => ({ lane: { ...LANE, tenant } });
    const large = "x".repeat(700_000);
    void batcher.add(job("small before", of("a")));
    void batcher.add(job("large", { ...of("a"), input: large }));
    const others = batcher.add(job("of another", of("b")));
    void batcher.add(job("large too", { ...of("c"), input: large }));
    void batcher.add(job("small after", of("a")));
    await clock.quiet();
    const ids = calls.map(({ jobs }) => jobs.map(({ idSuffix }) => idSuffix));
    expect(ids).toEqual([["small before", "large", "large too", "small after"], ["of another"]]);
    // The large ones are still on their way.
    calls[1]?.answer();
    expect(await others).toMatchObject({ id: "of another" });
  });

  test("gather while two batches are on their way, and go out together when one comes back", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock);
    for (const idSuffix of ["a", "b"]) {
      void batcher.add(job(idSuffix));
      await clock.quiet();
    }
    for (const idSuffix of ["c", "d", "e"]) {
      void batcher.add(job(idSuffix));
      await clock.quiet();
    }
    expect(sizes(calls)).toEqual([1, 1]);
    calls[0]?.answer();
    await clock.quiet();
    expect(sizes(calls)).toEqual([1, 1, 3]);
  });

  test("wait for no batch that takes long: two more go out, and so on", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock);
    const add = async (idSuffix: string) => {
      void batcher.add(job(idSuffix));
      await clock.quiet();
    };
    for (const idSuffix of ["a", "b", "c"]) await add(idSuffix);
    expect(sizes(calls)).toEqual([1, 1]);
    await clock.advance(10);
    expect(sizes(calls)).toEqual([1, 1, 1]);
    for (const idSuffix of ["d", "e"]) await add(idSuffix);
    expect(sizes(calls)).toEqual([1, 1, 1, 1]);
    // One that comes back late makes no room twice.
    calls[0]?.answer();
    await clock.quiet();
    expect(sizes(calls)).toEqual([1, 1, 1, 1]);
    calls[2]?.answer();
    await clock.quiet();
    expect(sizes(calls)).toEqual([1, 1, 1, 1, 1]);
  });

  test("never make a batch over the limit", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock, 2);
    for (const idSuffix of ["a", "b", "c", "d", "e"]) void batcher.add(job(idSuffix));
    await clock.quiet();
    expect(sizes(calls)).toEqual([2, 2]);
    calls[1]?.answer();
    await clock.quiet();
    expect(sizes(calls)).toEqual([2, 2, 1]);
  });

  test("never make a batch too large to send, unless one job is", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock);
    for (const size of [9, 6, 2, 17]) void batcher.add(job(`${size}`, { input: "x".repeat(size * 1_048_576) }));
    await clock.quiet();
    calls[0]?.answer();
    await clock.quiet();
    expect(sizes(calls)).toEqual([2, 1, 1]);
  });

  test("of unknown fate are told so one by one, with what makes a repetition safe", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock);
    const unique = { key: "k", hold: "unfinished", onConflict: "existing" } as const;
    const answers = [job("a", { idempotencyKey: { id: "r", digest: "d" } }), job("b", { unique }), job("c")].map((one) => batcher.add(one));
    await clock.quiet();
    calls[0]?.fail(pawlError("enqueue_uncertain", { count: 3 }));
    const [a, b, c] = await Promise.allSettled(answers);
    expect(a).toMatchObject({ reason: { code: "enqueue_uncertain", details: { count: 1, idempotencyKey: "r" } } });
    expect(b).toMatchObject({ reason: { code: "enqueue_uncertain", details: { count: 1, key: "k" } } });
    expect(c).toMatchObject({ reason: { code: "enqueue_uncertain", message: expect.stringMatching(/whether 1 job/) } });
  });

  test("go on after a batch that failed", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock);
    const first = batcher.add(job("a"));
    await clock.quiet();
    calls[0]?.fail(pawlError("store_full", { reason: "no space" }));
    await expect(first).rejects.toMatchObject({ code: "store_full" });
    const second = batcher.add(job("b"));
    await clock.quiet();
    calls[1]?.answer();
    await expect(second).resolves.toMatchObject({ id: "b" });
    await batcher.idle();
  });

  test("are all answered before it is idle", async () => {
    const { calls, store } = slowStore();
    const clock = virtualClock();
    const batcher = new Batcher(store, clock, 1);
    const order: string[] = [];
    for (const idSuffix of ["a", "b", "c"]) void batcher.add(job(idSuffix)).then(() => order.push(idSuffix));
    const idle = batcher.idle().then(() => order.push("idle"));
    for (let i = 0; i < 3; i++) {
      await clock.quiet();
      calls[i]?.answer();
    }
    await idle;
    expect(order).toEqual(["a", "b", "c", "idle"]);
  });
});

describe("through a scheduler", () => {
  test("64 enqueues at once are one write, and the bad one among them fails alone", async () => {
    const batches: number[] = [];
    const { scheduler, bus, records } = bareScheduler();
    bus.on("jobs.enqueued", ({ count }) => batches.push(count));
    const all = Array.from({ length: 64 }, (_, i) => scheduler.enqueue("t", i, i === 7 ? { priority: 11 as never } : undefined));
    const settled = await Promise.allSettled(all);
    expect(settled.filter(({ status }) => status === "rejected")).toHaveLength(1);
    expect(batches).toEqual([63]);
    expect(await records()).toHaveLength(63);
  });

  test("a taken key is the answer of its own caller only", async () => {
    const { scheduler, records } = bareScheduler();
    const unique = { key: "k", onConflict: "reject" } as const;
    const [first, second, other] = await Promise.allSettled([
      scheduler.enqueue("t", 1, { unique }),
      scheduler.enqueue("t", 2, { unique }),
      scheduler.enqueue("t", 3),
    ]);
    expect([first.status, second.status, other.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const { id } = (first as PromiseFulfilledResult<{ id: string }>).value;
    expect(second).toMatchObject({ reason: { code: "unique_key_taken", details: { key: "k", task: "t", job: id } } });
    expect(await records()).toHaveLength(2);
  });

  test("an enqueue whose answer was lost is safe to repeat with its idempotency key", async () => {
    const lost = pawlError("enqueue_uncertain", { count: 1 });
    const { scheduler, records } = bareScheduler({}, (store) =>
      faultyStore(store, (operation, earlier) => (operation === "jobs.enqueue" && earlier === 0 ? { kind: "lose", error: lost } : undefined)),
    );
    await expect(scheduler.enqueue("t", 1, { idempotencyKey: "r" })).rejects.toMatchObject({
      code: "enqueue_uncertain",
      details: { idempotencyKey: "r" },
    });
    const again = await scheduler.enqueue("t", 1, { idempotencyKey: "r" });
    expect(again.enqueued).toBe("existing");
    expect((await records()).map(({ id }) => id)).toEqual([again.id]);
  });

  test("an enqueue in a transaction of the caller's goes alone", async () => {
    const seen: (readonly [number, unknown])[] = [];
    const tx = { query: async () => ({ rows: [] }) };
    const { scheduler, deps } = bareScheduler({}, (store) => ({
      ...store,
      transactions: { join: (tx) => tx as never, run: () => Promise.reject(new Error("this test joins transactions only")) },
      jobs: {
        ...store.jobs,
        enqueue: (jobs, given) => {
          seen.push([jobs.length, given]);
          return store.jobs.enqueue(jobs);
        },
      },
    }));
    await Promise.all([scheduler.enqueue("t", 1), scheduler.enqueue("t", 2, { tx }), scheduler.enqueue("t", 3)]);
    expect(seen).toContainEqual([1, tx]);
    expect(seen).toContainEqual([2, undefined]);
    expect([...deps.unannouncedLanes.values()]).toEqual([{ queue: "default", priority: 5, tenant: "default", task: "t" }]);
  });
});
