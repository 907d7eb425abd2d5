import { expect, test } from "vitest";
import { runDuty } from "../../../conformance/duties.js";
import { memoryStore } from "../memory/index.js";
import type { Store } from "../port/index.js";
import { type Operation, wrapStore } from "./wrap-store.js";

const NOT_WRAPPED = new Set(["engine", "handoff"]);

/** Every verb of every noun, as the store itself has them. */
function verbsOf(store: Store): readonly (readonly [operation: string, call: (argument: string) => Promise<unknown>])[] {
  return Object.entries(store).flatMap(([noun, verbs]) =>
    typeof verbs !== "object" || NOT_WRAPPED.has(noun)
      ? []
      : Object.entries(verbs as Record<string, unknown>).flatMap(([verb, call]) =>
          typeof call === "function" ? [[`${noun}.${verb}`, call as (argument: string) => Promise<unknown>] as const] : [],
        ),
  );
}

test("every verb of every noun goes through the wrapper, under its name", async () => {
  const inner = memoryStore();
  const called: string[] = [];
  const wrapped = wrapStore(inner, async (operation) => {
    called.push(operation);
    throw new Error("instead of the call");
  });
  const operations = verbsOf(inner).map(([operation]) => operation);
  expect(operations).toContain("jobs.enqueue");
  for (const [, call] of verbsOf(wrapped)) await expect(call("run")).rejects.toThrow("instead of the call");
  expect(called).toEqual(operations);
});

test("a verb is called with its arguments, and answers through the wrapper", async () => {
  const operations: Operation[] = [];
  const wrapped = wrapStore(memoryStore(), (operation, call) => {
    operations.push(operation);
    return call();
  });
  await wrapped.lanes.pause("queue", "mail");
  expect(await wrapped.lanes.paused()).toEqual([{ kind: "queue", name: "mail" }]);
  expect(operations).toEqual(["lanes.pause", "lanes.paused"]);
});

test("a step of a duty goes through the wrapper under the name of the duty", async () => {
  const operations: Operation[] = [];
  const wrapped = wrapStore(memoryStore(), (operation, call) => {
    operations.push(operation);
    return call();
  });
  expect(wrapped.duties.declared.map(({ name }) => name)).toContain("promote");
  expect(await runDuty(wrapped, "promote", { limit: 10 })).toEqual({ count: 0, more: false });
  expect(operations).toEqual(["duties.promote"]);
});

test("a wrapped store can be wrapped again and spread", async () => {
  const operations: string[] = [];
  const note = (name: string) => (store: Store) =>
    wrapStore(store, (operation, call) => {
      operations.push(`${name} ${operation}`);
      return call();
    });
  const twice = note("outer")({ ...note("inner")(memoryStore()) });
  await twice.records.counts();
  expect(operations).toEqual(["outer records.counts", "inner records.counts"]);
});
