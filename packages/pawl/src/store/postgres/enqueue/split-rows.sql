-- Splits the ready rows of several jobs that hold one of these: a job that is wanted by its id stands in a row of its own. It locks the rows
-- by `ctid`, which is the order in which all splits lock them; a row is never updated, so it stays where it is.
--
-- A claim that takes out of such a row at the same moment leaves the rest in another row, which this statement's snapshot does not have:
-- then it is `missed`.
with wanted as materialized (
  select j.queue, j.priority, j.tenant, j.task, j.home, j.id from unnest(:ids::uuid[]) as g(id)
  cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j
),
found as materialized (
  select distinct r.ctid as address
  from (
    select queue, priority, tenant, task, min(home) as first, max(home) as last, array_agg(id) as ids
    from wanted group by queue, priority, tenant, task, home / {{seq_step}}
  ) w
  -- `offset 0`: each is looked for by the key. Joined as it is estimated, for ten jobs, all rows were read for every batch.
  cross join lateral (
    select r.ctid from pawl.ready r
    where r.queue = w.queue and r.priority = w.priority and r.tenant = w.tenant and r.task = w.task
      and r.seq > w.first - {{seq_step}} and r.seq <= w.last and r.jobs && w.ids
    offset 0
  ) r
),
split as (
  delete from pawl.ready r
  where r.ctid = any(array(select address from found))  -- stop: split-rows-snapshot
  returning r.seq, r.priority, r.queue, r.tenant, r.task, r.jobs, r.inputs, r.options
),
singles as (
  insert into pawl.ready (seq, priority, queue, tenant, task, id, inputs, options)
  select s.seq + u.index - 1, s.priority, s.queue, s.tenant, s.task, u.id, u.input, u.options from
    split  -- guard: split-rows-were-deleted
    s cross join lateral unnest(s.jobs, string_to_array(s.inputs, {{record_separator}}), string_to_array(s.options, {{record_separator}}))
      with ordinality as u(id, input, options, index)
)
select (select count(*) from found) > (select count(*) from split) as missed
