import { expect, test } from "vitest";
import type { IdSuffix } from "../../core/jobs/id.js";
import type { NewJob } from "../../core/jobs/job.js";
import { indexesByLane, LaneGrouper } from "./group-by-lane.js";

const job = (tenant: string, more: Partial<NewJob> = {}): NewJob => ({
  idSuffix: "" as IdSuffix,
  lane: { queue: "default", priority: 2, tenant, task: "mail" } as NewJob["lane"],
  input: "null",
  options: undefined,
  ...more,
});

test("jobs go lane by lane, as the lanes first come, and inside a lane in order", () => {
  expect(indexesByLane(["a", "b", "a", "c", "b", "a"].map((tenant) => job(tenant)))).toEqual([0, 2, 5, 1, 4, 3]);
});

test("where the first of several counts, whatever its lane, they stay as they are", () => {
  const unique = { key: "k", scope: "active" } as unknown as NonNullable<NewJob["unique"]>;
  const limits = [{ limit: "api", key: "k", rule: { concurrency: 1 } }];
  for (const more of [{ unique }, { idempotencyKey: "r" }, { options: { limits } }] as Partial<NewJob>[]) {
    expect(indexesByLane([job("a"), job("b"), job("a", more)])).toEqual([0, 1, 2]);
  }
});

test("what is sent is known by its place in the call", async () => {
  const sent: NewJob[] = [];
  const order = new LaneGrouper({ add: (one) => void sent.push(one) as undefined });
  const jobs = ["a", "b", "a"].map((tenant) => job(tenant));
  for (const one of jobs) void order.add(one);
  await order.flush();
  void order.add(job("a"));
  await order.flush();
  expect(order.sent).toEqual([0, 2, 1, 3]);
  expect(sent.slice(0, 3)).toEqual([jobs[0], jobs[2], jobs[1]]);
});
