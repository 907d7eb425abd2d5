import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import { type AnyTask, task } from "../../core/jobs/task.js";
import type { Store } from "../../store/port/index.js";
import { faultyStore } from "../../testing/faulty.js";
import type { WorkerOptions } from "../options.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

/** A task that ignores its signal: each of its handlers ends when its gate is opened. */
function deaf(name = "deaf", timeout = "1s") {
  const barriers: ReturnType<typeof barrier<void>>[] = [];
  const work = task(name, { timeout: timeout as `${number}s`, retry: 0 }, async () => {
    const end = barrier<void>();
    barriers.push(end);
    await end.opened;
  });
  return { work, barriers };
}

const inputs = (count: number) => Array.from({ length: count }, () => ({}));

async function working(tasks: readonly AnyTask[], options: WorkerOptions, around?: (store: Store) => Store) {
  fixture = new MemoryFixture({ tasks, ...(around === undefined ? {} : { wrapStore: around }) });
  return fixture.work(options);
}

describe("a handler that goes on after its time", () => {
  test("keeps its slot until it ends: no more handlers run than there are slots", async () => {
    const { work, barriers } = deaf();
    const worker = await working([work], { concurrency: 2 });
    await fixture.enqueueMany(work, inputs(20));
    await fixture.clock.advance(10_000);
    expect(barriers).toHaveLength(2);
    expect(worker.status()).toMatchObject({ running: 0, overrun: 2, free: 0 });
    barriers[0]?.open();
    await fixture.clock.advance(500);
    expect(barriers).toHaveLength(3);
    expect(worker.status()).toMatchObject({ running: 1, overrun: 1, free: 0 });
  });

  test.each([
    { of: "its queue", most: { queues: { default: 1 } } },
    { of: "its task", most: { tasks: { deaf: 1 } } },
  ])("keeps the slot of $of as well", async ({ most }) => {
    const { work, barriers } = deaf();
    await working([work], { concurrency: { total: 5, ...most } });
    await fixture.enqueueMany(work, inputs(5));
    await fixture.clock.advance(10_000);
    expect(barriers).toHaveLength(1);
    barriers[0]?.open();
    await fixture.clock.advance(500);
    expect(barriers).toHaveLength(2);
  });

  test("keeps it too where its job was cancelled", async () => {
    const { work, barriers } = deaf("deaf", "500s");
    const worker = await working([work], { concurrency: 1 });
    const id = await fixture.enqueue(work);
    await fixture.clock.quiet();
    await fixture.inner.jobs.cancel("everyone", id, "enough");
    await fixture.enqueueMany(work, inputs(3));
    await fixture.clock.advance(10_000);
    expect(worker.status()).toMatchObject({ overrun: 1, running: 0, free: 0 });
    expect(barriers).toHaveLength(1);
  });

  test("keeps it too where its lease was lost", async () => {
    const { work, barriers } = deaf("deaf", "500s");
    const around = (store: Store) => ({ ...store, leases: { ...store.leases, renew: async () => ({ held: [] }) } });
    const worker = await working([work], { concurrency: 1 }, around);
    await fixture.enqueueMany(work, inputs(3));
    await fixture.clock.advance(10_000);
    expect(worker.status()).toMatchObject({ overrun: 1, running: 0, free: 0 });
    expect(barriers).toHaveLength(1);
  });

  test("is not claimed ahead of: what nobody here can start is left to others", async () => {
    const { work, barriers } = deaf();
    const quick = task("quick", () => {});
    let claims = 0;
    const worker = await working([work, quick], { concurrency: 2 }, (store) =>
      faultyStore(store, (operation) => {
        if (operation === "leases.claim") claims++;
        return undefined;
      }),
    );
    await fixture.enqueueMany(quick, inputs(50));
    await fixture.clock.advance(1_000);
    await fixture.enqueueMany(work, inputs(2));
    await fixture.clock.advance(5_000);
    expect(worker.status()).toMatchObject({ overrun: 2, running: 0, free: 0 });
    claims = 0;
    const ids = await fixture.enqueueMany(quick, inputs(50));
    await fixture.clock.advance(10_000);
    expect(claims).toBe(0);
    expect(worker.status()).toMatchObject({ buffered: 0 });
    expect(await fixture.state(ids[0] as never)).toBe("ready");
    for (const end of barriers) end.open();
    await fixture.clock.advance(1_000);
    expect(await fixture.state(ids[49] as never)).toBe("succeeded");
  });
});

describe("a worker whose handlers are lost", () => {
  test("is stuck when that is all of its slots for 30 s, and says so once", async () => {
    const { work } = deaf();
    const worker = await working([work], { concurrency: 2 });
    await fixture.enqueueMany(work, inputs(20));
    await fixture.clock.advance(1_000 + 29_900);
    expect([worker.status().stuck, fixture.eventsNamed("worker.stuck")]).toEqual([false, []]);
    await fixture.clock.advance(200);
    expect(worker.status().stuck).toBe(true);
    await fixture.clock.advance(60_000);
    expect(fixture.eventsNamed("worker.stuck")).toEqual([{ worker: worker.ref.name, overrun: 2, concurrency: 2 }]);
  });

  test("is not stuck by those that end late, however many", async () => {
    const { work, barriers } = deaf();
    await working([work], { concurrency: 2 });
    await fixture.enqueueMany(work, inputs(20));
    for (let round = 0; round < 5; round++) {
      await fixture.clock.advance(25_000);
      for (const end of barriers) end.open();
    }
    expect(fixture.eventsNamed("worker.stuck")).toEqual([]);
  });

  test("may be told how many are too many: it takes nothing more, gives back what it holds, and lets what runs finish", async () => {
    const { work } = deaf("deaf");
    const slow = deaf("slow", "500s");
    const worker = await working([work, slow.work], { concurrency: 3, mostLost: 1 });
    await fixture.enqueue(work);
    await fixture.clock.advance(2_000);
    const running = await fixture.enqueue(slow.work);
    await fixture.clock.advance(30_000);
    expect(worker.status()).toMatchObject({ stuck: true, running: 1, overrun: 1, free: 0, buffered: 0 });
    const later = await fixture.enqueueMany(slow.work, inputs(3));
    await fixture.clock.advance(5_000);
    slow.barriers[0]?.open();
    await fixture.clock.advance(1_000);
    expect(await fixture.state(running)).toBe("succeeded");
    expect(await Promise.all(later.map((id) => fixture.state(id)))).toEqual(["ready", "ready", "ready"]);
  });

  test("takes jobs again once enough of them have ended after all", async () => {
    const { work, barriers } = deaf();
    const worker = await working([work], { concurrency: 2 });
    await fixture.enqueueMany(work, inputs(5));
    await fixture.clock.advance(32_000);
    expect(worker.status()).toMatchObject({ stuck: true, free: 0 });
    barriers[0]?.open();
    await fixture.clock.advance(500);
    expect(worker.status()).toMatchObject({ stuck: false, running: 1, overrun: 1 });
    expect(fixture.eventsNamed("worker.unstuck")).toHaveLength(1);
  });

  test.each([0, 3, 1.5])("refuses %d as how many are too many of two", async (mostLost) => {
    const { work } = deaf();
    fixture = new MemoryFixture({ tasks: [work] });
    expect(() => fixture.worker({ concurrency: 2, mostLost })).toThrow(expect.objectContaining({ code: "option_invalid" }));
  });
});
