import type { AttemptView, Explanation, JobView } from "pawl";
import type { LiveLaneView, LiveWorkerView, LogView, PawlInfo, QueueView } from "pawl/service";

/** What `top` knows, as of its last look. Only what the view in hand needs is looked up. */
export interface TopData {
  readonly info?: PawlInfo;
  readonly queues: readonly QueueView[];
  /** jobs per second of late, by queue */
  readonly rates: ReadonlyMap<string, Rates>;
  readonly lanes: readonly LiveLaneView[];
  readonly workers: readonly LiveWorkerView[];
  readonly jobs: readonly JobView[];
  readonly job?: {
    readonly job: JobView;
    readonly history: readonly AttemptView[];
    readonly logs: readonly LogView[];
    readonly explanation: Explanation;
  };
  /** why the last look failed */
  readonly trouble?: string;
  readonly now: Date;
}

export interface Rates {
  readonly done: number;
  readonly dead: number;
}

export const NO_DATA: TopData = { queues: [], rates: new Map(), lanes: [], workers: [], jobs: [], now: new Date(0) };

/** Rates out of two looks, by what was counted as finished between them. */
export function ratesBetween(before: readonly QueueView[], after: readonly QueueView[], ms: number): ReadonlyMap<string, Rates> {
  const countsBefore = new Map(before.map(({ queue, counts }) => [queue, counts]));
  return new Map(
    after.map(({ queue, counts }) => {
      const old = countsBefore.get(queue) ?? counts;
      const per = (state: "succeeded" | "dead") => Math.max(0, ((counts[state] - old[state]) * 1_000) / Math.max(1, ms));
      return [queue, { done: per("succeeded"), dead: per("dead") }];
    }),
  );
}
