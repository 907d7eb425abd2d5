-- Puts jobs into the tables they wait in from now on, in the order they are sent. Those under limits that were to become ready are parked in the
-- queue of their first limit key instead (it answers these keys), and counted as parked, whatever the caller says. A job that keeps its serial
-- slot goes to the head of the queue.
--
--   :lane   the lanes; jobs refer to them by number, from 1
--   :job    a row for each job; `state` is where it goes, `run_at` in ms
with lane as materialized (
  select * from unnest(:lane.queue::text[], :lane.priority::int2[], :lane.tenant::text[], :lane.task::text[])
    with ordinality as l(queue, priority, tenant, task, no)
),
items as materialized (
  select l.queue, l.priority, l.tenant, l.task, g.* from unnest(:job.id::uuid[], :job.lane::int[], :job.state::int2[], :job.attempts::int2[],
      :job.crashes::int2[], :job.run_at::float8[], :job.suspect::bool[], :job.kind::text[], :job.name::text[])
    with ordinality as g(id, lane, state, attempts, crashes, run_at, suspect, kind, name, ord)
  join lane l on l.no = g.lane order by g.ord
),
-- Most stores have no job under limits: then there is nothing to look for. (The limit keeps the planner from reading all job limits.)
queued_at_limit as materialized (
  select g.id, g.priority, g.attempts, g.crashes, g.queue, g.tenant, g.task, t.limit_key, t.kind,
    case when not t.serial then 9 - g.priority
      when exists (select from pawl.slot s where s.kind = 'serial' and s.job = g.id) then {{serial_holder_rank}}
      else 0 end as rank
  from items g cross join lateral (
    select t.limit_keys[1] as limit_key, t.serial,
      case when t.serial then 'serial' when t.limits->0->'rule'->'concurrency' is not null then 'concurrency' else 'rate' end as kind
    from pawl.job_limits t where t.job = g.id limit 1
  ) t
  where g.state = {{state.ready}} and (select exists (select from pawl.job_limits)) order by g.ord
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
  select id, priority, attempts, crashes, queue, tenant, task from items
  where state = {{state.ready}} and not suspect and id not in (select id from queued_at_limit)
),
suspected as (
  insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
  select id, priority, attempts, crashes, queue, tenant, task from items
  where state = {{state.ready}} and suspect and id not in (select id from queued_at_limit)
),
scheduled as (
  insert into pawl.scheduled (run_at, id, priority, attempts, crashes, queue, tenant, task)
  select to_timestamp(run_at / 1000), id, priority, attempts, crashes, queue, tenant, task from items where state = {{state.scheduled}}
),
parked as (
  insert into pawl.parked (run_at, id, priority, attempts, crashes, reason, queue, tenant, task)
  select case when to_timestamp(run_at / 1000) > coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) then to_timestamp(run_at / 1000) end,
    id, priority, attempts, crashes, 'paused', queue, tenant, task
  from items where state = {{state.parked}}
),
blocked as (
  insert into pawl.blocked (run_at, id, priority, queue, tenant, task)
  select to_timestamp(run_at / 1000), id, priority, queue, tenant, task from items where state = {{state.blocked}}
),
died as (
  insert into pawl.dead (died_at, id, priority, queue, tenant, task, kind, name)
  select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()), id, priority, queue, tenant, task, kind, name
  from items where state = {{state.dead}}
)
select limit_key from keys_to_check
