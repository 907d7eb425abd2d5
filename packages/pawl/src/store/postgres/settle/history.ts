import type { JobId } from "../../../core/jobs/id.js";
import { plainArray } from "../connection/arrays.js";
import { statement } from "../connection/db.js";
import { MAX_HOME_DISTANCE } from "../connection/sql-constants.js";
import type { Queryable } from "../drivers/driver.js";
/** Rows of history with an attempt of the job `j`. */
export function holding(history: string, j = "j"): string {
  return `${history}.home <= ${j}.home and ${history}.home > ${j}.home - ${MAX_HOME_DISTANCE} and ${history}.last >= ${j}.home and (${history}.first = ${j}.id or ${j}.id = any(${history}.jobs))`;
}

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
      select h.home, h.lease, h.first from pawl.history h
      where ${holding("h", "a")}  -- guard: history-goes-along
      offset 0
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
