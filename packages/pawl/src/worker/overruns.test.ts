import { afterEach, describe, expect, test } from "vitest";
import { gate, World } from "../../../../test/support/world.js";
import type { Store } from "../store/port.js";
import { faultyStore } from "../testing/faulty.js";
import type { WorkerOptions } from "./options.js";
import { type AnyTask, task } from "./task.js";

let world: World;
afterEach(() => world.close());

/** A task that ignores its signal: each of its handlers ends when its gate is opened. */
function deaf(name = "deaf", timeout = "1s") {
  const gates: ReturnType<typeof gate<void>>[] = [];
  const work = task(name, { timeout: timeout as `${number}s`, retry: 0 }, async () => {
    const end = gate<void>();
    gates.push(end);
    await end.opened;
  });
  return { work, gates };
}

const inputs = (count: number) => Array.from({ length: count }, () => ({}));

async function working(tasks: readonly AnyTask[], options: WorkerOptions, around?: (store: Store) => Store) {
  world = new World({ tasks, ...(around === undefined ? {} : { around }) });
  return world.work(options);
}

describe("a handler that goes on after its time", () => {
  test("keeps its slot until it ends: no more handlers run than there are slots", async () => {
    const { work, gates } = deaf();
    const worker = await working([work], { concurrency: 2 });
    await world.enqueueMany(work, inputs(20));
    await world.clock.advance(10_000);
    expect(gates).toHaveLength(2);
    expect(worker.status()).toMatchObject({ running: 0, overrun: 2, free: 0 });
    gates[0]?.open();
    await world.clock.advance(500);
    expect(gates).toHaveLength(3);
    expect(worker.status()).toMatchObject({ running: 1, overrun: 1, free: 0 });
  });

  test.each([
    { of: "its queue", slots: { queues: { default: 1 } } },
    { of: "its task", slots: { tasks: { deaf: 1 } } },
  ])("keeps the slot of $of as well", async ({ slots }) => {
    const { work, gates } = deaf();
    await working([work], { concurrency: 5, slots });
    await world.enqueueMany(work, inputs(5));
    await world.clock.advance(10_000);
    expect(gates).toHaveLength(1);
    gates[0]?.open();
    await world.clock.advance(500);
    expect(gates).toHaveLength(2);
  });

  test("keeps it too where its job was cancelled", async () => {
    const { work, gates } = deaf("deaf", "500s");
    const worker = await working([work], { concurrency: 1 });
    const id = await world.enqueue(work);
    await world.clock.quiet();
    await world.inner.jobs.cancel("everyone", id, "enough");
    await world.enqueueMany(work, inputs(3));
    await world.clock.advance(10_000);
    expect(worker.status()).toMatchObject({ overrun: 1, running: 0, free: 0 });
    expect(gates).toHaveLength(1);
  });

  test("keeps it too where its lease was lost", async () => {
    const { work, gates } = deaf("deaf", "500s");
    const around = (store: Store) => ({ ...store, leases: { ...store.leases, renew: async () => ({ held: [] }) } });
    const worker = await working([work], { concurrency: 1 }, around);
    await world.enqueueMany(work, inputs(3));
    await world.clock.advance(10_000);
    expect(worker.status()).toMatchObject({ overrun: 1, running: 0, free: 0 });
    expect(gates).toHaveLength(1);
  });

  test("is not claimed ahead of: what nobody here can start is left to others", async () => {
    const { work, gates } = deaf();
    const quick = task("quick", () => {});
    let claims = 0;
    const worker = await working([work, quick], { concurrency: 2 }, (store) =>
      faultyStore(store, (operation) => {
        if (operation === "leases.claim") claims++;
        return undefined;
      }),
    );
    await world.enqueueMany(quick, inputs(50));
    await world.clock.advance(1_000);
    await world.enqueueMany(work, inputs(2));
    await world.clock.advance(5_000);
    expect(worker.status()).toMatchObject({ overrun: 2, running: 0, free: 0 });
    claims = 0;
    const ids = await world.enqueueMany(quick, inputs(50));
    await world.clock.advance(10_000);
    expect(claims).toBe(0);
    expect(worker.status()).toMatchObject({ buffered: 0 });
    expect(await world.state(ids[0] as never)).toBe("ready");
    for (const end of gates) end.open();
    await world.clock.advance(1_000);
    expect(await world.state(ids[49] as never)).toBe("succeeded");
  });
});

describe("a worker whose handlers are lost", () => {
  test("is stuck when that is all of its slots for 30 s, and says so once", async () => {
    const { work } = deaf();
    const worker = await working([work], { concurrency: 2 });
    await world.enqueueMany(work, inputs(20));
    await world.clock.advance(1_000 + 29_900);
    expect([worker.status().stuck, world.heard("worker.stuck")]).toEqual([false, []]);
    await world.clock.advance(200);
    expect(worker.status().stuck).toBe(true);
    await world.clock.advance(60_000);
    expect(world.heard("worker.stuck")).toEqual([{ worker: worker.ref.name, overrun: 2, concurrency: 2 }]);
  });

  test("is not stuck by those that end late, however many", async () => {
    const { work, gates } = deaf();
    await working([work], { concurrency: 2 });
    await world.enqueueMany(work, inputs(20));
    for (let round = 0; round < 5; round++) {
      await world.clock.advance(25_000);
      for (const end of gates) end.open();
    }
    expect(world.heard("worker.stuck")).toEqual([]);
  });

  test("may be told how many are too many: it takes nothing more, gives back what it holds, and lets what runs finish", async () => {
    const { work } = deaf("deaf");
    const slow = deaf("slow", "500s");
    const worker = await working([work, slow.work], { concurrency: 3, mostLost: 1 });
    await world.enqueue(work);
    await world.clock.advance(2_000);
    const running = await world.enqueue(slow.work);
    await world.clock.advance(30_000);
    expect(worker.status()).toMatchObject({ stuck: true, running: 1, overrun: 1, free: 0, buffered: 0 });
    const later = await world.enqueueMany(slow.work, inputs(3));
    await world.clock.advance(5_000);
    slow.gates[0]?.open();
    await world.clock.advance(1_000);
    expect(await world.state(running)).toBe("succeeded");
    expect(await Promise.all(later.map((id) => world.state(id)))).toEqual(["ready", "ready", "ready"]);
  });

  test("takes jobs again once enough of them have ended after all", async () => {
    const { work, gates } = deaf();
    const worker = await working([work], { concurrency: 2 });
    await world.enqueueMany(work, inputs(5));
    await world.clock.advance(32_000);
    expect(worker.status()).toMatchObject({ stuck: true, free: 0 });
    gates[0]?.open();
    await world.clock.advance(500);
    expect(worker.status()).toMatchObject({ stuck: false, running: 1, overrun: 1 });
    expect(world.heard("worker.unstuck")).toHaveLength(1);
  });

  test.each([0, 3, 1.5])("refuses %d as how many are too many of two", async (mostLost) => {
    const { work } = deaf();
    world = new World({ tasks: [work] });
    expect(() => world.worker({ concurrency: 2, mostLost })).toThrow(expect.objectContaining({ code: "option_invalid" }));
  });
});
