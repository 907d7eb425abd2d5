import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import { dutiesOf } from "../../../conformance/duties.js";
import type { Context } from "../../core/jobs/context.js";
import { task } from "../../core/jobs/task.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { pawlError } from "../../core/values/error.js";
import type { Store, StoreTransaction } from "../../store/port/index.js";
import { faultyStore } from "../../testing/faulty.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

test("says who, what and which try", async () => {
  let seen: unknown;
  const look = task("look", (_: unknown, { job, task: name, queue, tenant, attempt, worker, idempotencyKey, signal }: Context) => {
    seen = { job, name, queue, tenant, attempt, worker, idempotencyKey, aborted: signal.aborted };
  });
  fixture = new MemoryFixture({ tasks: [look] });
  const id = await fixture.enqueue(look, {}, { lane: { queue: "q", tenant: "acme" } });
  await fixture.work({ name: "w1" });
  expect(seen).toEqual({ job: id, name: "look", queue: "q", tenant: "acme", attempt: 1, worker: "w1", idempotencyKey: id, aborted: false });
});

describe("log and progress", () => {
  test("lines are kept in order, with their data, and are there when the job is settled", async () => {
    const chatty = task("chatty", async (_: unknown, { log }: Context) => {
      log.info("one", { n: 1 });
      await null;
      log.error("two", 2n);
      log.debug("three\u0000");
    });
    fixture = new MemoryFixture({ tasks: [chatty] });
    const id = await fixture.enqueue(chatty);
    await fixture.work();
    await fixture.clock.quiet();
    const lines = await fixture.inner.jobs.logs("everyone", id);
    expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual(["info one", "error two", "debug three\ufffd"]);
    expect(lines[0]?.data).toBe('{"n":1}');
    expect(lines[1]?.data).toContain("not JSON");
    expect(await fixture.state(id)).toBe("succeeded");
  });

  test("they are stored before the settlement that ends their lease, however long that takes", async () => {
    const stored = barrier();
    const chatty = task("chatty", async (_: unknown, { log }: Context) => log.info("hello"));
    fixture = new MemoryFixture({
      tasks: [chatty],
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "records.log" ? { kind: "hold", until: stored.opened } : undefined)),
    });
    const id = await fixture.enqueue(chatty);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.state(id)).toBe("running");
    stored.open();
    await fixture.clock.quiet();
    expect(await fixture.inner.jobs.logs("everyone", id)).toMatchObject([{ message: "hello" }]);
    expect(await fixture.state(id)).toBe("succeeded");
  });

  test("a line that the store refuses is let go, and the others are kept", async () => {
    const chatty = task("chatty", async (_: unknown, { log }: Context) => {
      for (let i = 0; i < 100; i++) log.info(`line ${i}`);
    });
    let calls = 0;
    fixture = new MemoryFixture({
      tasks: [chatty],
      wrapStore: (store) => ({
        ...store,
        records: {
          ...store.records,
          log: async (worker, entries) => {
            calls++;
            if (entries.some(({ message }) => message === "line 63")) throw pawlError("body_too_large", { limit: 1 });
            return store.records.log(worker, entries);
          },
        },
      }),
    });
    const id = await fixture.enqueue(chatty);
    await fixture.work();
    await fixture.clock.advance(5_000);
    const lines = await fixture.inner.jobs.logs("everyone", id);
    expect(lines.map(({ message }) => message)).toEqual(Array.from({ length: 100 }, (_, i) => `line ${i}`).filter((line) => line !== "line 63"));
    expect(await fixture.state(id)).toBe("succeeded");
    expect(calls).toBeLessThan(30);
  });

  test("beyond the limit they are dropped, and a last line says how many", async () => {
    const flood = task("flood", async (_: unknown, { log }: Context) => {
      for (let i = 0; i < 1_234; i++) log.info(`line ${i}`);
    });
    fixture = new MemoryFixture({ tasks: [flood] });
    const id = await fixture.enqueue(flood);
    await fixture.work();
    await fixture.clock.quiet();
    const lines = await fixture.inner.jobs.logs("everyone", id);
    expect(lines).toHaveLength(1_001);
    expect(lines.at(-1)?.message).toContain("234");
  });

  test("of progress only the latest counts, at most twice a second and at the end", async () => {
    let writes = 0;
    const end = barrier();
    const steps = task("steps", async (_: unknown, { progress }: Context) => {
      for (let i = 0; i < 100; i++) {
        progress({ done: i });
        await new Promise<void>((resolve) => fixture.clock.after(20, resolve));
      }
      progress("nearly");
      await end.opened;
    });
    fixture = new MemoryFixture({
      tasks: [steps],
      wrapStore: (store) => ({
        ...store,
        records: {
          ...store.records,
          log(worker, entries) {
            writes += entries.length;
            return store.records.log(worker, entries);
          },
        },
      }),
    });
    const id = await fixture.enqueue(steps);
    await fixture.work();
    await fixture.clock.advance(1_000);
    expect((await fixture.job(id)).progress).toMatch(/^{"done":\d\d}$/);
    await fixture.clock.advance(1_000);
    end.open();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", progress: '"nearly"' });
    expect(writes).toBeLessThanOrEqual(7);
  });

  test("a store that cannot take them does not keep the job from being settled", async () => {
    const chatty = task("chatty", async (_: unknown, { log }: Context) => log.info("hello"));
    fixture = new MemoryFixture({
      tasks: [chatty],
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "records.log" ? { kind: "fail" } : undefined)),
    });
    const id = await fixture.enqueue(chatty);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.state(id)).toBe("succeeded");
  });
});

describe("bounds of what a handler says", () => {
  test("a progress that is too large is refused with a code, and the one before it stays", async () => {
    let refused: unknown;
    const big = task("big", async (_: unknown, { progress }: Context) => {
      progress({ done: 1 });
      try {
        progress("x".repeat(BOUNDS.progress));
      } catch (error) {
        refused = error;
      }
    });
    fixture = new MemoryFixture({ tasks: [big] });
    const id = await fixture.enqueue(big);
    await fixture.work();
    await fixture.clock.quiet();
    expect(refused).toMatchObject({ code: "progress_too_large", details: { job: id, size: BOUNDS.progress + 2, limit: BOUNDS.progress } });
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", progress: '{"done":1}' });
  });

  test("a refused progress that nobody catches fails the attempt", async () => {
    const big = task("big", { retry: 0 }, async (_: unknown, { progress }: Context) => progress("x".repeat(5_000_000)));
    fixture = new MemoryFixture({ tasks: [big] });
    const id = await fixture.enqueue(big);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { code: "progress_too_large" } });
  });

  test("a log line that is too long is cut, and says how much of it is missing", async () => {
    const chatty = task("chatty", async (_: unknown, { log }: Context) => {
      log.info("m".repeat(5_000_000), { text: "d".repeat(5_000_000) });
      log.info("short", { n: 1 });
    });
    fixture = new MemoryFixture({ tasks: [chatty] });
    const id = await fixture.enqueue(chatty);
    await fixture.work();
    await fixture.clock.quiet();
    const [long, short] = await fixture.inner.jobs.logs("everyone", id);
    expect(long?.message).toMatch(/^m+… \(4996\d\d\d more characters were cut\)$/);
    expect(long?.message).toHaveLength(BOUNDS.logMessage);
    expect(JSON.parse(long?.data ?? "")).toMatch(/^\{"text":"d+… \(49\d{5} more characters were cut\)$/);
    expect(Buffer.byteLength(long?.data ?? "")).toBeLessThanOrEqual(BOUNDS.logData);
    expect(short).toMatchObject({ message: "short", data: '{"n":1}' });
  });

  test("lines that are too much together are dropped, and a last line says how many", async () => {
    const flood = task("flood", async (_: unknown, { log }: Context) => {
      for (let i = 0; i < 400; i++) log.info(`line ${i}`, "x".repeat(BOUNDS.logData - 2));
    });
    fixture = new MemoryFixture({ tasks: [flood] });
    const id = await fixture.enqueue(flood);
    await fixture.work();
    await fixture.clock.quiet();
    const lines = await fixture.inner.jobs.logs("everyone", id);
    const kept = Math.floor(BOUNDS.logBytes / (BOUNDS.logData + 8));
    expect(lines.length).toBeGreaterThanOrEqual(kept);
    expect(lines.at(-1)?.message).toBe(`… ${400 - (lines.length - 1)} more lines were dropped`);
  });

  test("no call carries more lines than one statement may", async () => {
    const sizes: number[] = [];
    const flood = task("flood", async (_: unknown, { log }: Context) => {
      for (let i = 0; i < 240; i++) log.info("", "x".repeat(BOUNDS.logData - 2));
    });
    fixture = new MemoryFixture({
      tasks: [flood],
      wrapStore: (store) => ({
        ...store,
        records: {
          ...store.records,
          log(worker, entries) {
            sizes.push(entries.reduce((sum, { message, data = "" }) => sum + message.length + data.length, 0));
            return store.records.log(worker, entries);
          },
        },
      }),
    });
    const ids = await fixture.enqueueMany(flood, [1, 2, 3, 4, 5, 6]);
    await fixture.work();
    await fixture.clock.quiet();
    expect(Math.max(...sizes)).toBeLessThanOrEqual(BOUNDS.statement);
    for (const id of ids) expect(await fixture.inner.jobs.logs("everyone", id)).toHaveLength(240);
  });

  test("what `once` records is bounded", async () => {
    const pay = task("pay", async (_: unknown, { once }: Context) => once("charge", () => "x".repeat(BOUNDS.recorded)));
    fixture = new MemoryFixture({ tasks: [pay] });
    const id = await fixture.enqueue(pay);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "output_unencodable" } });
  });
});

describe("lines that the store does not take", () => {
  const chatty = task("chatty", async (_: unknown, { log }: Context) => {
    for (let i = 0; i < 7; i++) log.info(`line ${i}`);
  });

  test("a call that fails is told, and its lines are counted as lost once their job has ended without them", async () => {
    fixture = new MemoryFixture({
      tasks: [chatty],
      wrapStore: (store) =>
        faultyStore(store, (operation, earlier) =>
          operation === "records.log" && earlier === 0 ? { kind: "fail", error: new RangeError("Invalid string length") } : undefined,
        ),
    });
    const id = await fixture.enqueue(chatty);
    await fixture.work();
    await fixture.clock.advance(1_000);
    expect(await fixture.state(id)).toBe("succeeded");
    expect(fixture.eventsNamed("duty.failed")).toMatchObject([{ duty: "worker: store log lines and progress" }]);
    expect(fixture.eventsNamed("lines.lost")).toMatchObject([{ lines: 7, error: { message: "Invalid string length" } }]);
  });

  test("a line that the store refuses alone is counted as lost, and the log of its job says so", async () => {
    const end = barrier();
    const patient = task("patient", async (_: unknown, { log }: Context) => {
      log.info("good");
      log.info("bad");
      await end.opened;
    });
    fixture = new MemoryFixture({
      tasks: [patient],
      wrapStore: (store) => ({
        ...store,
        records: {
          ...store.records,
          log: async (worker, entries) => {
            if (entries.some(({ message }) => message === "bad")) throw pawlError("body_too_large", { limit: 1 });
            return store.records.log(worker, entries);
          },
        },
      }),
    });
    const id = await fixture.enqueue(patient);
    await fixture.work();
    await fixture.clock.advance(1_000);
    end.open();
    await fixture.clock.quiet();
    expect(fixture.eventsNamed("lines.lost")).toMatchObject([{ lines: 1, error: { code: "body_too_large" } }]);
    expect((await fixture.inner.jobs.logs("everyone", id)).map(({ message }) => message)).toEqual([
      "good",
      "… 1 lines were lost: the store did not take them",
    ]);
  });

  test("those that still wait when the worker stops are counted as lost", async () => {
    fixture = new MemoryFixture({
      tasks: [chatty],
      wrapStore: (store) =>
        faultyStore(store, (operation) => (operation.startsWith("records.log") || operation === "leases.settle" ? { kind: "fail" } : undefined)),
    });
    await fixture.enqueue(chatty);
    const worker = await fixture.work();
    await fixture.clock.advance(500);
    await fixture.whileTimePasses(worker.stop());
    expect(fixture.eventsNamed("lines.lost")).toMatchObject([{ lines: 7 }]);
  });

  test("while it takes none, the newest are kept, within bounds", async () => {
    let away = true;
    const end = barrier();
    const flood = task("flood", async (_: unknown, { log }: Context) => {
      for (let i = 0; i < BOUNDS.logLines; i++) log.info(`line ${i}`);
      await end.opened;
    });
    fixture = new MemoryFixture({
      tasks: [flood],
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "records.log" && away ? { kind: "fail" } : undefined)),
    });
    const ids = await fixture.enqueueMany(
      flood,
      Array.from({ length: 25 }, (_, i) => i),
    );
    await fixture.work({ concurrency: 25 });
    await fixture.clock.advance(1_000);
    away = false;
    await fixture.clock.advance(1_000);
    const stored = (await Promise.all(ids.map((id) => fixture.inner.jobs.logs("everyone", id)))).reduce((sum, lines) => sum + lines.length, 0);
    const lost = fixture.eventsNamed("lines.lost").reduce((sum, { lines }) => sum + lines, 0);
    expect(stored + lost).toBe(25 * BOUNDS.logLines);
    expect(stored).toBeLessThanOrEqual(BOUNDS.waitingLines);
    expect(stored).toBeGreaterThan(BOUNDS.waitingLines / 2);
    end.open();
    await fixture.clock.quiet();
  });
});

describe("once", () => {
  test("runs an effect once per job and name, and a retry gets what it returned", async () => {
    const charges: string[] = [];
    const pay = task("pay", { retry: ["1s"] }, async (_: unknown, { once, attempt }: Context) => {
      const first = await once("charge", () => {
        charges.push(`in attempt ${attempt}`);
        return { receipt: 42 };
      });
      if (attempt === 1) throw new Error("after the charge");
      return first.receipt;
    });
    fixture = new MemoryFixture({ tasks: [pay] });
    const id = await fixture.enqueue(pay);
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(1_500);
    expect(charges).toEqual(["in attempt 1"]);
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: "42" });
  });

  test("two calls at once in one attempt run it once, too; one that failed may be tried again", async () => {
    let runs = 0;
    const pay = task("pay", async (_: unknown, { once }: Context) => {
      const both = await Promise.all([once("a", async () => ++runs), once("a", async () => ++runs)]);
      await once("b", () => Promise.reject(new Error("no"))).catch(() => {});
      return [...both, await once("b", () => "yes")];
    });
    fixture = new MemoryFixture({ tasks: [pay] });
    const id = await fixture.enqueue(pay);
    await fixture.work();
    await fixture.clock.quiet();
    expect((await fixture.job(id)).output).toBe('[1,1,"yes"]');
  });

  test("under a lost lease it throws instead of recording", async () => {
    let thrown: unknown;
    const pay = task("pay", async (_: unknown, { once }: Context) => {
      fixture.clock.leap(16_000);
      await dutiesOf(fixture.inner).reap(10);
      await once("charge", () => 1).catch((error: unknown) => {
        thrown ??= error;
      });
    });
    fixture = new MemoryFixture({ tasks: [pay] });
    await fixture.enqueue(pay);
    const worker = await fixture.work();
    await fixture.whileTimePasses(worker.stop());
    expect(thrown).toMatchObject({ code: "lease_lost" });
  });
});

describe("transaction", () => {
  /** The memory store has no transactions: this one carries out what was settled when its work commits. */
  function transactional(store: Store, hooks: { beforeCommit?: () => Promise<void> | void } = {}): Store & Required<Pick<Store, "transactions">> {
    const writes: string[] = [];
    return Object.assign(
      {
        ...store,
        transactions: {
          join: () => expect.fail("nothing is enqueued in it"),
          async run<T>(work: (tx: Transaction, handle: StoreTransaction) => Promise<T>): Promise<T> {
            const own: (() => Promise<unknown>)[] = [];
            const tx = {
              own,
              async query(text: string) {
                own.push(async () => writes.push(text));
                return { rows: [] };
              },
            };
            const answer = await work(tx, tx as unknown as StoreTransaction);
            await hooks.beforeCommit?.();
            for (const write of own) await write();
            return answer;
          },
        },
        leases: {
          ...store.leases,
          async settle(worker: never, settlements: never, tx?: StoreTransaction) {
            if (tx === undefined) return store.leases.settle(worker, settlements);
            (tx as unknown as { own: (() => Promise<unknown>)[] }).own.push(() => store.leases.settle(worker, settlements));
            return ["settled" as const];
          },
        },
      },
      { writes },
    );
  }
  const writesOf = () => (fixture.store as Store & { writes: string[] }).writes;

  test("commits the handler's writes and the settlement together, and what the handler returns later is ignored", async () => {
    const move = task("move", async (_: unknown, ctx: Context) => {
      const answer = await ctx.transaction(async (tx) => {
        await tx.query("update account", []);
        return "moved";
      });
      return `${answer}, and then some`;
    });
    fixture = new MemoryFixture({ tasks: [move], wrapStore: (store) => transactional(store) });
    const id = await fixture.enqueue(move);
    const worker = await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: '"moved"' });
    expect(await fixture.outcomes(id)).toEqual(["succeeded"]);
    expect(writesOf()).toEqual(["update account"]);
    expect(fixture.eventsNamed("attempt.settled")).toHaveLength(1);
    expect(worker.status()).toMatchObject({ running: 0, leases: 0, settling: 0, free: 10 });
  });

  test("a failure inside rolls back and reaches the handler", async () => {
    const move = task("move", { retry: 0 }, async (_: unknown, ctx: Context) => {
      await ctx.transaction(async (tx) => {
        await tx.query("update account", []);
        throw new Error("insufficient funds");
      });
    });
    fixture = new MemoryFixture({ tasks: [move], wrapStore: (store) => transactional(store) });
    const id = await fixture.enqueue(move);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { message: "insufficient funds" } });
    expect(writesOf()).toEqual([]);
  });

  test("one that outlived its attempt's timeout is rolled back: it was settled as failed before", async () => {
    const slow = barrier();
    const errors: unknown[] = [];
    const move = task("move", { timeout: "1s", retry: 0 }, async (_: unknown, ctx: Context) => {
      await ctx
        .transaction(async (tx) => {
          await tx.query("update account", []);
          await slow.opened;
        })
        .catch((error: unknown) => errors.push(error));
    });
    fixture = new MemoryFixture({ tasks: [move], wrapStore: (store) => transactional(store) });
    const id = await fixture.enqueue(move);
    await fixture.work();
    await fixture.clock.advance(1_000);
    slow.open();
    await fixture.clock.quiet();
    expect(writesOf()).toEqual([]);
    expect(errors).toMatchObject([{ code: "closed" }]);
    expect(await fixture.outcomes(id)).toEqual(["failed"]);
  });

  test("one whose work goes on after its attempt is rolled back at once, and its handler hears of it", async () => {
    const heard: unknown[] = [];
    const move = task("move", { timeout: "1s", retry: 0 }, async (_: unknown, ctx: Context) => {
      await ctx.transaction(() => new Promise<never>(() => {})).catch((error: unknown) => heard.push(error));
    });
    let open = 0;
    fixture = new MemoryFixture({
      tasks: [move],
      wrapStore: (store) => {
        const inner = transactional(store);
        const { transactions } = inner;
        const run: typeof transactions.run = (work) => {
          open++;
          return transactions.run(work).finally(() => open--);
        };
        return { ...inner, transactions: { ...transactions, run } };
      },
    });
    await fixture.enqueue(move);
    const worker = await fixture.work();
    await fixture.clock.advance(500);
    expect(open).toBe(1);
    await fixture.clock.advance(500);
    expect(open).toBe(0);
    expect(heard).toMatchObject([{ code: "closed" }]);
    expect(worker.status()).toMatchObject({ overrun: 0, free: 10 });
  });

  test("a timeout that comes while it commits waits for the commit", async () => {
    const commit = barrier();
    const move = task("move", { timeout: "1s", retry: 0 }, (_: unknown, ctx: Context) => ctx.transaction(async () => "moved"));
    fixture = new MemoryFixture({ tasks: [move], wrapStore: (store) => transactional(store, { beforeCommit: () => commit.opened }) });
    const id = await fixture.enqueue(move);
    await fixture.work();
    await fixture.clock.advance(1_500);
    expect(await fixture.state(id)).toBe("running");
    commit.open();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: '"moved"' });
    expect(await fixture.outcomes(id)).toEqual(["succeeded"]);
  });

  test("a commit that fails leaves the attempt to its handler", async () => {
    const move = task("move", { retry: 0 }, (_: unknown, ctx: Context) => ctx.transaction(async () => "moved"));
    fixture = new MemoryFixture({
      tasks: [move],
      wrapStore: (store) =>
        transactional(store, {
          beforeCommit: () => {
            throw new Error("could not serialize");
          },
        }),
    });
    const id = await fixture.enqueue(move);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { message: "could not serialize" } });
  });

  test("a handler that does not wait for it is not settled before it", async () => {
    const commit = barrier();
    const move = task("move", (_: unknown, ctx: Context) => {
      void ctx.transaction(async () => "moved");
      return commit.opened.then(() => "returned");
    });
    fixture = new MemoryFixture({
      tasks: [move],
      wrapStore: (store) => transactional(store, { beforeCommit: () => new Promise<void>((resolve) => fixture.clock.after(100, resolve)) }),
    });
    const id = await fixture.enqueue(move);
    await fixture.work();
    await fixture.clock.quiet();
    commit.open();
    await fixture.clock.advance(200);
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: '"moved"' });
    expect(await fixture.outcomes(id)).toEqual(["succeeded"]);
  });

  test("a handler that ended while a commit it did not wait for failed is settled by what it returned", async () => {
    const commit = barrier();
    const returned = barrier();
    const move = task("move", (_: unknown, ctx: Context) => {
      void ctx.transaction(async () => "moved");
      return returned.opened.then(() => "returned");
    });
    fixture = new MemoryFixture({ tasks: [move], wrapStore: (store) => transactional(store, { beforeCommit: () => commit.opened }) });
    const id = await fixture.enqueue(move);
    await fixture.work();
    returned.open();
    await fixture.clock.quiet();
    expect(await fixture.state(id)).toBe("running");
    commit.fail(new Error("could not serialize"));
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: '"returned"' });
    expect(writesOf()).toEqual([]);
  });

  test("where the store has none, it says so", async () => {
    const move = task("move", { retry: 0 }, (_: unknown, ctx: Context) => ctx.transaction(async () => 1));
    fixture = new MemoryFixture({ tasks: [move] });
    const id = await fixture.enqueue(move);
    await fixture.work();
    await fixture.clock.quiet();
    expect((await fixture.job(id)).failure).toMatchObject({ code: "transaction_unsupported" });
  });
});
