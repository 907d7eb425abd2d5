import type { JobId } from "../core/jobs/id.js";
import type { Lane } from "../core/jobs/lane.js";
import type { Attempt } from "./run/attempt.js";

/** A worker at a glance. */
export interface WorkerStatus {
  readonly name: string;
  readonly instance: string;
  readonly state: "new" | "working" | "draining" | "stopped";
  readonly concurrency: number;
  /** handlers in slots */
  readonly running: number;
  /** jobs claimed and not started */
  readonly buffered: number;
  /** slots with nothing in them */
  readonly free: number;
  /** handlers that go on though their attempts are over: each keeps its slot until it ends */
  readonly overrun: number;
  /** so many of them seem lost for good that it takes nothing more: its process should be replaced */
  readonly stuck: boolean;
  /** outcomes the store has not confirmed */
  readonly settling: number;
  readonly leases: number;
  /** lanes known to have work */
  readonly lanes: number;
  /** claims under way */
  readonly claiming: number;
  /** what handlers use of the amounts it has, as far as a task of its needs some */
  readonly resources: Readonly<Record<string, number>>;
}

/** A job that runs now, for live views. */
export interface RunningJob {
  readonly job: JobId;
  readonly lane: Lane;
  readonly attempt: number;
  /** the store's clock */
  readonly startedAt: number;
  /** ms */
  readonly runningFor: number;
  readonly cancelled: boolean;
  /** the last one it reported, absent before the first */
  readonly progress?: unknown;
}

export function runningJob({ job, number, lease, startedAt, cancelled, log }: Attempt, now: number): RunningJob {
  return {
    job: job.id,
    lane: job.lane,
    attempt: number,
    startedAt: lease.storeTime(startedAt),
    runningFor: now - startedAt,
    cancelled,
    ...(log?.latest === undefined ? {} : { progress: log.latest }),
  };
}
