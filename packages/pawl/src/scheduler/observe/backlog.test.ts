import { describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { serviceOf } from "../../service-of.js";
import { openTest } from "../../testing/open.js";

const work = task<number, void>("work", () => {});
const serial = task<number, void>("serial", { limits: [{ name: "one by one", key: () => "k", serial: true }] }, () => {});

describe("depths", () => {
  test("tell what waits, for what, how long, and of whom", async () => {
    await using world = await openTest({ tasks: [work, serial], work: false });
    const { pawl } = world;
    await pawl.enqueueMany(work, [1, 2], { tenant: "a", queue: "mail", priority: 2 });
    await pawl.enqueueMany(serial, [1, 2, 3], { tenant: "b" });
    await (await pawl.enqueue(work, 3)).pause();
    await pawl.queues.pause("mail");
    await world.advance("90s");
    const { rows, waits, parked, tenants, paused } = await serviceOf(pawl).backlog({ tenants: ["a", "b", "c"] });
    expect(rows.map(({ queue, task: name, counts }) => [queue, name, counts.ready, counts.parked])).toEqual([
      ["default", "serial", 1, 2],
      ["default", "work", 0, 1],
      ["mail", "work", 2, 0],
    ]);
    expect(waits).toEqual([
      { queue: "default", priority: 5, longest: 90_000 },
      { queue: "mail", priority: 2, longest: 90_000 },
    ]);
    expect(parked).toEqual({ paused: 1, concurrency: 0, serial: 2, rate: 0, key_paused: 0 });
    expect(tenants).toEqual({ a: 2, b: 3, c: 0 });
    expect(paused).toEqual([{ kind: "queue", name: "mail" }]);
  });

  test("of nothing are nothing", async () => {
    await using world = await openTest({ work: false });
    expect(await serviceOf(world.pawl).backlog()).toEqual({
      rows: [],
      waits: [],
      parked: { paused: 0, concurrency: 0, serial: 0, rate: 0, key_paused: 0 },
      tenants: {},
      paused: [],
    });
  });

  test("tell the part of each reason where more are parked than are looked at", async () => {
    await using world = await openTest({ tasks: [serial], work: false });
    await world.pawl.enqueueMany(
      serial,
      Array.from({ length: 12_001 }, (_, n) => n),
    );
    expect((await serviceOf(world.pawl).backlog()).parked.serial).toBe(12_000);
  });

  test.each([
    ["a misspelt option", { tenant: ["a"] }, /of\.tenant .*did you mean tenants\?/],
    ["a tenant that is no name", { tenants: [5] }, /tenant/],
    ["too many tenants", { tenants: Array.from({ length: 101 }, (_, n) => `t${n}`) }, /of\.tenants.*101 are more than 100/],
  ])("refuse %s", async (_, of, says) => {
    await using world = await openTest({ work: false });
    await expect(serviceOf(world.pawl).backlog(of as object)).rejects.toThrow(says);
  });
});
