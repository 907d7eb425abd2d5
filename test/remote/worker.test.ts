import { once } from "node:events";
import { type Context, NonRetryable, type Pawl, RetryAfter, Snooze, task } from "pawl";
import { allItems } from "pawl/service";
import { expect, test } from "vitest";
import { describeBoth } from "./local-and-remote.js";

/** Resolves when a handler has been called, with its context. */
function calls() {
  const seen: Context[] = [];
  const waiting: ((ctx: Context) => void)[] = [];
  return {
    seen,
    note(ctx: Context) {
      seen.push(ctx);
      for (const resolve of waiting.splice(0)) resolve(ctx);
    },
    next: () => new Promise<Context>((resolve) => waiting.push(resolve)),
  };
}

async function finished(pawl: Pawl, id: string) {
  return pawl.jobs.wait(id, "60s");
}

describeBoth("a worker", (opening) => {
  test("runs jobs and records what they return, log and report", async () => {
    const resize = task("resize", (input: { photo: number }, ctx) => {
      ctx.log.info("resizing", { photo: input.photo });
      ctx.progress({ done: 1 });
      return { photo: input.photo, attempt: ctx.attempt, tenant: ctx.tenant };
    });
    const { pawl } = await opening([resize]);
    await pawl.work({ concurrency: 4, name: "w1" });
    const job = await pawl.enqueue(resize, { photo: 7 }, { tenant: "acme" });
    expect(await job.result("60s")).toEqual({ photo: 7, attempt: 1, tenant: "acme" });
    expect(await job.get()).toMatchObject({ state: "succeeded", attempts: 1, progress: { done: 1 } });
    expect((await job.logs()).items).toMatchObject([{ level: "info", message: "resizing", data: { photo: 7 } }]);
    expect((await job.history()).items).toMatchObject([{ outcome: "succeeded", worker: "w1" }]);
    expect((await pawl.workers.list()).items).toMatchObject([{ name: "w1", tasks: ["resize"], concurrency: { total: 4 } }]);
  });

  test("keeps a log of lines that are megabytes long, each cut, and refuses a progress that is", async () => {
    const lines = 130;
    const text = "x".repeat(5_000_000);
    const flood = task("flood", async (_: unknown, ctx) => {
      for (let i = 0; i < lines; i++) {
        ctx.log.info(`line ${i}`, text);
        // The service may be in this process: it is not to stand still for seconds.
        await new Promise((resolve) => setImmediate(resolve));
      }
      try {
        ctx.progress(text);
      } catch (error) {
        ctx.log.error((error as Error).message);
      }
    });
    const { pawl } = await opening([flood]);
    await pawl.work();
    const job = await pawl.enqueue(flood);
    await job.result("60s");
    const logs = await allItems(job.logs({ limit: 1_000 }));
    expect(logs).toHaveLength(lines + 1);
    expect(logs.at(-2)).toMatchObject({ message: `line ${lines - 1}`, data: expect.stringMatching(/^"x+… \(49\d{5} more characters were cut\)$/) });
    expect(logs.at(-1)?.message).toContain("5000002 bytes, over the limit of 65536");
    expect((await job.get())?.progress).toBeUndefined();
  });

  test("retries by the policy of the code, a function included, and stops where no retry helps", async () => {
    const attempts: number[] = [];
    const flaky = task("flaky", { retry: (_, attempt) => (attempt >= 3 ? "stop" : 0) }, (_: unknown, ctx) => {
      attempts.push(ctx.attempt);
      throw new RangeError("not yet");
    });
    const hopeless = task("hopeless", () => {
      throw new NonRetryable("never");
    });
    const { pawl } = await opening([flaky, hopeless]);
    const [one, two] = [await pawl.enqueue(flaky), await pawl.enqueue(hopeless)];
    await pawl.work();
    expect(await finished(pawl, one.id)).toMatchObject({ state: "dead", attempts: 3, failure: { name: "RangeError", message: "not yet" } });
    expect(attempts).toEqual([1, 2, 3]);
    expect(await finished(pawl, two.id)).toMatchObject({ state: "dead", attempts: 1, failure: { name: "NonRetryable" } });
  });

  test("snoozes without spending an attempt, and retries when it is told to", async () => {
    let snoozed = false;
    let told = false;
    const later = task("later", (_: unknown, ctx) => {
      if (!snoozed) {
        snoozed = true;
        throw new Snooze(1);
      }
      if (!told) {
        told = true;
        throw new RetryAfter(1);
      }
      return ctx.attempt;
    });
    const { pawl } = await opening([later]);
    const job = await pawl.enqueue(later);
    await pawl.work();
    expect(await job.result("60s")).toBe(2);
    expect((await job.history()).items.map(({ outcome }) => outcome)).toEqual(["snoozed", "failed", "succeeded"]);
  });

  test("tells a running handler that its job is cancelled", async () => {
    const running = calls();
    const hang = task("hang", async (_: unknown, ctx) => {
      running.note(ctx);
      await once(ctx.signal, "abort");
      throw ctx.signal.reason;
    });
    const { pawl } = await opening([hang]);
    await pawl.work();
    const started = running.next();
    const job = await pawl.enqueue(hang);
    const ctx = await started;
    await job.cancel("enough");
    expect(await finished(pawl, job.id)).toMatchObject({ state: "cancelled", failure: { message: "enough" } });
    expect(ctx.signal.aborted).toBe(true);
  });

  test("times a handler out, and settles its job without it", async () => {
    const slow = task("slow", { timeout: 100, retry: 0 }, () => new Promise(() => {}));
    const { pawl } = await opening([slow]);
    await pawl.work();
    const job = await pawl.enqueue(slow);
    expect(await finished(pawl, job.id)).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
  });

  test("runs an effect once, and hands its record to the next attempt", async () => {
    let charged = 0;
    const pay = task("pay", { retry: [0] }, async (_: unknown, ctx) => {
      const receipt = await ctx.once("charge", () => ({ receipt: ++charged }));
      if (ctx.attempt === 1) throw new Error("after the charge");
      return receipt;
    });
    const { pawl } = await opening([pay]);
    await pawl.work();
    const job = await pawl.enqueue(pay);
    expect(await job.result("60s")).toEqual({ receipt: 1 });
    expect(charged).toBe(1);
  });

  test("stops gracefully: what runs is finished, and what is not begun is given back", async () => {
    const running = calls();
    let go = () => {};
    const barrier = new Promise<void>((resolve) => {
      go = resolve;
    });
    const wait = task("wait", async (_: unknown, ctx) => {
      running.note(ctx);
      await barrier;
      return "done";
    });
    const { pawl, store } = await opening([wait]);
    const worker = await pawl.work({ concurrency: 1 });
    const started = running.next();
    const first = await pawl.enqueue(wait);
    await started;
    const second = await pawl.enqueue(wait);
    const stopped = worker.stop();
    go();
    await stopped;
    expect(await store.jobs.get(first.id)).toMatchObject({ state: "succeeded", output: "done" });
    expect(await store.jobs.get(second.id)).toMatchObject({ state: "ready", attempts: 0, crashes: 0 });
    expect((await store.workers.list()).items).toEqual([]);
  });

  test("runs many jobs, each of them once", async () => {
    const ran = new Map<number, number>();
    const count = task("count", (n: number) => void ran.set(n, (ran.get(n) ?? 0) + 1));
    const { pawl } = await opening([count]);
    const jobs = await pawl.enqueueMany(
      count,
      Array.from({ length: 1_200 }, (_, n) => n),
    );
    await pawl.work({ concurrency: 20 });
    await Promise.all(jobs.slice(-3).map((job) => job.result("60s")));
    await Promise.all(jobs.map((job) => finished(pawl, job.id)));
    expect(ran.size).toBe(1_200);
    expect([...ran.values()].every((times) => times === 1)).toBe(true);
  });

  test("refuses an option that does not exist, and names the one that was meant", async () => {
    const { pawl } = await opening([task("any", () => {})]);
    const error = await pawl.work({ concurency: 50 } as object).catch((refused: unknown) => refused);
    expect(error).toMatchObject({ code: "option_invalid", message: expect.stringContaining("did you mean concurrency?") });
    expect(pawl.workers.local()).toEqual([]);
  });

  test("goes through middleware, and keeps amounts within what it has", async () => {
    let most = 0;
    let now = 0;
    const big = task("big", { needs: { resources: { gpu: 1 } } }, async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
    });
    const around: string[] = [];
    const { pawl } = await opening([big]);
    const jobs = await pawl.enqueueMany(big, [1, 2, 3, 4, 5, 6]);
    await pawl.work({
      concurrency: 6,
      provides: { resources: { gpu: 2 } },
      middleware: [
        async (_, next) => {
          around.push("in");
          await next();
        },
      ],
    });
    for (const job of jobs) expect(await finished(pawl, job.id)).toMatchObject({ state: "succeeded" });
    expect(most).toBeLessThanOrEqual(2);
    expect(around).toHaveLength(6);
  });
});
