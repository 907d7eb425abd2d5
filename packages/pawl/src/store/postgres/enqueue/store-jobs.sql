-- Stores the facts of jobs and their timers, in the caller's transaction. Where the jobs wait is said by other statements.
--
--   :now   the instant of the enqueue, in ms
--   :job   a row for each job; `due` is an instant, expire and deadline count from it, all in ms
with lane as materialized (
  select * from unnest(:lane.queue::text[], :lane.priority::int2[], :lane.tenant::text[], :lane.task::text[])
    with ordinality as l(queue, priority, tenant, task, no)
),
items as materialized (
  select l.queue, l.priority, l.tenant, l.task, g.* from unnest(:job.id::uuid[], :job.lane::int[], :job.input::text[], :job.options::text[],
      :job.due::float8[], :job.expire::float8[], :job.deadline::float8[])
    as g(id, lane, input, options, due, expire, deadline)
  join lane l on l.no = g.lane
),
stored as (
  insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
  select to_timestamp(:now::float8 / 1000), to_timestamp(due / 1000), id, priority, queue, tenant, task, input::json, options::json, nextval('pawl.ready_seq')
  from items
  where pg_current_xact_id() is not null
)
insert into pawl.timer (at, job, kind)
select to_timestamp((g.due + t.after) / 1000), g.id, t.kind
from items g cross join lateral (values ('expire', g.expire), ('deadline', g.deadline)) as t(kind, after) where t.after is not null
