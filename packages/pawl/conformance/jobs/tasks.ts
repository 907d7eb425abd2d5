import { expect } from "vitest";
import type { TaskRecord } from "../../src/core/jobs/task-record.js";
import type { Test } from "../suite.js";

const MAIL: TaskRecord = { name: "mail", defaults: { queue: "bulk", priority: 2, finishWithin: 60_000, maxCrashes: 5, atMostOnce: true } };
const CHARGE: TaskRecord = { name: "charge", defaults: {} };

export function taskTests(test: Test): void {
  test("a task is known as it was published, to those who ask for its name", async (w) => {
    expect(await w.store.tasks.get(["mail"])).toEqual([]);
    expect(await w.store.tasks.publish([MAIL, CHARGE])).toBe(2);
    expect(await w.store.tasks.get(["mail"])).toEqual([MAIL]);
    expect(await w.store.tasks.get(["charge", "nobody"])).toEqual([CHARGE]);
    expect(await w.store.tasks.get(["mail", "charge"])).toHaveLength(2);
    expect(await w.store.tasks.get([])).toEqual([]);
  });

  test("publishing a task again writes only what has changed, and the last one who says so is right", async (w) => {
    await w.store.tasks.publish([MAIL, CHARGE]);
    expect(await w.store.tasks.publish([MAIL, CHARGE])).toBe(0);
    const quicker: TaskRecord = { name: "mail", defaults: { queue: "urgent" } };
    expect(await w.store.tasks.publish([quicker, CHARGE])).toBe(1);
    expect(await w.store.tasks.get(["mail"])).toEqual([quicker]);
    expect(await w.store.tasks.publish([MAIL])).toBe(1);
    expect(await w.store.tasks.get(["mail"])).toEqual([MAIL]);
    expect(await w.store.tasks.publish([])).toBe(0);
  });

  test("names and queues of tasks are kept letter by letter", async (w) => {
    const odd: TaskRecord = { name: `a "quoted" \\ {task}, ü`, defaults: { queue: `b "quoted" \\ {queue}, ß` } };
    await w.store.tasks.publish([odd]);
    expect(await w.store.tasks.get([odd.name])).toEqual([odd]);
    expect(await w.store.tasks.publish([odd])).toBe(0);
  });
}
