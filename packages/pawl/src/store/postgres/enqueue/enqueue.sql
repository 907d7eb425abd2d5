-- Stores a batch of jobs that can meet no conflict (no unique key, idempotency key or dependency) in one statement.
--
--   :lane     the lanes of the batch; jobs refer to them by number, from 1
--   :inputs   of all jobs, as one JSON array: joined there and taken apart here without being escaped
--   :job      a row for each job. delay, expire and deadline are in ms; run_at is an instant; all of them may be null
--
-- The server makes the ids by its own clock: due time, clamped to the partitions that exist, then the caller's id suffix. It answers with
-- one row, the clock and the clamp, out of which the caller computes the same ids: a thousand jobs need no thousand rows back.
--
-- The number of a job, by which it stands in its lane, is drawn after the transaction's id: SafeSequence relies on that order.
with clock as materialized (
  select at.now, floor_ms, ceiling_ms, pg_current_xact_id() as xact,
    lpad(to_hex(floor(greatest(floor_ms, least((extract(epoch from at.now) * 1000)::float8, ceiling_ms - 1)))::bigint), 12, '0') as prefix
  from pawl.partition_range, (select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) as now) at limit 1
),
items as materialized (
  select (:lane.queue::text[])[g.lane] as queue, (:lane.priority::int2[])[g.lane] as priority, (:lane.tenant::text[])[g.lane] as tenant,
    (:lane.task::text[])[g.lane] as task, g.id_suffix, g.input, g.options, g.expire, g.deadline, g.ord,
    g.delay is null and g.run_at is null as immediate,
    greatest(c.now, coalesce(to_timestamp(g.run_at / 1000), c.now + g.delay * interval '1 millisecond')) as due_at
  from rows from (
      json_array_elements(:inputs::json),
      unnest(:job.id_suffix::text[], :job.lane::int[], :job.options::text[], :job.delay::float8[], :job.run_at::float8[], :job.expire::float8[], :job.deadline::float8[])
    ) with ordinality as g(input, id_suffix, lane, options, delay, run_at, expire, deadline, ord)
  cross join clock c
),
with_id as materialized (
  select g.*, ((case when g.immediate then c.prefix
    else lpad(to_hex(floor(greatest(c.floor_ms, least((extract(epoch from g.due_at) * 1000)::float8, c.ceiling_ms - 1)))::bigint), 12, '0') end) || g.id_suffix)::uuid as id
  from items g cross join clock c
),
stored as (
  insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
  select c.now, s.due_at, s.id, s.priority, s.queue, s.tenant, s.task, s.input, s.options::json, nextval('pawl.ready_seq')
  from with_id s cross join clock c where c.xact is not null order by s.ord
  returning home, id, due_at, priority, queue, tenant, task
),
readied as (
  insert into pawl.ready (seq, id, priority, queue, tenant, task)
  select s.home, s.id, s.priority, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at <= c.now
),
calendared as (
  insert into pawl.scheduled (run_at, id, priority, attempts, crashes, queue, tenant, task)
  select s.due_at, s.id, s.priority, 0, 0, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at > c.now
),
timed as (
  insert into pawl.timer (at, job, kind)
  select s.due_at + t.after * interval '1 millisecond', s.id, t.kind
  from with_id s cross join lateral (values ('expire', s.expire), ('deadline', s.deadline)) as t(kind, after) where t.after is not null
),
counted as (
  insert into pawl.counter_delta (queue, task, ready, scheduled)
  select g.queue, g.task, count(*) filter (where g.due_at <= c.now), count(*) filter (where g.due_at > c.now)
  from items g cross join clock c group by g.queue, g.task
)
select (extract(epoch from now) * 1000)::float8 as now, floor_ms as floor, ceiling_ms as ceiling from clock
