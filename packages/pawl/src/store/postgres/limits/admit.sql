-- Admits jobs at limit keys, under the locks of these: those admitted become ready, take their slots, and the others in the queues are moved
-- or told why they wait. Jobs that waited go to the admitted section. ready.seq is drawn after the delete, which has given the transaction
-- its id (see SafeSequence).
with admitted as (
  delete from pawl.parked p using unnest(:admitted.id::uuid[], :admitted.waited::bool[]) with ordinality as g(id, waited, ord) where p.id = g.id
  returning p.id, p.priority, p.attempts, p.crashes, p.queue, p.tenant, p.task, g.ord, g.waited and p.crashes < {{suspect_from}} as admitted_section
),
sorted as materialized (select * from admitted order by ord),
readied as (
  insert into pawl.ready (seq, id, priority, attempts, crashes, queue, tenant, task)
  select nextval('pawl.ready_seq') + case when admitted_section then {{admitted_section_start}} else 0 end,
    id, priority, attempts, crashes, queue, tenant, task
  from sorted where crashes < {{suspect_from}}
),
suspected as (
  insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
  select id, priority, attempts, crashes, queue, tenant, task from sorted where crashes >= {{suspect_from}}
),
held as (
  insert into pawl.slot (kind, key, job)
  select * from unnest(:slot.kind::text[], :slot.key::text[], :slot.job::uuid[]) as g(kind, key, job) on conflict do nothing
),
moved as (
  update pawl.parked p set limit_key = m.limit_key, rank = m.rank, reason = m.reason
  from unnest(:waiting.id::uuid[], :waiting.limit_key::text[], :waiting.rank::int2[], :waiting.reason::text[]) as m(id, limit_key, rank, reason)
  where p.id = m.id and (p.limit_key, p.rank, p.reason) is distinct from (m.limit_key, m.rank, m.reason)
),
left_as as (
  update pawl.limit_key g set full_at = to_timestamp(b.full_at / 1000), closed = b.closed
  from unnest(:changed.key::text[], :changed.full_at::float8[], :changed.closed::bool[]) as b(key, full_at, closed) where g.key = b.key
),
counted as (insert into pawl.counter_delta (queue, task, parked, ready) select queue, task, -count(*), count(*) from admitted group by queue, task),
limit_checks as (
  insert into pawl.limit_check (at, key)
  select to_timestamp(k.at / 1000), k.key from unnest(:limit_check.at::float8[], :limit_check.key::text[]) as k(at, key)
)
select queue, priority, tenant, task, bool_or(admitted_section) as admitted_section from admitted group by queue, priority, tenant, task
