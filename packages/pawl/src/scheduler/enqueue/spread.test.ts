import { describe, expect, test } from "vitest";
import { dutiesOf } from "../../../conformance/duties.js";
import { task } from "../../core/jobs/task.js";
import { type Definition, jobOfTick } from "../../core/schedules/schedule.js";
import { bareScheduler } from "../../testing/scheduler.js";

const work = task<number, void>("work", () => {});
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const MINUTE = 60_000;

/** How many jobs a worker with room for all of them starts in each second, from midnight on. */
async function startsPerSecond(count: number, seconds: number, spread: string | undefined): Promise<readonly number[]> {
  const bare = bareScheduler({ tasks: [work] });
  const midnight = bare.clock.now() + 3_600_000;
  await bare.scheduler.enqueueStream(work, numbers(count), { runAt: midnight, ...(spread === undefined ? {} : { spread }) });
  bare.clock.leap(3_600_000 - 1);
  const starts: number[] = [];
  for (let second = 0; second < seconds; second++) {
    bare.clock.leap(1_000);
    await dutiesOf(bare.store).promote(count);
    let started = 0;
    for (let some = await bare.attempt({ kind: "succeeded" }); some > 0; some = await bare.attempt({ kind: "succeeded" })) started += some;
    starts.push(started);
  }
  return starts;
}

describe("a herd of jobs that are due at midnight", () => {
  test("starts at a flat rate over its spread: 100,000 of them within what chance allows in every second of the minute", async () => {
    const starts = await startsPerSecond(100_000, 61, "60s");
    expect(starts.reduce((a, b) => a + b)).toBe(100_000);
    expect(starts.at(-1)).toBeLessThan(10);
    const mean = 100_000 / 60;
    for (const started of starts.slice(0, 60)) expect(Math.abs(started - mean)).toBeLessThan(5 * Math.sqrt(mean));
  });

  test("starts at once without one", async () => {
    expect(await startsPerSecond(2_000, 2, undefined)).toEqual([2_000, 0]);
  });
});

describe("a spread", () => {
  const dueIn = async (of: ReturnType<typeof bareScheduler>, options?: object, given = work) =>
    (await (await of.scheduler.enqueue(given, 1, options)).get()).dueAt.getTime() - of.clock.now();

  test("can be that of a job, its task or its queue, the nearest first, and 0 is none", async () => {
    const wide = task<number, void>("wide", { spread: "1h" }, () => {});
    const bare = bareScheduler({ tasks: [work, wide], queueDefaults: { mail: { spread: 10 } } });
    expect(await dueIn(bare, undefined, wide)).toBeGreaterThan(MINUTE);
    const narrow = await dueIn(bare, { spread: "1s" }, wide);
    expect(narrow).toBeGreaterThanOrEqual(0);
    expect(narrow).toBeLessThan(1_000);
    expect(await dueIn(bare, { spread: 0 }, wide)).toBe(0);
    expect(await dueIn(bare, { queue: "mail" })).toBeLessThan(10);
    expect(await dueIn(bare)).toBe(0);
  });

  test("can be a window that begins later, of a job, its task or its queue", async () => {
    const late = task<number, void>("late", { spread: ["1h", "2h"] }, () => {});
    const bare = bareScheduler({ tasks: [work, late], queueDefaults: { mail: { spread: ["10s", "10s"] } } });
    const due = await dueIn(bare, undefined, late);
    expect(due).toBeGreaterThanOrEqual(60 * MINUTE);
    expect(due).toBeLessThan(120 * MINUTE);
    expect(await dueIn(bare, { queue: "mail" })).toBe(10_000);
    expect(await dueIn(bare, { spread: [0, "1s"] }, late)).toBeLessThan(1_000);
    expect(await (await bare.scheduler.enqueue(work, 1, { spread: ["1s", "2s"] })).get()).toMatchObject({ spread: [1_000, 2_000] });
  });

  test("is known to those who have only the name of the task", async () => {
    const bare = bareScheduler();
    await bare.store.tasks.publish([{ name: "wide", defaults: { spread: 3_600_000 } }]);
    const job = await bare.scheduler.enqueue("wide", 1);
    expect(await job.get()).toMatchObject({ state: "scheduled", spread: 3_600_000 });
  });

  test("is part of the due time, which deadline and expiry count from", async () => {
    const bare = bareScheduler({ tasks: [work] });
    const job = await bare.scheduler.enqueue(work, 1, { spread: "1h", startWithin: "1s" });
    const { dueAt, nextRunAt } = await job.get();
    expect(nextRunAt).toEqual(dueAt);
    bare.clock.leap(dueAt.getTime() - bare.clock.now() + 999);
    expect(await dutiesOf(bare.store).expire(10)).toBe(0);
    bare.clock.leap(1);
    expect(await dutiesOf(bare.store).expire(10)).toBe(1);
  });

  test("is not repeated by a rerun", async () => {
    const bare = bareScheduler({ tasks: [work] });
    const job = await bare.scheduler.enqueue(work, 1, { spread: "1s" });
    bare.clock.leap(1_000);
    await dutiesOf(bare.store).promote(1);
    await bare.attempt({ kind: "succeeded" });
    const again = await (await bare.scheduler.jobs.rerun(job)).get();
    expect(again).toMatchObject({ state: "ready" });
    expect(again).not.toHaveProperty("spread");
  });

  test("of a schedule's jobs moves those of its ticks, and not those that people ask for", () => {
    const definition = {
      job: { lane: { queue: "q", priority: 5, tenant: "t", task: "work" }, input: "1", options: { spread: MINUTE } },
    } as unknown as Definition;
    const of = (way: "fired" | "late" | "triggered" | "backfilled") =>
      jobOfTick({ name: "nightly", definition }, { at: 0, way, merged: 0 }, "7000-8000-000000000007" as never).delay;
    expect(of("fired")).toBeGreaterThan(0);
    expect(of("late")).toBe(of("fired"));
    expect([of("triggered"), of("backfilled")]).toEqual([undefined, undefined]);
  });

  test.each([
    ["soon", "duration_invalid"],
    [-1, "duration_invalid"],
    [Number.NaN, "duration_invalid"],
    [null, "duration_invalid"],
    ["25h", "option_invalid"],
  ])("of %o is refused, of a job, a task or a queue", async (spread, code) => {
    const { scheduler, records } = bareScheduler({ tasks: [work] });
    await expect(scheduler.enqueue(work, 1, { spread: spread as number })).rejects.toMatchObject({ code, message: expect.stringMatching(/spread/) });
    expect(await records()).toEqual([]);
    const wrong = task("wrong", { spread: spread as number }, () => {});
    expect(() => bareScheduler({ tasks: [wrong] })).toThrow(expect.objectContaining({ code }));
    expect(() => bareScheduler({ queueDefaults: { mail: { spread: spread as number } } })).toThrow(expect.objectContaining({ code }));
  });
});
