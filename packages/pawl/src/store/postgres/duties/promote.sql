-- Moves what is due, oldest first; several processes share the work by skipping each other's rows. A job with a pause asked of it is parked.
-- A job under limits is parked in the queue of its first limit key (`keys_to_check`), at the head if it keeps its serial slot. ready.seq is drawn after the delete, which assigns the transaction's id (see SafeSequence). When the next one is due is asked for
-- along with it, and counted from when that is known.
--
--   :from   nothing is due before it (LowWatermarks), in ms
with due as materialized (
  select id from pawl.scheduled
  where run_at >= to_timestamp(:from::float8 / 1000)  -- stop: promote-snapshot
    and run_at <= coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())
  order by run_at limit :limit::int
  for update skip locked  -- guard: due-job-locked
),
taken as materialized (delete from pawl.scheduled s using due where s.id = due.id returning s.*),
paused as materialized (select i.job from pawl.intent i join taken t on t.id = i.job where i.kind = 'pause'),
forgotten as (delete from pawl.intent i using paused where i.job = paused.job),
-- Most stores have no job under limits: then there is nothing to look for. (The limit keeps the planner from reading all job limits.)
queued_at_limit as materialized (
  select g.id, g.priority, g.attempts, g.crashes, g.queue, g.tenant, g.task, t.limit_key, t.kind,
    case when not t.serial then 9 - g.priority
      when exists (select from pawl.slot s where s.kind = 'serial' and s.job = g.id) then {{serial_holder_rank}}
      else 0 end as rank
  from taken g cross join lateral (
    select t.limit_keys[1] as limit_key, t.serial,
      case when t.serial then 'serial' when t.limits->0->'rule'->'concurrency' is not null then 'concurrency' else 'rate' end as kind
    from pawl.job_limits t where t.job = g.id limit 1
  ) t
  where g.id not in (select job from paused) and (select exists (select from pawl.job_limits)) order by g.run_at
),
parked_in_limit_queue as (
  insert into pawl.parked (id, priority, attempts, crashes, reason, queue, tenant, task, limit_key, rank, seq)
  select id, priority, attempts, crashes, kind, queue, tenant, task, limit_key, rank, nextval('pawl.limit_queue_seq') from queued_at_limit
),
keys_to_check as materialized (select distinct limit_key from queued_at_limit),
limit_checks as (
  insert into pawl.limit_check (at, key) select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()), limit_key from keys_to_check
),
recounted as (insert into pawl.counter_delta (queue, task, ready, parked) select queue, task, -count(*), count(*) from queued_at_limit group by queue, task),
readied as (
  insert into pawl.ready (id, priority, attempts, crashes, queue, tenant, task)
  select id, priority, attempts, crashes, queue, tenant, task from taken
  where crashes < {{suspect_from}} and id not in (select job from paused) and id not in (select id from queued_at_limit) order by run_at
),
suspected as (
  insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
  select id, priority, attempts, crashes, queue, tenant, task from taken
  where crashes >= {{suspect_from}} and id not in (select job from paused) and id not in (select id from queued_at_limit) order by run_at
),
parked as (
  insert into pawl.parked (run_at, id, priority, attempts, crashes, reason, queue, tenant, task)
  select null, id, priority, attempts, crashes, 'paused', queue, tenant, task from taken where id in (select job from paused)
),
counted as (
  insert into pawl.counter_delta (queue, task, scheduled, ready, parked)
  select queue, task, -count(*), count(*) filter (where id not in (select job from paused)), count(*) filter (where id in (select job from paused))
  from taken group by queue, task
)
select queue, priority, tenant, task, count(*)::int as jobs, null as limit_key, null::float8 as next from taken group by queue, priority, tenant, task
union all select null, null, null, null, 0, limit_key, null from keys_to_check
union all select null, null, null, null, 0, null, (
  select (extract(epoch from s.run_at) * 1000)::float8 - (extract(epoch from coalesce(to_timestamp(:now::float8 / 1000), clock_timestamp())) * 1000)::float8
  from pawl.scheduled s
  where to_timestamp(:from::float8 / 1000) <= s.run_at and case when s.id in (select id from due) then false else true end order by s.run_at limit 1
)
