import { expect, test } from "vitest";
import type { InstanceId } from "../../../core/jobs/id.js";
import type { Db } from "../connection/db.js";
import { WorkerIds } from "./worker-ids.js";

test("numbers of workers are remembered, but not of every worker there ever was", async () => {
  let asked = 0;
  const workers = new WorkerIds({ now: () => null, query: async () => [{ id: ++asked }] } as unknown as Db);
  const id = (n: number) => workers.id({ name: "w", instance: String(n) as InstanceId });
  for (let n = 1; n <= 20_000; n++) await id(n);
  expect([await id(1), asked]).toEqual([1, 20_000]);
  await id(20_001);
  expect([await id(2), asked]).toEqual([2, 20_001]);
  expect([await id(1), asked], "the oldest was forgotten").toEqual([20_002, 20_002]);
});
