import { expect, test } from "vitest";
import { startPawl } from "../../pawl.js";
import { memoryStore } from "../../store/memory/index.js";
import type { Store } from "../../store/port/index.js";
import { faultyStore } from "../../testing/faulty.js";

test("an export that cannot read something ends with that error, so that nobody takes it for whole", async () => {
  const away = new Error("the store is away");
  const store = faultyStore(memoryStore(), (operation, earlier) =>
    operation === "jobs.whole" && earlier === 1 ? { kind: "fail", error: away } : undefined,
  );
  await using pawl = await startPawl(store, { allowUnknownTasks: true });
  await pawl.enqueueMany("a", Array.from({ length: 1_200 }));
  const kinds = new Set<string>();
  const read = async () => {
    for await (const { kind } of pawl.tenants.export("default")) kinds.add(kind);
  };
  await expect(read()).rejects.toThrow("the store is away");
  expect([...kinds]).toEqual(["tenant", "job"]);
});

test("an export asks for its jobs by the page, whatever their number, and for none of them alone", async () => {
  const operations: string[] = [];
  const counted = (store: Store) =>
    faultyStore(store, (operation) => {
      if (operation.startsWith("jobs.")) operations.push(operation);
      return undefined;
    });
  await using pawl = await startPawl(counted(memoryStore()), { allowUnknownTasks: true });
  await pawl.enqueueMany("a", Array.from({ length: 3_000 }));
  operations.length = 0;
  let jobs = 0;
  for await (const { kind } of pawl.tenants.export("default")) if (kind === "job") jobs++;
  expect(jobs).toBe(3_000);
  expect(operations).toEqual(Array.from({ length: 6 }, () => "jobs.whole"));
});

test("an export that nobody goes on with reads no more", async () => {
  const operations: string[] = [];
  const store = faultyStore(memoryStore(), (operation) => {
    if (operation === "jobs.whole") operations.push(operation);
    return undefined;
  });
  await using pawl = await startPawl(store, { allowUnknownTasks: true });
  await pawl.enqueueMany("a", Array.from({ length: 3_000 }));
  for await (const { kind } of pawl.tenants.export("default")) if (kind === "job") break;
  await new Promise(setImmediate);
  expect(operations.length).toBeLessThanOrEqual(2);
});

test("others get their turns of the event loop while an export is told", async () => {
  await using pawl = await startPawl(memoryStore(), { allowUnknownTasks: true });
  await pawl.enqueueMany("a", Array.from({ length: 500 }));
  let turns = 0;
  let exportedJobs = 0;
  const count = () => {
    turns++;
    if (exportedJobs < 500) setImmediate(count);
  };
  setImmediate(count);
  for await (const { kind } of pawl.tenants.export("default")) if (kind === "job") exportedJobs++;
  expect(turns).toBeGreaterThanOrEqual(10);
});
