import type { JobId } from "../../../core/jobs/id.js";
import type { NewJob } from "../../../core/jobs/job.js";
import { sqlFile } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";

/** Jobs of one ready row at most: its ids, and a row of history with them, fit into a page, and what a claim puts back is small. */
export const JOBS_PER_ROW = 64;

/** Contiguous jobs of a batch, from 1, that become one ready row. */
export interface RowRange {
  readonly lane: number;
  readonly first: number;
  readonly last: number;
}

/** A batch in an order in which the jobs of each row stand together, and those of rows of one job at the end. The order inside a lane stays. */
export interface GroupedJobs {
  readonly jobs: readonly NewJob[];
  /** the lane of each job, by number from 1 */
  readonly lanes: readonly number[];
  readonly rows: readonly RowRange[];
}

/** Jobs of one lane go together, so many to a row. */
export function groupIntoRows(jobs: readonly NewJob[], lanes: readonly number[], laneCount: number, maxPerRow: number): GroupedJobs {
  const indexesOf = Array.from({ length: laneCount }, (): number[] => []);
  lanes.forEach((lane, index) => void indexesOf[lane - 1]?.push(index));
  const order: number[] = [];
  const singles: number[] = [];
  const rows: RowRange[] = [];
  indexesOf.forEach((indexes, index) => {
    for (let from = 0; from < indexes.length; from += maxPerRow) {
      const own = indexes.slice(from, from + maxPerRow);
      if (own.length > 1) rows.push({ lane: index + 1, first: order.length + 1, last: order.length + own.length });
      (own.length > 1 ? order : singles).push(...own);
    }
  });
  order.push(...singles);
  return { jobs: order.map((index) => jobs[index] as NewJob), lanes: order.map((index) => lanes[index] as number), rows };
}

const SPLIT_ROWS = sqlFile("enqueue/split-rows.sql");

const MAX_TRIES = 100;

export async function splitRows(on: Queryable, ids: readonly JobId[]): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const [answer] = await SPLIT_ROWS.query<{ missed: boolean }>(on, { ids });
    if (answer?.missed !== true) return;
  }
}
