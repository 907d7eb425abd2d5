-- The first jobs in the queues of limit keys, in order, as many as could pass, and locked. A job that somebody is about to cancel or pause is
-- passed by; where that leaves room, a row without a job says how many there are in all. They are counted in order, too, which only the
-- index has: where nearly all wait at one limit key, another's limit queue of nobody would be looked for in the whole table.
with head as materialized (
  select k.key as limit_key, p.*, p.seq = f.seq as first from unnest(:limit.key::text[], :limit.room::int[]) as k(key, room)
  cross join lateral (select f.seq from pawl.parked f where f.limit_key = k.key order by f.rank, f.seq limit 1) f
  cross join lateral (
    select p.id, p.queue, p.priority, p.tenant, p.task, p.rank, p.seq from pawl.parked p where p.limit_key = k.key order by p.rank, p.seq limit k.room
    for update skip locked  -- guard: queue-head-locked
  ) p
)
select h.limit_key, 0 as waiting, h.id, h.queue, h.priority, h.tenant, h.task, t.limits::text,
  t.serial and exists (select from pawl.slot s where s.kind = 'serial' and s.job = h.id) as keeps_turn, h.first, h.rank, h.seq::float8 as seq
from head h cross join lateral (select t.limits, t.serial from pawl.job_limits t where t.job = h.id limit 1) t
union all
select k.key, (select count(*)::int from (select from pawl.parked p where p.limit_key = k.key order by p.rank, p.seq limit k.room) p),
  null, null, null, null, null, null, null, null, null, null
from unnest(:limit.key::text[], :limit.room::int[]) as k(key, room)
where (select count(*) from head h where h.limit_key = k.key)
  < k.room  -- guard: room-left-is-seen
order by rank, seq
