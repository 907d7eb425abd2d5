import type { DutyReport, DutyRequest, ExportedJob } from "./duties.js";

export interface PruneRules {
  /** ms */
  readonly finished: number;
  readonly dead: number;
  readonly limit: number;
  /** sees the finished jobs about to go, in batches, before they do; if it throws they stay */
  readonly exportFinished?: (batch: readonly ExportedJob[]) => Promise<void>;
}

export function pruneRulesOf({ limit, keep, exportFinished }: DutyRequest): PruneRules {
  const { finished, dead } = keep;
  return { finished, dead, limit, ...(exportFinished === undefined ? {} : { exportFinished }) };
}

export interface PruneCounts {
  /** finished jobs that went */
  readonly dropped: number;
  /** requests, keys and recorded effects past their time */
  readonly forgotten: number;
  /** parts of the store that were made ahead, and that went with all their jobs */
  readonly madePartitions?: number;
  readonly droppedPartitions?: number;
}

export function pruneReport(counts: PruneCounts, limit: number): DutyReport {
  const count = Math.max(counts.dropped, counts.forgotten);
  return { count, more: count > 0 && count >= limit, counts: { ...counts } };
}
