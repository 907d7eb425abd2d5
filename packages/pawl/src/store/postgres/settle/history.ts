import type { JobId } from "../../../core/jobs/id.js";
import { plainArray } from "../connection/arrays.js";
import { outcomeCode, stateCode } from "../connection/codes.js";
import { statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";

/** How far the numbers of jobs in one row of history may be apart: a job's row is at most so far below its own number. */
export const MAX_HOME_DISTANCE = 65_536;

/** Rows of history with an attempt of the job `j`. */
export function holding(history: string, j = "j"): string {
  return `${history}.home <= ${j}.home and ${history}.home > ${j}.home - ${MAX_HOME_DISTANCE} and ${history}.last >= ${j}.home and (${history}.first = ${j}.id or ${j}.id = any(${history}.jobs))`;
}

/** A first attempt that succeeded has no numbers of its own. */
const OUTCOMES = `case when g.failure is not null or (g.outcome, g.next, g.attempts, g.crashes) <> (${outcomeCode("succeeded")}, ${stateCode("succeeded")}, 1, 0)
      then array[1, g.outcome, g.next, g.attempts, g.crashes]::int[] end`;

/**
 * In a statement with attempts as rows (`items`: job, lease, since, ended, worker, outcome, next, attempts, crashes, output and failure as
 * texts): appends each as a row of history. Those of jobs that outlived their month are kept apart.
 */
export const APPEND_SINGLES = `
  singles as materialized (
    select coalesce(j.home, 0) as home, coalesce(j.home, 0) as last, g.lease, g.since, g.ended, g.job as first, g.worker, ${OUTCOMES} as outcomes,
      case when ${OUTCOMES} is not null then array[g.failure::json] end as failures, case when g.output is not null then array[g.output::json] end as outputs,
      g.job < (select floor from pawl.partition_range) as outlived
    from items g left join lateral (select j.home from pawl.any_job j where j.id = g.job limit 1) j on true
  ),
  appended as (insert into pawl.history (home, last, lease, since, ended, first, worker, outcomes, failures, outputs)
    select home, last, lease, since, ended, first, worker, outcomes, failures, outputs from singles where not outlived),
  kept as (insert into pawl.history_kept (home, last, lease, since, ended, first, worker, outcomes, failures, outputs)
    select home, last, lease, since, ended, first, worker, outcomes, failures, outputs from singles where outlived)`;

/**
 * Takes the attempts of jobs out of the months: to where those are that outlived theirs, or away. Rows that hold attempts of other
 * jobs, too, become a row for each of these. Attempts of jobs that were dropped meanwhile stay away.
 */
const TAKE_OUT = statement(
  "take_out_of_history",
  `
  with wanted as materialized (
    select j.id, j.home from unnest($1::uuid[]) as g(id) cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j
  ),
  found as materialized (
    select distinct h.home, h.lease, h.first from wanted a cross join lateral (
      select h.home, h.lease, h.first from pawl.history h where ${holding("h", "a")} offset 0
    ) h order by h.home, h.lease
  ),
  gone as (
    delete from pawl.history h using found f where h.home = f.home and h.lease = f.lease and h.first = f.first returning h.*
  ),
  apart as materialized (
    select u.job, g.lease, g.worker,
      case when g.jobs is null then g.since else g.since + g.started[u.index] * interval '1 microsecond' end as since,
      case when g.jobs is null then g.ended else g.since + g.finished[u.index] * interval '1 microsecond' end as ended,
      case when o.at is not null then array_prepend(1, g.outcomes[o.at + 1 : o.at + 4]) end as outcomes,
      case when o.at is not null then g.failures[(o.at + 4) / 5 : (o.at + 4) / 5] end as failures,
      case when g.outputs[u.index] is not null then g.outputs[u.index : u.index] end as outputs
    from gone g cross join lateral unnest(coalesce(g.jobs, array[g.first])) with ordinality as u(job, index)
    left join lateral (select at from generate_series(1, cardinality(g.outcomes), 5) as at where g.outcomes[at] = u.index) o on true
  ),
  back as (
    insert into pawl.history (home, last, lease, since, ended, first, worker, outcomes, failures, outputs)
    select j.home, j.home, a.lease, a.since, a.ended, a.job, a.worker, a.outcomes, a.failures, a.outputs from apart a join pawl.job j on j.id = a.job
    where a.job not in (select id from wanted)
  )
  insert into pawl.history_kept (home, last, lease, since, ended, first, worker, outcomes, failures, outputs)
  select j.home, j.home, a.lease, a.since, a.ended, a.job, a.worker, a.outcomes, a.failures, a.outputs from apart a join wanted j on j.id = a.job where $2::bool`,
);

export async function takeOutOfHistory(on: Queryable, ids: readonly JobId[], { keep }: { readonly keep: boolean }): Promise<void> {
  if (ids.length > 0) await on.query(TAKE_OUT, [plainArray(ids), keep]);
}
