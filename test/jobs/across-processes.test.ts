import { NonRetryable, open, type Pawl, task } from "pawl";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, describeOn, migratedDatabase } from "../support/servers/servers.js";

/** Two of everything: what one says must reach the other through the database alone. */
describeOn("embedded18", () => {
  let database: Database;
  let here: Pawl;
  let there: Pawl;
  const opened = new Set<Pawl>();
  const connect = async (tasks: Parameters<typeof open>[1]): Promise<Pawl> => {
    const pawl = await open(database.url, tasks);
    opened.add(pawl);
    return pawl;
  };
  beforeEach(async () => {
    database = await migratedDatabase();
  });
  afterEach(async () => {
    for (const pawl of opened) await pawl.close();
    opened.clear();
    await database.drop();
  });

  test("cancelling reaches a job that runs in another process within a second", async () => {
    const started = withResolvers<void>();
    const aborted = withResolvers<number>();
    const stubborn = task("stubborn", async (_input: unknown, ctx) => {
      started.resolve();
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve, { once: true }));
      aborted.resolve(performance.now());
      throw new NonRetryable("stopped");
    });
    here = await connect({ tasks: [stubborn] });
    there = await connect({ tasks: [stubborn] });
    const job = await there.enqueue(stubborn, {});
    await here.work({ concurrency: 1 });
    await started.promise;
    const asked = performance.now();
    await there.jobs.cancel(job.id, "not needed");
    expect((await aborted.promise) - asked).toBeLessThan(1_000);
    expect((await there.jobs.wait(job.id)).state).toBe("cancelled");
  });

  test("a job enqueued by name is as its task's code in another process says, also in a transaction of the caller's", async () => {
    const encode = task("video.encode", { queue: "media", priority: "low", startWithin: "1h", atMostOnce: true }, () => {});
    await connect({ tasks: [encode] });
    const asSaid = { queue: "media", priority: 2, startWithin: 3_600_000, atMostOnce: true };
    const inside = await connect({});
    const client = new pg.Client(database.config);
    await client.connect();
    await client.query("begin");
    const first = await inside.enqueue("video.encode", {}, { tx: client });
    await client.query("commit");
    await client.end();
    expect(await first.get()).toMatchObject(asSaid);
    const outside = await connect({});
    expect(await (await outside.enqueue("video.encode", {})).get()).toMatchObject(asSaid);
  });

  test("a handler's writes and its settlement commit together, once, however often it fails in between", async () => {
    const client = new pg.Client(database.config);
    await client.connect();
    await client.query("create table effect (job uuid, attempt int)");
    const pay = task("pay", { retry: [0, 0, 0] }, async (_input: unknown, ctx) => {
      return ctx.transaction(async (tx) => {
        await tx.query("insert into effect values ($1::uuid, $2::int)", [ctx.job, ctx.attempt]);
        if (ctx.attempt < 3) throw new Error("not yet");
        return "paid";
      });
    });
    here = await connect({ tasks: [pay] });
    const job = await here.enqueue(pay, {});
    await here.work({ concurrency: 1 });
    expect(await job.result()).toBe("paid");
    expect((await client.query("select job, attempt from effect")).rows).toEqual([{ job: job.id, attempt: 3 }]);
    expect((await job.history()).items.map(({ outcome }) => outcome)).toEqual(["failed", "failed", "succeeded"]);
    await client.end();
  });

  test("delayed jobs start when they are due, and never early by the store's clock", async () => {
    const soon = task("soon", () => undefined);
    here = await connect({ tasks: [soon] });
    there = await connect({ tasks: [soon] });
    await here.work({ concurrency: 20 });
    const delays = Array.from({ length: 100 }, (_, i) => i * 7);
    const jobs = await there.enqueueMany(
      soon,
      delays.map(() => null),
      { each: (_input, i) => ({ delay: delays[i] as number }) },
    );
    for (const job of jobs) {
      await job.result();
      const [{ dueAt }, [attempt]] = [await there.jobs.get(job.id), (await job.history()).items];
      expect(attempt?.startedAt.getTime()).toBeGreaterThanOrEqual(Math.floor(dueAt.getTime()));
    }
  });

  test("a queue paused in one process gives nothing out in another until it is resumed", async () => {
    const mail = task("mail", { queue: "mail" }, () => "sent");
    here = await connect({ tasks: [mail] });
    there = await connect({ tasks: [mail] });
    await there.queues.pause("mail");
    const job = await there.enqueue(mail, {});
    const other = task("other", () => "done");
    const third = await connect({ tasks: [mail, other] });
    await third.work({ concurrency: 2 });
    await (await third.enqueue(other, {})).result();
    expect((await there.jobs.get(job.id)).state).toBe("ready");
    await there.queues.resume("mail");
    expect(await job.result()).toBe("sent");
  });

  test("a job that waits for one in another process starts when that one succeeds", async () => {
    const first = task("first", () => 1);
    const second = task("second", () => 2);
    here = await connect({ tasks: [first] });
    there = await connect({ tasks: [second] });
    const parent = await here.enqueue(first, {});
    const child = await there.enqueue(second, {}, { dependsOn: parent.id });
    expect((await there.jobs.get(child.id)).state).toBe("blocked");
    await there.work();
    await here.work();
    expect(await child.result()).toBe(2);
  });
});

function withResolvers<T>(): { promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
