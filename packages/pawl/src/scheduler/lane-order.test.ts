import { expect, test } from "vitest";
import type { IdTail } from "../core/id.js";
import type { NewJob } from "../core/job.js";
import { byLane, LaneOrder } from "./lane-order.js";

const job = (tenant: string, more: Partial<NewJob> = {}): NewJob => ({
  tail: "" as IdTail,
  lane: { queue: "default", band: 2, tenant, task: "mail" } as NewJob["lane"],
  input: "null",
  options: undefined,
  ...more,
});

test("jobs go lane by lane, as the lanes first come, and inside a lane in order", () => {
  expect(byLane(["a", "b", "a", "c", "b", "a"].map((tenant) => job(tenant)))).toEqual([0, 2, 5, 1, 4, 3]);
});

test("where the first of several counts, whatever its lane, they stay as they are", () => {
  const unique = { key: "k", scope: "active" } as unknown as NonNullable<NewJob["unique"]>;
  const limits = [{ limit: "api", key: "k", rule: { concurrency: 1 } }];
  for (const more of [{ unique }, { request: "r" }, { options: { limits } }] as Partial<NewJob>[]) {
    expect(byLane([job("a"), job("b"), job("a", more)])).toEqual([0, 1, 2]);
  }
});

test("what is sent is known by its place in the call", async () => {
  const sent: NewJob[] = [];
  const order = new LaneOrder({ add: (one) => void sent.push(one) as undefined });
  const jobs = ["a", "b", "a"].map((tenant) => job(tenant));
  for (const one of jobs) void order.add(one);
  await order.flush();
  void order.add(job("a"));
  await order.flush();
  expect(order.sent).toEqual([0, 2, 1, 3]);
  expect(sent.slice(0, 3)).toEqual([jobs[0], jobs[2], jobs[1]]);
});
