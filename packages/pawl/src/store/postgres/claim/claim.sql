-- Takes the next jobs of each offered lane under one new lease: those in its admitted section first, then the others from the bound on.
--
--   :limits_checked   true: the caller has seen to the limits that the lanes are under. Otherwise lanes under limits give nothing.
--   :duration         of the lease, in ms
--   :offer            a row for each lane:
--     admitted_section   where its admitted section begins (numbers below zero), or null: it is not to be asked
--     bound              from where on the rest is asked
--     quota              how many jobs at most, of the admitted section and the rest together
--
-- It locks rows of `ready` in the order of the offers and of their numbers, and waits for none.
--
-- The answer is one row. It has a text of one entry for each row of `taken`, one for each job, and the facts of jobs whose rows do
-- not carry them (claim-answer.ts).
with offer as materialized (
  select * from unnest(:offer.queue::text[], :offer.priority::int2[], :offer.tenant::text[], :offer.task::text[],
      :offer.admitted_section::bigint[], :offer.bound::bigint[], :offer.quota::int[])
    with ordinality as o(queue, priority, tenant, task, admitted_section, bound, quota, no)
  where not exists (
      select from pawl.pause p
      where (p.kind = 'queue' and p.name = o.queue) or (p.kind = 'task' and p.name = o.task) or (p.kind = 'tenant' and p.name = o.tenant)
    )
    and case when :limits_checked::bool then true
      when exists (select from pawl.lane_limit) then not exists (
        select from pawl.lane_limit p
        where (p.kind = 'queue' and p.name = o.queue) or (p.kind = 'task' and p.name = o.task) or (p.kind = 'tenant' and p.name = o.tenant)
      )
      else true end
),
-- A row is locked when it is pulled, and `generate_series` under LIMIT pulls just the rows that hold the jobs asked for. The inner LIMIT
-- keeps a plan that locks before it sorts within as many rows as jobs are asked for. Rows come in the order lanes were offered and their
-- numbers, and so does all that is made of them: `row` and `taken` are joined with nothing. Locked rows are materialized, or the
-- planner may run its LIMIT more than once.
row as materialized (
  select p.* from (
    select o.no, o.quota, r.* from offer o cross join lateral (
      select r.*,
        generate_series(1, r.size)  -- guard: rows-for-quota
        as nth
      from (values (o.admitted_section, 0), (o.bound, 9223372036854775807)) as s(low, below) cross join lateral (
        select r.ctid as tid, r.seq, r.size, r.attempts, r.crashes, r.id, r.jobs, r.inputs, r.options from pawl.ready r
        where r.queue = o.queue  -- stop: claim-snapshot
          and r.priority = o.priority and r.tenant = o.tenant and r.task = o.task and r.seq >= s.low and r.seq < s.below
        order by r.seq limit o.quota
        for update skip locked  -- guard: claimed-row-locked
      ) r
      limit o.quota
    ) r
  ) p where nth = 1
),
many as materialized (select coalesce(max(size), 0) > 1 as found from row),
-- Only the last row of a lane can have more jobs than are asked for. Looked up as one object: a join could change the order.
cut as materialized (
  select jsonb_object_agg(seq, extra) as extra from (
    select max(seq) as seq, sum(size) - max(quota) as extra from row where (select found from many) group by no having sum(size) > max(quota)
  ) c
),
taken as materialized (
  select *, case when size = 1 then 1 else size - coalesce(((select extra from cut) ->> seq::text)::int, 0) end as taken_count from row
),
-- Rows are deleted by an array of their addresses: a join might scan the table. They are never updated: the address of a version that is
-- newer than the snapshot would lead nowhere (and Postgres 18 has been seen to crash where it judges a row again in a statement that
-- prunes partitions).
deleted as (delete from pawl.ready where ctid = any(array(select tid from taken))),
-- The jobs of a row that were not taken are put back with their inputs and options. Their row begins at the index of its first job.
remainder as (
  insert into pawl.ready (seq, size, priority, queue, tenant, task, id, jobs, inputs, options)
  select seq + taken_count, size - taken_count,
    (:offer.priority::int2[])[no], (:offer.queue::text[])[no], (:offer.tenant::text[])[no], (:offer.task::text[])[no],
    case when size - taken_count = 1 then jobs[size] end,
    case when size - taken_count > 1 then jobs
      [taken_count + 1 :]  -- guard: remainder-is-untaken
    end,
    array_to_string((string_to_array(inputs, {{record_separator}}))[taken_count + 1 :], {{record_separator}}),
    array_to_string((string_to_array(options, {{record_separator}}))[taken_count + 1 :], {{record_separator}})
  from taken
  where taken_count < size  -- stop: claim-locked
),
claimed as materialized (
  select coalesce(sum(taken_count), 0)::int as count,
    case when (select found from many) then array(select unnest(case when id is null then jobs[1 : taken_count] else array[id] end) from taken)
      else array(select id from taken) end as jobs,
    case when bool_or(inputs is null) then array(
      select unnest(case when id is null then jobs[1 : taken_count] else array[id] end) as id from taken where inputs is null order by 1
    ) end as without_inputs,
    string_agg(seq::text, ',') as seqs,
    case when max(taken_count) > 1 then string_agg(taken_count::text, ',') end as counts,
    case when max(no) > 1 then string_agg(no::text, ',') end as lanes,
    case when max(attempts) > 0 then string_agg(attempts::text, ',') end as attempts,
    case when max(crashes) > 0 then string_agg(crashes::text, ',') end as crashes,
    case when bool_or(inputs is not null) then string_agg(
      case when inputs is null then repeat({{record_separator}}, taken_count - 1)
        when taken_count = size then inputs
        else array_to_string((string_to_array(inputs, {{record_separator}}))[1 : taken_count], {{record_separator}}) end,
      {{record_separator}}) end as inputs,
    case when bool_or(options is not null) then string_agg(
      case when options is null then repeat({{record_separator}}, taken_count - 1)
        when taken_count = size then options
        else array_to_string((string_to_array(options, {{record_separator}}))[1 : taken_count], {{record_separator}}) end,
      {{record_separator}}) end as options
  from taken
),
lease as (
  insert into pawl.lease (claimed_at, until, worker, unsettled, alone, jobs)
  select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()),
    coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) + :duration::float8 * interval '1 millisecond',
    :worker::int, count, false, jobs
  from claimed where count > 0
  returning id
),
counters as (
  insert into pawl.counter_delta (queue, task, ready, running)
  select (:offer.queue::text[])[no], (:offer.task::text[])[no], -sum(count), sum(count)
  from (select no, sum(taken_count) as count from taken group by no) t group by 1, 2
)
select l.id::text as lease, (extract(epoch from coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())) * 1000)::float8 as now,
  array_to_string(o.jobs, ',') as jobs, o.seqs, o.counts, o.lanes, o.attempts, o.crashes, o.inputs, o.options,
  -- Looked up by a sorted array of ids between its ends: one walk through the index of the partitions that can hold them, where a join would
  -- look into every partition for each job. A large input is read apart, so that this stays one text of a modest size. A job whose facts
  -- are missing dies alone.
  case when o.without_inputs is not null then (
    select string_agg(j.id::text || j.home || {{field_separator}} || j.input::text || case when j.options is null then ''
        else {{field_separator}} || (extract(epoch from j.due_at) * 1000)::float8 || {{field_separator}} || j.options::text end, {{record_separator}})
    from pawl.job j
    where j.id = any(o.without_inputs) and j.id >= o.without_inputs[1] and j.id <= o.without_inputs[cardinality(o.without_inputs)]
      and pg_column_size(j.input) < 65536
  ) end as details,
  case when exists (select from pawl.intent) then (
    select json_object_agg(i.job, i.kind)::text from pawl.intent i where i.job = any(o.jobs)
  ) end as intents,
  -- Lanes that gave less than they were asked for and have a row of several jobs that is not taken here. Another claim holds it, and what
  -- that one puts back is not in this statement's snapshot.
  case when o.count < (select sum(quota) from offer) then (
    select string_agg(f.no::text, ',') from offer f
    where case when f.no in (select no from taken group by no having sum(taken_count) >= max(quota)) then false else true end and exists (
      select from pawl.ready r
      where r.queue = f.queue and r.priority = f.priority and r.tenant = f.tenant and r.task = f.task and r.seq >= f.bound
        and r.size > 1  -- guard: locked-row-of-several
        and case when r.seq in (select seq from taken) then false else true end
    )
  ) end as locked
from claimed o left join lease l on true
