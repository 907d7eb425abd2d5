-- Stores one job that is due at once, has no timer and can meet no conflict: what `enqueue-now.sql` does, without the arrays, whose set-up
-- costs more than one job does.
--
--   :carries   true: its ready row carries its input and options
--
-- The number of the job, by which it stands in its lane, is drawn after the transaction's id: SafeSequence relies on that order.
with stored as (
  insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
  select at.now, at.now,
    (lpad(to_hex(floor(greatest(floor_ms, least((extract(epoch from at.now) * 1000)::float8, ceiling_ms - 1)))::bigint), 12, '0') || :id_suffix::text)::uuid,
    :priority::int2, :queue::text, :tenant::text, :task::text, :input::json, :options::json,
    case when pg_current_xact_id() is not null then nextval('pawl.ready_seq') end
  from pawl.partition_range, (select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) as now) at limit 1
  returning home, id, created_at
),
readied as (
  insert into pawl.ready (seq, id, priority, queue, tenant, task, inputs, options)
  select home, id, :priority::int2, :queue::text, :tenant::text, :task::text,
    case when :carries::bool then :input::json::text end, case when :carries::bool then :options::json::text end
  from stored
),
counted as (insert into pawl.counter_delta (queue, task, ready) values (:queue::text, :task::text, 1))
select id, (extract(epoch from created_at) * 1000)::float8 as now, false as handed_off from stored
