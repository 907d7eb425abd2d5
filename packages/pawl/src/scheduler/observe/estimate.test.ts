import { afterEach, describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { openTest, type TestPawl } from "../../testing/open.js";

let world: TestPawl;
afterEach(() => world.close());

const SECOND = 1_000;
/** ms; what workers say of their slots is that old, and a start may be off by it */
const REPORT_INTERVAL_MS = 16 * SECOND;

const sleeping = (name: string) => task<number, void>(name, { timeout: "6h" }, (ms) => new Promise((resolve) => world.clock.after(ms, resolve)));
const seconds = (ms: number) => `${ms}ms`;

/** Looks at some jobs of a line again and again until they run, and holds what was said against what became true. */
async function compareEstimates(
  ids: readonly string[],
  every: number,
  leeway = 0,
): Promise<{ readonly worst: number; readonly estimated: number; readonly silent: number }> {
  const told: { readonly id: string; readonly at: number; readonly start: number | undefined }[] = [];
  const open = new Set(ids);
  while (open.size > 0) {
    for (const id of open) {
      const { state, estimatedStart } = await world.pawl.jobs.explain(id);
      if (state !== "ready") open.delete(id);
      else told.push({ id, at: world.clock.now(), start: estimatedStart?.getTime() });
    }
    await world.advance(seconds(every));
  }
  let [worst, estimated, silent] = [1, 0, 0];
  for (const { id, at, start } of told) {
    const [attempt] = (await world.pawl.jobs.history(id)).items;
    const running = attempt ?? { startedAt: new Date(world.worker?.running.find(({ job }) => job === id)?.startedAt ?? 0) };
    const truly = running.startedAt.getTime() - at;
    if (start === undefined) silent++;
    else if (truly > REPORT_INTERVAL_MS) {
      estimated++;
      if (Math.abs(start - at - truly) > leeway) worst = Math.max(worst, (start - at) / truly, truly / Math.max(1, start - at));
    }
  }
  return { worst, estimated, silent };
}

describe("the estimated start on a full worker", () => {
  test.each([
    { slots: 1, ms: 40 * SECOND, jobs: 8 },
    { slots: 4, ms: 60 * SECOND, jobs: 30 },
    { slots: 3, ms: 600 * SECOND, jobs: 12 },
    { slots: 10, ms: 20 * SECOND, jobs: 80 },
  ])("is right within a factor of two: $slots slots, $jobs jobs of $ms ms", async ({ slots, ms, jobs }) => {
    const work = sleeping("work");
    world = await openTest({ tasks: [work], work: { concurrency: slots } });
    // One has ended before, so that it is known how long they take.
    await world.pawl.enqueue(work, ms);
    await world.advance(seconds(ms + REPORT_INTERVAL_MS));
    const ids = (
      await world.pawl.enqueueMany(
        work,
        Array.from({ length: jobs }, () => ms),
      )
    ).map(({ id }) => id);
    await world.advance("7s");
    const { worst, estimated } = await compareEstimates(
      [ids[slots], ids[Math.floor(jobs / 2)], ids.at(-1)] as string[],
      Math.max(7 * SECOND, ms / 6),
    );
    expect(estimated).toBeGreaterThan(5);
    expect(worst).toBeLessThan(2);
  });

  test("is so where all slots began at one moment, and where others took them", async () => {
    const [work, other] = [sleeping("work"), sleeping("other")];
    world = await openTest({ tasks: [work, other], work: { concurrency: 4 } });
    await world.pawl.enqueue(work, 30 * SECOND);
    await world.pawl.enqueue(other, 300 * SECOND);
    await world.advance("320s");
    await world.pawl.enqueueMany(
      other,
      Array.from({ length: 4 }, () => 300 * SECOND),
    );
    await world.advance("7s");
    const ids = (
      await world.pawl.enqueueMany(
        work,
        Array.from({ length: 20 }, () => 30 * SECOND),
      )
    ).map(({ id }) => id);
    const { worst, estimated } = await compareEstimates([ids[0], ids[7], ids.at(-1)] as string[], 20 * SECOND);
    expect(estimated).toBeGreaterThan(40);
    expect(worst).toBeLessThan(2);
  });

  test("is so for each of two tasks that wait for the same slots", async () => {
    const tasks = [sleeping("one"), sleeping("two")];
    world = await openTest({ tasks, work: { concurrency: 4 } });
    for (const one of tasks) await world.pawl.enqueue(one, 30 * SECOND);
    await world.advance("50s");
    const lines = await Promise.all(
      tasks.map((one) =>
        world.pawl.enqueueMany(
          one,
          Array.from({ length: 20 }, () => 30 * SECOND),
        ),
      ),
    );
    await world.advance("7s");
    const { worst, estimated } = await compareEstimates(
      lines.map((line) => line.at(-1)?.id as string),
      11 * SECOND,
      // Whose turn it is of two is not known: a round sooner or later is the same to it.
      31 * SECOND,
    );
    expect(estimated).toBeGreaterThan(20);
    expect(worst).toBeLessThan(2);
  });

  test("is not given, and never at once, while nobody knows how long its handlers take; what they hold and since when is told", async () => {
    const ends: (() => void)[] = [];
    const endless = task("endless", { timeout: "6h" }, () => new Promise<void>((resolve) => void ends.push(resolve)));
    world = await openTest({ tasks: [endless], work: { concurrency: 2 } });
    const since = world.clock.now();
    const ids = (await world.pawl.enqueueMany(endless, [{}, {}, {}])).map(({ id }) => id);
    await world.advance("30m");
    const told = await world.pawl.jobs.explain(ids[2] as string);
    expect(told.reasons).toEqual([
      { kind: "full", slots: 2, workers: 1, since: new Date(since) },
      { kind: "queued_behind", ahead: 0 },
    ]);
    expect(told).not.toHaveProperty("estimatedStart");
    expect(told.text).toBe(
      `All 2 slots of 1 worker are taken; the oldest handler has been running since ${new Date(since).toISOString()}, for 30 min. It is next in its lane.`,
    );
    const own = await world.pawl.forTenant("default").jobs.explain(ids[2] as string);
    expect(own.reasons[0]).toEqual({ kind: "full" });
    expect(own.text).toMatch(/^All slots of the workers that can run it are taken\./);
    for (const end of ends) end();
  });

  test.each([
    ["the slots of its task", { concurrency: { total: 8, tasks: { work: 1 } } }],
    ["its resources", { concurrency: 8, provides: { resources: { memory: 10 } } }],
  ])("is not at once where %s are what it waits for, however many slots are free", async (_, options) => {
    const work = task<number, void>(
      "work",
      { timeout: "6h", needs: { resources: { memory: 8 } } },
      (ms) => new Promise((r) => world.clock.after(ms, r)),
    );
    world = await openTest({ tasks: [work], work: { provides: { resources: { memory: 100 } }, ...options } });
    const jobs = await world.pawl.enqueueMany(work, [600 * SECOND, 600 * SECOND]);
    await world.advance("20s");
    const told = await jobs[1]?.explain();
    expect(told?.reasons[0]).toMatchObject({ kind: "full", workers: 0, shut: 1 });
    expect(told).not.toHaveProperty("estimatedStart");
    expect(told?.text).toMatch(/^1 worker that can run it has no room for one more of its kind /);
  });

  test("is at once again when a slot is free", async () => {
    const work = sleeping("work");
    world = await openTest({ tasks: [work], work: { concurrency: 2, queues: ["default"] } });
    await world.pawl.enqueueMany(work, [60 * SECOND, 60 * SECOND]);
    await world.advance("10s");
    await world.pawl.queues.pause("default");
    const late = await world.pawl.enqueue(work, 1);
    expect((await late.explain()).reasons.map(({ kind }) => kind)).toEqual(["paused", "full", "queued_behind"]);
    await world.advance("60s");
    expect((await late.explain()).reasons.map(({ kind }) => kind)).toEqual(["paused", "queued_behind"]);
  });

  test("a worker that is about to stop serves nobody", async () => {
    const work = sleeping("work");
    world = await openTest({ tasks: [work], work: false });
    const worker = await world.pawl.work({ concurrency: 2, shutdownGrace: "10m" });
    await world.pawl.enqueue(work, 300 * SECOND);
    await world.advance("1s");
    const stopping = worker.stop();
    await world.advance("1s");
    const late = await world.pawl.enqueue(work, 1);
    expect((await late.explain()).reasons[0]).toEqual({ kind: "unserved", lacks: [{ kind: "worker" }] });
    await world.advance("10m");
    await stopping;
  });
});
