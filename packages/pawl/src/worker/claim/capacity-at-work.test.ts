import { afterEach, describe, expect, test } from "vitest";
import { type AnyTask, task } from "../../core/jobs/task.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { openTest, type TestPawl } from "../../testing/open.js";
import type { WorkerOptions } from "../options.js";

let world: TestPawl;
afterEach(() => world.close());

const many = (count: number) => Array.from({ length: count }, () => ({}));

async function open(tasks: readonly AnyTask[], work: WorkerOptions | false): Promise<TestPawl> {
  world = await openTest({ tasks, work });
  return world;
}

/** A task that runs for a while and notes how much of an amount is in use. */
function taskNeeding(name: string, memory: number, ms: number, use: { now: number; most: number }, starts: number[] = []) {
  return task(name, { needs: { resources: { memory } } }, async () => {
    use.now += memory;
    use.most = Math.max(use.most, use.now);
    starts.push(world.clock.monotonic());
    await new Promise<void>((resolve) => world.clock.after(ms, resolve));
    use.now -= memory;
  });
}

describe("resources", () => {
  test("are never oversubscribed, and nothing waits that would fit", async () => {
    const use = { now: 0, most: 0 };
    const tasks = [taskNeeding("small", 1, 100, use), taskNeeding("half", 0.5, 70, use), taskNeeding("large", 5, 300, use)];
    await open(tasks, { concurrency: 100, provides: { resources: { memory: 8 } } });
    for (const one of tasks) await world.pawl.enqueueMany(one, many(40));
    await world.advance("1s");
    expect(use.most).toBe(8);
    await world.advance("60s");
    expect(await world.pawl.counts()).toMatchObject({ succeeded: 120 });
    expect(use).toEqual({ now: 0, most: 8 });
  });

  test("tasks that need nothing are not held back by them", async () => {
    const use = { now: 0, most: 0 };
    const free = task("free", async () => {});
    const large = taskNeeding("large", 8, 10_000, use);
    await open([large, free], { concurrency: 4, provides: { resources: { memory: 8 } } });
    await world.pawl.enqueueMany(large, many(10));
    await world.pawl.enqueueMany(free, many(100));
    await world.advance("1s");
    expect(await world.pawl.counts({ task: "free" })).toMatchObject({ succeeded: 100 });
    expect(await world.pawl.counts({ task: "large" })).toMatchObject({ running: 1, ready: 9 });
  });

  test("a handler that ignores its signal keeps what it uses until it has truly ended", async () => {
    let end = () => {};
    const deaf = task(
      "deaf",
      { needs: { resources: { memory: 8 } }, timeout: "1s", retry: 0 },
      () => new Promise<void>((resolve) => (end = resolve)),
    );
    await open([deaf], { concurrency: 4, provides: { resources: { memory: 8 } } });
    await world.pawl.enqueueMany(deaf, many(2));
    await world.advance("5s");
    expect(await world.pawl.counts(), "its job is settled, its slot free").toMatchObject({ dead: 1, ready: 1 });
    expect(world.worker?.status()).toMatchObject({ running: 0, overrun: 1, resources: { memory: 8 } });
    end();
    await world.advance("1ms");
    expect(await world.pawl.counts()).toMatchObject({ dead: 1, running: 1 });
    end();
  });

  test("a large job starts within the patience and the longest of what runs by then, beside an endless stream of small ones", async () => {
    const use = { now: 0, most: 0 };
    const starts: number[] = [];
    const small = taskNeeding("small", 1, 1_000, use);
    const large = taskNeeding("large", 8, 1_000, use, starts);
    await open([small, large], { concurrency: 100, provides: { resources: { memory: 8 } } });
    // They come one by one, so that never more than one ends at a time.
    for (let n = 0; n < 40; n++) {
      await world.pawl.enqueueMany(small, many(8));
      await world.advance(125);
    }
    const since = world.clock.monotonic();
    await world.pawl.enqueue(large, {});
    await world.advance(DEFAULTS.capacity.patience - 500);
    expect(starts, "until then it has no room").toEqual([]);
    await world.advance("2s");
    expect(starts).toHaveLength(1);
    expect((starts[0] as number) - since).toBeLessThanOrEqual(DEFAULTS.capacity.patience + 1_000 + 200);
    expect(use.most).toBe(8);
    expect((await world.pawl.counts({ task: "small" })).ready, "the stream never ended").toBeGreaterThan(0);
    await world.advance("2s");
    expect(use.now, "and goes on after it").toBe(8);
  });
});

describe("capabilities", () => {
  const film = task("film", { needs: { capabilities: ["gpu"] } }, async () => "done");
  const mail = task("mail", async () => "sent");

  test("a job goes to a worker that has them, and is reported while there is none", async () => {
    await open([film, mail], { name: "plain", provides: { capabilities: ["eu"] } });
    await world.pawl.enqueue(film, {});
    await world.pawl.enqueue(mail, {});
    await world.advance("5s");
    expect(await world.pawl.counts({ task: "mail" })).toMatchObject({ succeeded: 1 });
    expect(await world.pawl.counts({ task: "film" })).toMatchObject({ ready: 1 });
    const [lane] = (await world.pawl.lanes.list({ unserved: true })).items;
    expect(lane).toMatchObject({
      lane: { task: "film" },
      lacks: [{ kind: "capability", capability: "gpu" }],
      why: "no live worker that has its task has the capability gpu",
    });
    await world.pawl.work({ name: "fast", provides: { capabilities: ["gpu", "eu"] } });
    expect((await world.pawl.lanes.list({ unserved: true })).items).toEqual([]);
    await world.advance("3s");
    expect(await world.pawl.counts({ task: "film" })).toMatchObject({ succeeded: 1 });
  });

  test("workers are known to each other by what they serve, for as long as they live", async () => {
    await open([film, mail], {
      name: "plain",
      queues: ["default"],
      provides: { capabilities: ["eu"], resources: { cpu: 2 } },
      concurrency: { total: 3, tasks: { film: 1 } },
    });
    const other = await world.pawl.work({ name: "other", tasks: ["mail"] });
    await world.advance("10m");
    const live = (await world.pawl.workers.list()).items;
    expect(live).toMatchObject([
      { name: "other", tasks: ["mail"], provides: { capabilities: [], resources: {} }, concurrency: { total: 10 } },
      {
        name: "plain",
        tasks: ["film", "mail"],
        queues: ["default"],
        provides: { capabilities: ["eu"], resources: { cpu: 2 } },
        concurrency: { total: 3, tasks: { film: 1 } },
      },
    ]);
    const stopping = other.stop();
    await world.advance("1s");
    await stopping;
    expect((await world.pawl.workers.list()).items.map(({ name }) => name)).toEqual(["plain"]);
    expect(await world.pawl.workers.get("plain")).toEqual((await world.pawl.workers.list()).items[0]);
    expect(await world.pawl.workers.get("other")).toBeUndefined();
    expect(world.pawl.workers.local().map(({ ref }) => ref.name)).toEqual(["plain"]);
  });

  test("of several workers with one name the newest is got by it, and a name that is none is refused", async () => {
    await open([mail], { name: "ana" });
    await world.advance("5s");
    const newer = await world.pawl.work({ name: "ana" });
    await world.idle();
    expect(await world.pawl.workers.get("ana")).toMatchObject({ instance: newer.ref.instance });
    await expect(world.pawl.workers.get("")).rejects.toMatchObject({ code: "name_invalid" });
  });

  test("lanes are listed with the number of their workers, or only those that nobody serves", async () => {
    await open([film, mail], { name: "plain" });
    await world.pawl.enqueue(film, {});
    const lane = { queue: "default", priority: 5, tenant: "default", task: "film" };
    const unserved = { lane, workers: 0, lacks: [{ kind: "capability", capability: "gpu" }], why: expect.stringContaining("gpu") };
    expect((await world.pawl.lanes.list()).items).toEqual([unserved]);
    expect((await world.pawl.lanes.list({ unserved: true })).items).toEqual([unserved]);
    await expect(world.pawl.lanes.list({ unserverd: true } as object)).rejects.toThrow(/unserverd .*did you mean unserved/);
    await expect(world.pawl.lanes.list({ unserved: "yes" } as never)).rejects.toThrow(/unserved .*neither true nor false/);
  });
});

test("what nobody serves is told for every lane: no worker at all, none with the task, more of a resource than any has", async () => {
  const film = task("film", { needs: { resources: { memory: 16 } } }, async () => {});
  const mail = task("mail", async () => {});
  await open([film, mail], false);
  await world.pawl.enqueue(film, {});
  await world.pawl.enqueue(mail, {}, { tenant: "acme", priority: "high" });
  const whys = async () => (await world.pawl.lanes.list({ unserved: true })).items.map(({ lane, why }) => `${lane.tenant} ${lane.task}: ${why}`);
  expect(await whys()).toEqual(["default film: no worker is live", "acme mail: no worker is live"]);
  await world.pawl.work({ tasks: ["film"], provides: { resources: { memory: 8 } } });
  await world.idle();
  expect(await whys()).toEqual([
    "default film: it needs 16 of memory, and the live workers that have its task have 8 at most",
    "acme mail: no live worker has the task mail",
  ]);
});

describe("bad options", () => {
  test.each([
    [{ provides: "gpu" }, /provides is invalid: .*not an object/],
    [{ provides: { capabilities: "gpu" } }, /provides.capabilities is invalid: "gpu"/],
    [{ provides: { capabilities: [7] } }, /capability/],
    [{ provides: { resources: { memory: 0 } } }, /provides.resources.memory/],
    [{ provides: { resources: { memory: "8 GB" } } }, /provides.resources.memory/],
    [{ provides: { resources: [8] } }, /provides.resources is invalid: an array/],
    [{ provides: { resource: { memory: 1 } } }, /provides.resource .*did you mean resources/],
    [{ resources: { memory: 1 } }, /there is no such option.*provides/],
  ])("%j is refused by name", async (options, message) => {
    await open([], false);
    await expect(world.pawl.work(options as never)).rejects.toThrow(message);
  });

  test("a job has no needs of its own: they belong to its task", async () => {
    const film = task("film", async () => {});
    await open([film], false);
    await expect(world.pawl.enqueue(film, {}, { needs: { capabilities: ["gpu"] } } as never)).rejects.toMatchObject({ code: "option_invalid" });
  });

  test("those of a task are refused where it is written", async () => {
    await open([], false);
    expect(() => task("film", { needs: { resources: { memory: -1 } } }, async () => {})).toThrow(/film.needs.resources.memory/);
    expect(() => task("film", { breaker: { minOutcomes: 0 } }, async () => {})).toThrow(/film.breaker.minOutcomes/);
  });
});
