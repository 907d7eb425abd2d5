import { type Db, ms, NOW, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";

/** The store's clock, and the due times that partitions exist for. */
export interface Span {
  readonly now: number;
  readonly floor: number;
  readonly ceiling: number;
}

const READ_SPAN = statement("read_span", `select ${ms(NOW)} as now, floor_ms as floor, ceiling_ms as ceiling from pawl.span`);

export async function readSpan(db: Db, on: Queryable): Promise<Span> {
  const [row] = await on.query<{ now: number; floor: number; ceiling: number }>(READ_SPAN, [db.now()]);
  return row as Span;
}

/** The due time as it stands in the id: never outside the partitions. SQL does the same in `enqueue.ts`. */
export function clampDue(due: number, span: Span): number {
  return Math.floor(Math.max(span.floor, Math.min(due, span.ceiling - 1)));
}
