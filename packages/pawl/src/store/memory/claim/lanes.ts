import { compareLanes, compareText, type Lane } from "../../../core/jobs/lane.js";
import type { LaneStore } from "../../port/claim/lanes.js";
import type { MemoryJob, Tables } from "../state.js";

export function memoryLanes(tables: Tables): LaneStore {
  return {
    live: (queues, tasks) =>
      tables.step(() => {
        const served = (lane: Lane) => (queues === undefined || queues.includes(lane.queue)) && tasks.includes(lane.task) && !isPaused(tables, lane);
        return {
          lanes: [...tables.lanes.values()]
            .map(({ lane }) => lane)
            .filter(served)
            .sort(compareLanes),
          suspects: [...tables.suspects].some((id) => served((tables.jobs.get(id) as MemoryJob).lane)),
          version: String(tables.policyVersion),
        };
      }),
    pause: (kind, name) =>
      tables.step(() => {
        tables.paused[kind].add(name);
        tables.wakeups.lanes = true;
      }),
    resume: (kind, name) =>
      tables.step(() => {
        tables.paused[kind].delete(name);
        tables.wakeups.lanes = true;
      }),
    paused: () =>
      tables.step(() =>
        (["queue", "task", "tenant"] as const).flatMap((kind) => [...tables.paused[kind]].sort(compareText).map((name) => ({ kind, name }))),
      ),
  };
}

export function isPaused(tables: Tables, lane: Lane): boolean {
  return tables.paused.queue.has(lane.queue) || tables.paused.task.has(lane.task) || tables.paused.tenant.has(lane.tenant);
}
