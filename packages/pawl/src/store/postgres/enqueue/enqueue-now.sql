-- Stores a batch of which every job is due at once and none has a timer or can meet a conflict: most batches. Otherwise as `enqueue.sql`.
--
--   :lane           the lanes of the batch, and how many jobs each has
--   :id_templates   of all jobs, as one text of an array with a placeholder where the time goes: it is put into all ids at once
--   :inputs         of all jobs, as one JSON array
--   :job            lane and options of each job; `row` is the ready row that it is in. Jobs in rows of several come first, and only they have one
--   :row            the rows of several jobs: the first and last of them, and their lane
--   :carries        true: ready rows carry the inputs and options of their jobs
--
-- A number for each ready row is drawn before the jobs are stored, and after the transaction's id.
with clock as materialized (
  select at.now, floor_ms, ceiling_ms, pg_current_xact_id() as xact,
    lpad(to_hex(floor(greatest(floor_ms, least((extract(epoch from at.now) * 1000)::float8, ceiling_ms - 1)))::bigint), 12, '0') as prefix
  from pawl.partition_range, (select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) as now) at limit 1
),
items as materialized (
  select replace(:id_templates::text, {{time_placeholder}}, c.prefix)::uuid[] as ids, array(select json_array_elements(:inputs::json)) as inputs from clock c
),
numbers as materialized (
  select array(
    select nextval('pawl.ready_seq')
    from generate_series(1, cardinality(:row.lane::int[]) + cardinality(a.ids) - cardinality(:job.row::int[]))
    where c.xact is not null
  ) as seq
  from clock c cross join items a
),
stored as (
  insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
  select c.now, c.now, g.id, (:lane.priority::int2[])[coalesce(g.lane, 1)], (:lane.queue::text[])[coalesce(g.lane, 1)],
    (:lane.tenant::text[])[coalesce(g.lane, 1)], (:lane.task::text[])[coalesce(g.lane, 1)], g.input, g.options::json,
    coalesce(n.seq[g.row] + g.index - (:row.first::int[])[g.row], n.seq[cardinality(:row.lane::int[]) + g.index - cardinality(:job.row::int[])])
  from clock c cross join numbers n cross join items a
    cross join lateral unnest(a.ids, a.inputs, :job.lane::int[], :job.options::text[], :job.row::int[])
      with ordinality as g(id, input, lane, options, row, index)
),
readied as (
  insert into pawl.ready (seq, size, priority, queue, tenant, task, id, jobs, inputs, options)
  select n.seq[p.no], p.last - p.first + 1, (:lane.priority::int2[])[p.lane], (:lane.queue::text[])[p.lane], (:lane.tenant::text[])[p.lane],
    (:lane.task::text[])[p.lane], null::uuid, a.ids[p.first : p.last],
    case when :carries::bool then array_to_string(a.inputs[p.first : p.last], {{record_separator}}) end,
    case when :carries::bool and cardinality(:job.options::text[]) > 0 then array_to_string((:job.options::text[])[p.first : p.last], {{record_separator}}, '') end
  from numbers n cross join items a cross join unnest(:row.first::int[], :row.last::int[], :row.lane::int[]) with ordinality as p(first, last, lane, no)
  union all
  select s.seq, 1, (:lane.priority::int2[])[coalesce(s.lane, 1)], (:lane.queue::text[])[coalesce(s.lane, 1)],
    (:lane.tenant::text[])[coalesce(s.lane, 1)], (:lane.task::text[])[coalesce(s.lane, 1)],
    s.id, null, case when :carries::bool then s.input::text end, case when :carries::bool then s.options end
  from numbers n cross join items a cross join lateral unnest(
    n.seq[cardinality(:row.lane::int[]) + 1 :], a.ids[cardinality(:job.row::int[]) + 1 :], a.inputs[cardinality(:job.row::int[]) + 1 :],
    (:job.lane::int[])[cardinality(:job.row::int[]) + 1 :], (:job.options::text[])[cardinality(:job.row::int[]) + 1 :]
  ) as s(seq, id, input, lane, options)
),
counted as (
  insert into pawl.counter_delta (queue, task, ready)
  select queue, task, sum(jobs) from unnest(:lane.queue::text[], :lane.task::text[], :lane.jobs::int[]) as l(queue, task, jobs) group by queue, task
)
select (extract(epoch from now) * 1000)::float8 as now, floor_ms as floor, ceiling_ms as ceiling from clock
