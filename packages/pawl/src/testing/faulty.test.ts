import { describe, expect, test } from "vitest";
import { memoryStore } from "../store/memory/index.js";
import { type Fault, faultyStore } from "./faulty.js";

/** A store with one fault at the second pause of a queue. */
function faultyOnce(fault: Fault) {
  return faultyStore(memoryStore(), (operation, earlier) => (operation === "lanes.pause" && earlier === 1 ? fault : undefined));
}

describe("a faulty store", () => {
  test("fails before anything is done", async () => {
    const store = faultyOnce({ kind: "fail" });
    await store.lanes.pause("queue", "a");
    await expect(store.lanes.pause("queue", "b")).rejects.toThrow("lanes.pause was made to fail");
    await store.lanes.pause("queue", "c");
    expect((await store.lanes.paused()).map(({ name }) => name)).toEqual(["a", "c"]);
  });

  test("loses an answer after it was done", async () => {
    const store = faultyOnce({ kind: "lose", error: new RangeError("cut off") });
    await store.lanes.pause("queue", "a");
    await expect(store.lanes.pause("queue", "b")).rejects.toThrow(RangeError);
    expect(await store.lanes.paused()).toHaveLength(2);
  });

  test.each([
    ["hold", 1],
    ["delay", 2],
  ] as const)("can %s a call, which is then done late or answered late", async (kind, meanwhile) => {
    let go = () => {};
    const until = new Promise<void>((resolve) => {
      go = resolve;
    });
    const store = faultyOnce({ kind, until });
    await store.lanes.pause("queue", "a");
    let answered = false;
    const second = store.lanes.pause("queue", "b").then(() => {
      answered = true;
    });
    expect(await store.lanes.paused()).toHaveLength(meanwhile);
    expect(answered).toBe(false);
    go();
    await second;
    expect(await store.lanes.paused()).toHaveLength(2);
  });
});
