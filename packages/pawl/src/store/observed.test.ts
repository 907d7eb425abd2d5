import { describe, expect, test } from "vitest";
import type { Events } from "../core/event.js";
import { Bus } from "../runtime/bus.js";
import { virtualClock } from "../testing/clock.js";
import { faultyStore } from "../testing/faulty.js";
import { memoryStore } from "./memory/index.js";
import { observed } from "./observed.js";
import type { Hint } from "./port.js";

describe("an observed store", () => {
  test("tells of every operation, how long it took and how it failed", async () => {
    const clock = virtualClock();
    const bus = new Bus();
    const slow = new Promise<void>((resolve) => clock.after(7, resolve));
    const inner = faultyStore(memoryStore(), (operation) => {
      if (operation === "records.counts") return { kind: "hold", until: slow };
      return operation === "lanes.paused" ? { kind: "fail", error: "no" } : undefined;
    });
    const store = observed(inner, bus, clock);
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
    const store = observed(memoryStore(), new Bus(), { ...clock, monotonic: () => expect.fail("it was measured") });
    await store.records.counts();
  });

  test("passes on the store's hints and its own, until they are not wanted", async () => {
    const store = observed(memoryStore(), new Bus(), virtualClock());
    const heard: Hint["kind"][] = [];
    const stop = store.onHint(({ kind }) => heard.push(kind));
    await store.lanes.pause("queue", "q");
    store.hint({ kind: "scheduled", dueIn: 0 });
    expect(heard).toEqual(["lanes", "scheduled"]);
    stop();
    store.hint({ kind: "lanes" });
    await store.lanes.resume("queue", "q");
    expect(heard).toHaveLength(2);
  });
});
