import type { JobId } from "../../../core/jobs/id.js";
import type { NewJob } from "../../../core/jobs/job.js";
import { plainArray } from "../connection/arrays.js";
import { statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";

/** Jobs of one ready row at most: its ids, and a row of history with them, fit into a page, and what a claim puts back is small. */
export const JOBS_PER_ROW = 64;

/** The step of `pawl.ready_seq`: the places of a row's jobs lie between its number and the next. */
export const SEQ_STEP = 1024;

/** Between the inputs, or the options, of a row's jobs: JSON cannot hold this character anywhere. */
export const SEPARATOR = "\u001e";

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

/**
 * Whoever wants a job by its id finds it in a row of its own: rows of several jobs that hold one of these are split. A claim that takes
 * out of such a row at the same moment leaves the rest in another row, which this statement's snapshot does not have: then it is `missed`.
 * `offset 0`: each is looked for by the key. Joined as it is estimated, for ten jobs, all rows were read for every batch.
 * By `ctid`, which is the order that all who split lock them in; a row is never updated, so it stays where it is.
 */
const SPLIT_ROWS = statement(
  "split_rows",
  `
  with wanted as materialized (
    select j.queue, j.priority, j.tenant, j.task, j.home, j.id from unnest($1::uuid[]) as g(id)
    cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j
  ),
  found as materialized (
    select distinct r.ctid as address
    from (select queue, priority, tenant, task, min(home) as first, max(home) as last, array_agg(id) as ids from wanted group by queue, priority, tenant, task, home / ${SEQ_STEP}) w
    cross join lateral (
      select r.ctid from pawl.ready r
      where r.queue = w.queue and r.priority = w.priority and r.tenant = w.tenant and r.task = w.task and r.seq > w.first - ${SEQ_STEP} and r.seq <= w.last
        and r.jobs && w.ids
      offset 0
    ) r
  ),
  split as (
    delete from pawl.ready r where r.ctid = any(array(select address from found))
    returning r.seq, r.priority, r.queue, r.tenant, r.task, r.jobs, r.inputs, r.options
  ),
  singles as (
    insert into pawl.ready (seq, priority, queue, tenant, task, id, inputs, options)
    select s.seq + u.index - 1, s.priority, s.queue, s.tenant, s.task, u.id, u.input, u.options from split s
    cross join lateral unnest(s.jobs, string_to_array(s.inputs, E'${SEPARATOR}'), string_to_array(s.options, E'${SEPARATOR}')) with ordinality as u(id, input, options, index)
  )
  select (select count(*) from found) > (select count(*) from split) as missed`,
);

const MAX_TRIES = 100;

export async function splitRows(on: Queryable, ids: readonly JobId[]): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const [answer] = await on.query<{ missed: boolean }>(SPLIT_ROWS, [plainArray(ids)]);
    if (answer?.missed !== true) return;
  }
}
