import { type Db, ms, NOW, statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";

/** The store's clock, and the due times that partitions exist for. */
export interface PartitionRange {
  readonly now: number;
  readonly floor: number;
  readonly ceiling: number;
}

const READ_PARTITION_RANGE = statement(
  "read_partition_range",
  `select ${ms(NOW)} as now, floor_ms as floor, ceiling_ms as ceiling from pawl.partition_range`,
);

export async function readPartitionRange(db: Db, on: Queryable): Promise<PartitionRange> {
  const [row] = await on.query<{ now: number; floor: number; ceiling: number }>(READ_PARTITION_RANGE, [db.now()]);
  return row as PartitionRange;
}

/** The due time as it stands in the id: never outside the partitions. SQL does the same in `enqueue.ts`. */
export function clampDue(due: number, range: PartitionRange): number {
  return Math.floor(Math.max(range.floor, Math.min(due, range.ceiling - 1)));
}
