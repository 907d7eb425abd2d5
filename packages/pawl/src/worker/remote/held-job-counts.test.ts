import { expect, test } from "vitest";
import type { Lane } from "../../core/jobs/lane.js";
import { WorkerLimits } from "../claim/worker-limits.js";
import { HeldJobCounts } from "./held-job-counts.js";

const lane: Lane = { queue: "default", priority: 5, tenant: "default", task: "resize" };

test("what a worker says it has is taken at once, however much it is, and given back when it says less", () => {
  const takes: number[] = [];
  const limit = { until: "handler", room: () => 0, take: (_: Lane, count: number) => void takes.push(count) } as const;
  const counts = new HeldJobCounts(new WorkerLimits([limit]));
  counts.set([{ lane, count: 50_000 }]);
  counts.addJobs(lane);
  counts.set([{ lane, count: 3 }]);
  counts.removeJob(lane);
  counts.set([]);
  expect(takes).toEqual([50_000, 1, -49_998, -1, -2]);
});
