-- Takes jobs out of the tables they wait in, and answers what stood there. A job that is not answered does not wait there.
--
--   :state   only out of the tables of that state; null: wherever they are
with ready as (
  -- Ready rows of one job are looked for one by one: those of several have no ids, and by its estimates Postgres would rather read all of
  -- them. A row is never updated, so it stays where it is.
  delete from pawl.ready where ctid = any(array(
      select r.ctid from unnest(:ids::uuid[]) as g(id) cross join lateral (select r.ctid from pawl.ready r where r.id = g.id limit 1) r
    ))
    and id = any(:ids::uuid[])  -- stop: take-waiting-snapshot
    and coalesce(:state::text, 'ready') = 'ready'  -- guard: taken-of-that-state
  returning id, queue, priority, tenant, task, attempts, crashes
),
suspect as (
  delete from pawl.suspect
  where id = any(:ids::uuid[])  -- stop: take-waiting-snapshot
    and coalesce(:state::text, 'ready') = 'ready'  -- guard: taken-of-that-state
  returning id, queue, priority, tenant, task, attempts, crashes
),
scheduled as (
  delete from pawl.scheduled
  where id = any(:ids::uuid[])  -- stop: take-waiting-snapshot
    and coalesce(:state::text, 'scheduled') = 'scheduled'  -- guard: taken-of-that-state
  returning id, queue, priority, tenant, task, attempts, crashes, run_at
),
parked as (
  delete from pawl.parked
  where id = any(:ids::uuid[])  -- stop: take-waiting-snapshot
    and coalesce(:state::text, 'parked') = 'parked'  -- guard: taken-of-that-state
  returning id, queue, priority, tenant, task, attempts, crashes, run_at
),
blocked as (
  delete from pawl.blocked
  where id = any(:ids::uuid[])  -- stop: take-waiting-snapshot
    and coalesce(:state::text, 'blocked') = 'blocked'  -- guard: taken-of-that-state
  returning id, queue, priority, tenant, task, run_at
)
select 'ready' as state, id, queue, priority, tenant, task, attempts, crashes, null::float8 as run_at from
  ready  -- guard: ready-were-taken
union all select 'ready', id, queue, priority, tenant, task, attempts, crashes, null from suspect
union all select 'scheduled', id, queue, priority, tenant, task, attempts, crashes, (extract(epoch from run_at) * 1000)::float8 from
  scheduled  -- guard: scheduled-were-taken
union all select 'parked', id, queue, priority, tenant, task, attempts, crashes, (extract(epoch from run_at) * 1000)::float8 from parked
union all select 'blocked', id, queue, priority, tenant, task, 0, 0, (extract(epoch from run_at) * 1000)::float8 from blocked
