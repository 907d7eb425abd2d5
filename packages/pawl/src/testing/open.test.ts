import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { task } from "../core/jobs/task.js";
import { openTest } from "./open.js";

describe("a pawl whose time is yours", () => {
  test("runs a job of tomorrow in milliseconds, and never early", async () => {
    const ran: string[] = [];
    const remind = task("cart.remind", { input: z.object({ cartId: z.string() }) }, ({ cartId }) => {
      ran.push(cartId);
      return { reminded: true };
    });
    await using world = await openTest({ tasks: [remind] });
    const job = await world.pawl.enqueue(remind, { cartId: "42" }, { delay: "24h" });

    let operations = 0;
    world.pawl.on("store.operation", () => operations++);
    await world.advance("23h59m59s999ms");
    expect(ran).toEqual([]);
    await world.advance(1);
    expect(ran).toEqual(["42"]);
    expect(operations, "a day of polling is slept through").toBeLessThan(100);
    expect(await job.result()).toEqual({ reminded: true });
  });

  test("runs retries one after the other, each at its time", async () => {
    const at: number[] = [];
    const flaky = task("flaky", { retry: ["1m", "1h"] }, () => {
      at.push(world.clock.now());
      throw new Error("not yet");
    });
    await using world = await openTest({ tasks: [flaky] });
    const start = world.clock.now();
    const job = await world.pawl.enqueue(flaky);
    await world.advance("2h");
    expect(at.map((time) => time - start)).toEqual([0, 60_000, 3_660_000]);
    expect(await job.get()).toMatchObject({ state: "dead", attempts: 3, failure: { message: "not yet" } });
  });

  test("drains: lets as much time pass as the jobs need", async () => {
    const done: number[] = [];
    const count = task("count", (n: number) => void done.push(n));
    await using world = await openTest({ tasks: [count] });
    for (const n of [3, 1, 2]) await world.pawl.enqueue(count, n, { delay: `${n}d` });
    expect(await world.drain()).toMatchObject({ succeeded: 3, scheduled: 0 });
    expect(done).toEqual([1, 2, 3]);
  });

  test("times out a handler that hangs, after its timeout and no real time to speak of", async () => {
    const hang = task("hang", { timeout: "10m", retry: 0 }, () => new Promise(() => {}));
    await using world = await openTest({ tasks: [hang] });
    const job = await world.pawl.enqueue(hang);
    await world.advance("9m");
    expect(await job.get()).toMatchObject({ state: "running" });
    await world.advance("2m");
    expect(await job.get()).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
  });

  test("waits for handlers that do real work before it moves on", async () => {
    const real = task("real", { timeout: "1s" }, async () => {
      await sleep(30); // real time passes in it, which the virtual clock must wait for
      return "done";
    });
    await using world = await openTest({ tasks: [real] });
    const job = await world.pawl.enqueue(real);
    await world.advance("1h");
    expect(await job.result()).toBe("done");
  });

  test("repeats itself for a seed", async () => {
    const noop = task("noop", () => {});
    const ids: string[] = [];
    for (let i = 0; i < 2; i++) {
      await using world = await openTest({ tasks: [noop], seed: 7 });
      ids.push((await world.pawl.enqueue(noop)).id);
    }
    expect(ids[0]).toBe(ids[1]);
  });

  test("without a worker leaves the jobs to the test", async () => {
    const noop = task("noop", () => {});
    await using world = await openTest({ tasks: [noop], work: false });
    const job = await world.pawl.enqueue(noop, undefined, { delay: "1h" });
    await world.advance("1h");
    expect(await job.get()).toMatchObject({ state: "ready" });
  });
});
