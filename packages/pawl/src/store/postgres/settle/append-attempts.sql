-- Appends attempts one by one, a row of history for each, and closes or lowers their leases, which are locked. Attempts of jobs that outlived
-- their month are kept apart. A first attempt that succeeded has no numbers of its own.
with items as materialized (
  select g.lease, g.job, g.index, g.outcome, g.next, g.attempts, g.crashes,
    to_timestamp(g.started / 1000) as since, to_timestamp(g.finished / 1000) as ended, g.output, g.failure
  from unnest(:attempt.lease::bigint[], :attempt.job::uuid[], :attempt.index::int[], :attempt.outcome::int2[], :attempt.next::int2[],
      :attempt.attempts::int2[], :attempt.crashes::int2[], :attempt.started::float8[], :attempt.finished::float8[], :attempt.output::text[], :attempt.failure::text[])
    as g(lease, job, index, outcome, next, attempts, crashes, started, finished, output, failure)
),
singles as materialized (
  select coalesce(j.home, 0) as home, coalesce(j.home, 0) as last, g.lease, g.since, g.ended, g.job as first, :worker::int as worker,
    case when g.failure is not null or (g.outcome, g.next, g.attempts, g.crashes) <> ({{outcome.succeeded}}, {{state.succeeded}}, 1, 0)
      then array[1, g.outcome, g.next, g.attempts, g.crashes]::int[] end as outcomes,
    case when g.failure is not null or (g.outcome, g.next, g.attempts, g.crashes) <> ({{outcome.succeeded}}, {{state.succeeded}}, 1, 0)
      then array[g.failure::json] end as failures,
    case when g.output is not null then array[g.output::json] end as outputs,
    g.job < (select floor from pawl.partition_range) as outlived
  from items g left join lateral (select j.home from pawl.any_job j where j.id = g.job limit 1) j on true
),
appended as (
  insert into pawl.history (home, last, lease, since, ended, first, worker, outcomes, failures, outputs)
  select home, last, lease, since, ended, first, worker, outcomes, failures, outputs from singles where not outlived
),
kept as (
  insert into pawl.history_kept (home, last, lease, since, ended, first, worker, outcomes, failures, outputs)
  select home, last, lease, since, ended, first, worker, outcomes, failures, outputs from singles where outlived
),
done as materialized (select lease, count(*)::int as n, range_agg(int4range(index, index, '[]')) as indexes from items group by lease),
closed as (delete from pawl.lease l using done d where l.id = d.lease and l.unsettled <= d.n),
lowered as (
  update pawl.lease l set unsettled = l.unsettled - d.n, settled = l.settled + d.indexes
  from done d where l.id = d.lease and l.unsettled > d.n
)
select 1
