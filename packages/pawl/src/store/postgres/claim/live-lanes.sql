-- Looks for work: the head of every known lane from its bound on, and unknown lanes in the gaps between known ones (a loose index scan that
-- jumps from lane to lane). Both stay inside what can be live, so the cost does not grow with dead rows. It locks nothing.
--
--   :known         the known lanes in order, with their bounds; the gaps lie between them, with sentinels at both ends
--   :seen_up_to    a number up to which everything was seen. If none was given out since, no lane can be new, and the gaps are left alone.
--                  If one was, a transaction's id is drawn after it, by which a later look knows that all was seen (see SafeSequence).
--
-- Lanes have admitted sections only where jobs are under limits. A row of the answer is of the kind that `what` says.
with recursive snapshot as materialized (
  select seq, case when seq <> :seen_up_to::bigint then pg_current_xact_id()::text end as xact
  from (select (select case when is_called then last_value else 0 end from pawl.ready_seq) as seq offset 0) as read
),
known as materialized (
  select * from unnest(:known.queue::text[], :known.priority::int2[], :known.tenant::text[], :known.task::text[],
      :known.bound::bigint[], :known.admitted_section::bigint[])
    with ordinality as k(queue, priority, tenant, task, bound, admitted_section, no)
),
edges as materialized (
  select queue, priority, tenant, task, no from known
  union all select '', -1::int2, '', '', 0
  union all select repeat(chr(1114111), 3), 99::int2, '', '', (select count(*) + 1 from known)
),
gap as materialized (
  select queue as q1, priority as p1, tenant as t1, task as k1,
    lead(queue) over w as q2, lead(priority) over w as p2, lead(tenant) over w as t2, lead(task) over w as k2
  from edges window w as (order by no)
),
walk as (
  -- The first lane between two others that has rows, and whether it has an admitted section.
  select g.q2, g.p2, g.t2, g.k2, f.queue, f.priority, f.tenant, f.task, f.admitted_section from gap g cross join lateral (
    select r.queue, r.priority, r.tenant, r.task, r.seq < 0 as admitted_section from pawl.ready r
    where (r.queue, r.priority, r.tenant, r.task) > (g.q1 collate "C", g.p1, g.t1 collate "C", g.k1 collate "C")
      and (r.queue, r.priority, r.tenant, r.task) < (g.q2 collate "C", g.p2, g.t2 collate "C", g.k2 collate "C")
    order by r.queue, r.priority, r.tenant, r.task, r.seq limit 1
  ) f where g.q2 is not null and (select seq from snapshot) <> :seen_up_to::bigint
  union all
  select w.q2, w.p2, w.t2, w.k2, f.queue, f.priority, f.tenant, f.task, f.admitted_section from walk w cross join lateral (
    select r.queue, r.priority, r.tenant, r.task, r.seq < 0 as admitted_section from pawl.ready r
    where (r.queue, r.priority, r.tenant, r.task) > (w.queue, w.priority, w.tenant, w.task)
      and (r.queue, r.priority, r.tenant, r.task) < (w.q2 collate "C", w.p2, w.t2 collate "C", w.k2 collate "C")
    order by r.queue, r.priority, r.tenant, r.task, r.seq limit 1
  ) f
),
head as (
  select k.no,
    (select r.seq from pawl.ready r
      where r.queue = k.queue and r.priority = k.priority and r.tenant = k.tenant and r.task = k.task and r.seq >= k.bound
      order by r.seq limit 1) as seq,
    case when (select exists (select from pawl.job_limits)) then (
      select r.seq from pawl.ready r
      where r.queue = k.queue and r.priority = k.priority and r.tenant = k.tenant and r.task = k.task and r.seq >= k.admitted_section and r.seq < 0
      order by r.seq limit 1) end as admitted_section
  from known k
)
select 'head' as what, no::int, seq::text as a, admitted_section::text as queue, null::int2 as priority, null::text as tenant, null::text as task,
  null::bool as admitted_section from head
union all select 'lane', null, null, queue, priority, tenant, task, admitted_section from walk
union all select 'pause', null, kind, name, null, null, null, null from pawl.pause
union all (select distinct 'suspect', null::int, null, queue, null::int2, tenant, task, null::bool from pawl.suspect)
union all select 'policies', null, version::text, null, null, null, null, null from pawl.policy_version
union all select 'snapshot', null, m.seq::text,
  pg_snapshot_xmin(s)::text,  -- guard: horizon-is-xmin
  null, coalesce(m.xact, ''), extract(epoch from pg_postmaster_start_time())::text, null from snapshot m cross join pg_current_snapshot() s
