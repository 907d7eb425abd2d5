-- Adds a row to the history of each job that no worker wrote, under a fresh number of the same sequence as leases. Rows of jobs that outlived
-- their month are kept apart. A first attempt that succeeded has no numbers of its own.
with items as materialized (
  select g.*, nextval('pawl.lease_seq') as lease, coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) as since
  from unnest(:entry.job::uuid[], :entry.outcome::int2[], :entry.next::int2[], :entry.attempts::int2[], :entry.crashes::int2[],
      :entry.failure::text[], :entry.output::text[])
    as g(job, outcome, next, attempts, crashes, failure, output)
),
singles as materialized (
  select coalesce(j.home, 0) as home, coalesce(j.home, 0) as last, g.lease, g.since, g.since as ended, g.job as first, null::int as worker,
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
)
select count(*)::int as added from items
