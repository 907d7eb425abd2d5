import { describe, expect, test } from "vitest";
import type { Events } from "../../core/observe/event.js";
import { Bus } from "../../runtime/process/bus.js";
import { virtualClock } from "../../testing/clock.js";
import { faultyStore } from "../../testing/faulty.js";
import { memoryStore } from "../memory/index.js";
import type { Wakeup } from "../port/index.js";
import { timeCalls } from "./time-calls.js";

describe("an observed store", () => {
  test("tells of every operation, how long it took and how it failed", async () => {
    const clock = virtualClock();
    const bus = new Bus();
    const slow = new Promise<void>((resolve) => clock.after(7, resolve));
    const inner = faultyStore(memoryStore(), (operation) => {
      if (operation === "records.counts") return { kind: "hold", until: slow };
      return operation === "lanes.paused" ? { kind: "fail", error: "no" } : undefined;
    });
    const store = timeCalls(inner, bus, clock);
    const heard: Events["store.operation"][] = [];
    bus.on("store.operation", (event) => heard.push(event));
    const counting = store.records.counts();
    await clock.advance(7);
    await counting;
    await expect(store.lanes.paused()).rejects.toBe("no");
    expect(heard).toEqual([
      { operation: "records.counts", duration: 7 },
      { operation: "lanes.paused", duration: 0, error: "no" },
    ]);
  });

  test("measures nothing while nobody hears", async () => {
    const clock = virtualClock();
    const store = timeCalls(memoryStore(), new Bus(), { ...clock, monotonic: () => expect.fail("it was measured") });
    await store.records.counts();
  });

  test("passes on the store's wakeups and its own, until they are not wanted", async () => {
    const store = timeCalls(memoryStore(), new Bus(), virtualClock());
    const heard: Wakeup["kind"][] = [];
    const stop = store.onWakeup(({ kind }) => heard.push(kind));
    await store.lanes.pause("queue", "q");
    store.sendWakeup({ kind: "scheduled", dueIn: 0 });
    expect(heard).toEqual(["lanes", "scheduled"]);
    stop();
    store.sendWakeup({ kind: "lanes" });
    await store.lanes.resume("queue", "q");
    expect(heard).toHaveLength(2);
  });
});
