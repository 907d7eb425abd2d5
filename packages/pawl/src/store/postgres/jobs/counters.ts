import type { JobState } from "../../../core/jobs/job.js";
import { JOB_STATES } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { START_RATE_FORGOTTEN_MS, START_RATE_GATHERED_MS, START_RATE_MEMORY_MS } from "../../../core/limits/start-rate.js";
import type { CountRow } from "../../port/settle/records.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";
import { recorded } from "../observe/series.js";

/** One job (or `count` of them) that went from one state to another; undefined: from or to nothing. */
export interface CountedMove {
  readonly lane: Lane;
  readonly from: JobState | undefined;
  readonly to: JobState | undefined;
}

const COLUMNS = JOB_STATES.join(", ");
const COUNT = statement(
  "count",
  `insert into pawl.counter_delta (queue, task, ${COLUMNS}, restored) select *, $${JOB_STATES.length + 3}::bool from unnest($1::text[], $2::text[], ${JOB_STATES.map((_, i) => `$${i + 3}::int[]`).join(", ")})`,
);

/** Counts moves made off the hot path, as one delta row per queue and task. Of jobs that are `restored` nothing happens now. */
export async function count(on: Queryable, moves: readonly CountedMove[], restored = false): Promise<void> {
  const sums = new Map<string, { lane: Lane; by: Record<JobState, number> }>();
  for (const move of moves) {
    if (move.from === move.to) continue;
    const key = `${move.lane.queue}\u0001${move.lane.task}`;
    let sum = sums.get(key);
    if (sum === undefined) {
      sum = { lane: move.lane, by: zeroes() };
      sums.set(key, sum);
    }
    if (move.from !== undefined) sum.by[move.from]--;
    if (move.to !== undefined) sum.by[move.to]++;
  }
  if (sums.size === 0) return;
  const rows = [...sums.values()];
  await on.query(COUNT, [
    textArray(rows.map((row) => row.lane.queue)),
    textArray(rows.map((row) => row.lane.task)),
    ...JOB_STATES.map((state) => plainArray(rows.map((row) => row.by[state]))),
    restored,
  ]);
}

function zeroes(): Record<JobState, number> {
  return { blocked: 0, scheduled: 0, ready: 0, parked: 0, running: 0, succeeded: 0, dead: 0, cancelled: 0 };
}

const SUMS = JOB_STATES.map((state) => `sum(${state})::float8 as ${state}`).join(", ");
const READ_COUNTS = statement(
  "read_counts",
  `select queue, task, ${SUMS} from (select queue, task, ${COLUMNS} from pawl.counter union all select queue, task, ${COLUMNS} from pawl.counter_delta where id >= $1::float8::bigint) all_rows group by queue, task order by queue, task`,
);

export async function readCounts(db: Db, watermarks: LowWatermarks): Promise<readonly CountRow[]> {
  const rows = await db.query<{ queue: string; task: string } & Record<JobState, number>>(READ_COUNTS, [watermarks.delta.value]);
  return rows
    .map((row) => ({
      queue: row.queue,
      task: row.task,
      counts: Object.fromEntries(JOB_STATES.map((state) => [state, row[state]])) as Record<JobState, number>,
    }))
    .filter((row) => JOB_STATES.some((state) => row.counts[state] !== 0));
}

/** The store's instant, as `NOW` is where the first parameter is the clock. */
const AT = "coalesce(to_timestamp($3::float8 / 1000), statement_timestamp())";
const FORGOTTEN = `t.starts_at is null or ${AT} - t.starts_at > ${START_RATE_FORGOTTEN_MS} * interval '1 millisecond'`;
const WORTH = `exp(-greatest(0, extract(epoch from ${AT} - t.starts_at) * 1000 / ${START_RATE_MEMORY_MS})::float8)`;

/**
 * Two processes may fold at once: each takes rows the other has not locked, and a counter row is locked by its upsert.
 * Claims are what makes more jobs run, so rows with more of them are starts: they make the pace, as `paced` does.
 */
const FOLD = statement(
  "fold",
  `
  with batch as materialized (
    select id from pawl.counter_delta
    where id >= $2::float8::bigint  -- stop: fold-snapshot
    order by id limit $1
    for update skip locked  -- guard: deltas-locked
  ),
  gone as (
    delete from pawl.counter_delta d using batch where d.id = batch.id returning d.*  -- guard: folded-were-deleted
  ),
  recorded as (${recorded("gone", AT)}),
  folded as (
    insert into pawl.counter as t (queue, task, starts, starts_at, starts_since, ${COLUMNS})
    select queue, task,
      starts  -- stop: between-counters
      , case when starts > 0 then ${AT} end, case when starts > 0 then ${AT} - ${START_RATE_GATHERED_MS} * interval '1 millisecond' end, ${COLUMNS}
    from (select queue, task, coalesce(sum(running) filter (where running > 0), 0) as starts, ${JOB_STATES.map((state) => `sum(${state}) as ${state}`).join(", ")} from
      gone  -- guard: counted-were-deleted
      group by queue, task) g
    order by queue, task  -- guard: counters-in-order
    on conflict (queue, task) do update set ${JOB_STATES.map((state) => `${state} = t.${state} + excluded.${state}`).join(", ")},
      starts = case when excluded.starts = 0 then t.starts when ${FORGOTTEN} then excluded.starts else t.starts * ${WORTH} + excluded.starts end,
      starts_at = greatest(t.starts_at, excluded.starts_at),
      starts_since = case when excluded.starts > 0 and (${FORGOTTEN}) then excluded.starts_since else t.starts_since end
  )
  select count(*)::int as folded from batch`,
);

export async function fold(db: Db, watermarks: LowWatermarks, limit: number): Promise<number> {
  const [row] = await db.query<{ folded: number }>(FOLD, [limit, watermarks.delta.value, db.now()]);
  return row?.folded ?? 0;
}

const FORGET_COUNTERS = statement(
  "forget_counters",
  `with gone as (delete from pawl.counter where ${JOB_STATES.map((state) => `${state} = 0`).join(" and ")} returning 1) select count(*)::int as n from gone`,
);

/** A queue and task of which no job is left. A fold that comes meanwhile is waited for, and its row then looked at again. */
export async function forgetCounters(db: Db): Promise<number> {
  const [row] = await db.query<{ n: number }>(FORGET_COUNTERS);
  return row?.n ?? 0;
}
