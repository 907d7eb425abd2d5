import { expect, test } from "vitest";
import { pawlError } from "../core/error.js";
import { startPawl } from "../pawl.js";
import { memoryStore } from "../store/memory/index.js";
import type { Store } from "../store/port.js";

/** Kinds of the entries of an export of one job whose history cannot be read. */
async function exportWith(trouble: Error): Promise<readonly string[]> {
  const store = memoryStore();
  const history: Store["jobs"]["history"] = async () => {
    throw trouble;
  };
  await using pawl = await startPawl({ ...store, jobs: { ...store.jobs, history } }, { anyTask: true });
  await pawl.enqueue("a", 1);
  const kinds: string[] = [];
  for await (const { kind } of pawl.tenants.export("default")) kinds.push(kind);
  return kinds;
}

test("a job that is dropped while an export runs is told as it was listed", async () => {
  expect(await exportWith(pawlError("job_unknown", { job: "gone" }))).toEqual(["tenant", "job", "end"]);
});

test("an export that cannot read something ends with that error, so that nobody takes it for whole", async () => {
  await expect(exportWith(new Error("the store is away"))).rejects.toThrow("the store is away");
});
