-- One job that has taken workers down, alone in its lease: the oldest one of those asked for that may be run. It waits for no lock.
--
--   :queues, :priorities, :tenants   null: all
--   :open_limit                      limits that have room for it. From under others it is not taken.
with pick as materialized (
  select p.tid from unnest(:tasks::text[]) as o(task) cross join lateral (
    select u.ctid as tid, u.seq from pawl.suspect u
    where u.task = o.task  -- stop: claim-suspect-snapshot
      and (:queues::text[] is null or u.queue = any(:queues::text[]))
      and (:priorities::int2[] is null or u.priority = any(:priorities::int2[])) and (:tenants::text[] is null or u.tenant = any(:tenants::text[]))
      and not exists (
        select from pawl.pause p
        where (p.kind = 'queue' and p.name = u.queue) or (p.kind = 'task' and p.name = u.task) or (p.kind = 'tenant' and p.name = u.tenant)
      )
      and not exists (
        select from (
          select * from pawl.lane_limit l
          where (l.kind, l.name) not in (select * from unnest(:open_limit.kind::text[], :open_limit.name::text[]) as g(kind, name))
        ) p
        where (p.kind = 'queue' and p.name = u.queue) or (p.kind = 'task' and p.name = u.task) or (p.kind = 'tenant' and p.name = u.tenant)
      )
    order by u.seq limit 1
    for update skip locked  -- guard: suspect-locked
  ) p order by p.seq limit 1
),
taken as materialized (
  delete from pawl.suspect u using pick where u.ctid = pick.tid returning u.id, u.attempts, u.crashes, u.queue, u.priority, u.tenant, u.task
),
lease as (
  insert into pawl.lease (claimed_at, until, worker, unsettled, alone, jobs)
  select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()),
    coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) + :duration::float8 * interval '1 millisecond',
    :worker::int, 1, true, array[id]
  from taken
  returning id
),
counters as (insert into pawl.counter_delta (queue, task, ready, running) select queue, task, -1, 1 from taken)
select l.id::text as lease, (extract(epoch from coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())) * 1000)::float8 as now,
  t.id as job, t.attempts, t.crashes, t.queue, t.priority, t.tenant, t.task,
  (select i.kind from pawl.intent i where i.job = t.id limit 1) as intent
from taken t cross join lease l
