-- Stores jobs of one lane that are due at once, have no timer and can meet no conflict, `per_row` of them to each ready row: callers with
-- thousands of jobs send this. Nothing is looked up per job, nothing is handed on from one step to the next, and jobs are unpacked as they
-- are stored, not before. Otherwise as `enqueue-now.sql`.
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
    select nextval('pawl.ready_seq') from generate_series(1, (:count::int + :per_row::int - 1) / :per_row::int) where c.xact is not null
  ) as seq
  from clock c cross join items a
),
stored as (
  insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
  select g.now, g.now, g.id, :priority::int2, :queue::text, :tenant::text, :task::text, g.input, g.options::json,
    g.seq[(g.index - 1) / :per_row::int + 1] + (g.index - 1) % :per_row::int
  from (
    select c.now, n.seq, unnest(a.ids) as id, unnest(a.inputs) as input, unnest(:options::text[]) as options, generate_series(1, :count::int) as index
    from clock c cross join numbers n cross join items a
  ) g
),
readied as (
  insert into pawl.ready (seq, size, priority, queue, tenant, task, id, jobs, inputs, options)
  select p.seq, p.last - p.first + 1, :priority::int2, :queue::text, :tenant::text, :task::text,
    case when p.last = p.first then a.ids[p.first] end, case when p.last > p.first then a.ids[p.first : p.last] end,
    case when :carries::bool then array_to_string(a.inputs[p.first : p.last], {{record_separator}}) end,
    case when :carries::bool and cardinality(:options::text[]) > 0 then array_to_string((:options::text[])[p.first : p.last], {{record_separator}}, '') end
  from numbers n cross join items a cross join lateral (
    select u.seq, (u.no - 1) * :per_row::int + 1 as first, least(u.no * :per_row::int, :count::int) as last
    from unnest(n.seq) with ordinality as u(seq, no)
  ) p
),
counted as (insert into pawl.counter_delta (queue, task, ready) values (:queue::text, :task::text, :count::int))
select (extract(epoch from now) * 1000)::float8 as now, floor_ms as floor, ceiling_ms as ceiling from clock
