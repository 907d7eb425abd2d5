import { describe, expect, test } from "vitest";
import type { Middleware } from "../../core/jobs/context.js";
import { task } from "../../core/jobs/task.js";
import { openTest } from "../../testing/open.js";
import type { TracedEnqueue, Tracing } from "./tracing.js";

const trace = (n: number) => ({ traceparent: `00-0af7651916cd43dd8448eb211c80319c-000000000000000${n}-01` });

/** Follows everything, and writes down what it was told. */
function recorder(follows: (what: TracedEnqueue) => boolean = () => true) {
  const records: unknown[] = [];
  let spans = 0;
  const tracing: Tracing = {
    enqueue(what) {
      records.push(what);
      if (!follows(what)) return undefined;
      return { trace: trace(++spans), end: (answer) => void records.push(answer) };
    },
    attempt: async (ctx, next) => {
      records.push(`attempt ${ctx.attempt} of ${ctx.task} ${ctx.trace?.traceparent.slice(-5, -3) ?? "untraced"}`);
      return next();
    },
  };
  return { tracing, records };
}

const work = task<number, void>("work", () => {});

describe("tracing", () => {
  test("follows a job from its enqueue through every attempt", async () => {
    const { tracing, records } = recorder();
    let fails = 1;
    const flaky = task("flaky", () => {
      if (fails-- > 0) throw new Error("not yet");
    });
    await using world = await openTest({ tasks: [flaky], tracing });
    const job = await world.pawl.enqueue(flaky);
    await world.drain();
    // A worker may well be faster than the answer to whoever enqueued.
    expect(records.filter((one) => typeof one === "object")).toEqual([
      { task: "flaky", verb: "enqueue" },
      { jobs: 1, job: job.id },
    ]);
    expect(records.filter((one) => typeof one === "string")).toEqual(["attempt 1 of flaky 01", "attempt 2 of flaky 01"]);
    expect((await job.get()).trace).toEqual(trace(1));
  });

  test("gives jobs that are enqueued together one span", async () => {
    const { tracing, records } = recorder();
    await using world = await openTest({ tasks: [work], tracing, work: false });
    const jobs = await world.pawl.enqueueMany(work, [1, 2, 3]);
    await world.pawl.enqueueStream(work, [4, 5]);
    expect(records).toEqual([{ task: "work", verb: "enqueueMany" }, { jobs: 3 }, { task: "work", verb: "enqueueStream" }, { jobs: 2 }]);
    for (const job of jobs) expect((await job.get()).trace).toEqual(trace(1));
  });

  test("is told the context that the caller gave, and its own is stored in its place", async () => {
    const { tracing, records } = recorder();
    await using world = await openTest({ tasks: [work], tracing, work: false });
    const job = await world.pawl.enqueue(work, 1, { trace: trace(9) });
    expect(records[0]).toEqual({ task: "work", verb: "enqueue", parent: trace(9) });
    expect((await job.get()).trace).toEqual(trace(1));
  });

  test("that does not follow leaves jobs as they are, with the context of the caller if there is one", async () => {
    const { tracing, records } = recorder(() => false);
    await using world = await openTest({ tasks: [work], tracing, work: false });
    expect((await (await world.pawl.enqueue(work, 1)).get()).trace).toBeUndefined();
    expect((await (await world.pawl.enqueue(work, 1, { trace: trace(7) })).get()).trace).toEqual(trace(7));
    expect(records).toHaveLength(2);
  });

  test("stores the caller's context where it does not follow it itself, unless nobody records that", async () => {
    const { tracing } = recorder(() => false);
    await using world = await openTest({ tasks: [work], tracing, work: false });
    const unrecorded = { traceparent: trace(9).traceparent.replace(/01$/, "00") };
    expect((await (await world.pawl.enqueue(work, 1, { trace: trace(9) })).get()).trace).toEqual(trace(9));
    expect((await (await world.pawl.enqueue(work, 1, { trace: unrecorded })).get()).trace).toBeUndefined();
  });

  test("hears of an enqueue that fails", async () => {
    const { tracing, records } = recorder();
    await using world = await openTest({ tasks: [work], tracing, work: false });
    await expect(world.pawl.enqueue(work, 1, { priority: 99 as never })).rejects.toMatchObject({ code: "option_invalid" });
    expect(records.at(-1)).toMatchObject({ error: { code: "option_invalid" } });
  });

  test("stands outside all other middleware", async () => {
    const { tracing, records } = recorder();
    const inner: Middleware = async (ctx, next) => {
      records.push(`inner ${ctx.task}`);
      return next();
    };
    await using world = await openTest({ tasks: [work], tracing, work: { middleware: [inner] } });
    await world.pawl.enqueue(work, 1);
    await world.drain();
    expect(records.filter((one) => typeof one === "string")).toEqual(["attempt 1 of work 01", "inner work"]);
  });

  test("does not go on in a rerun, which is of whoever asks for it", async () => {
    await using world = await openTest({ tasks: [work] });
    const job = await world.pawl.enqueue(work, 1, { trace: trace(3) });
    await world.drain();
    expect((await job.get()).trace).toEqual(trace(3));
    expect((await (await world.pawl.jobs.rerun(job)).get()).trace).toBeUndefined();
  });
});
