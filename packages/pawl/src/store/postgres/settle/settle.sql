-- The hot exit: one statement that locks the leases in order, appends the attempts (the insert is the acknowledgement), closes or lowers the
-- leases, and moves jobs on that did not end. A job is addressed by its index in its lease; ids are not sent.
--
-- Jobs come in runs: indexes one after the other, of one lane. A run is settled as a whole or left alone as a whole, and everything else is
-- derived from the runs that were settled. Left alone are runs
-- * with an index that is settled already, or that the lease does not have, or whose month is going;
-- * with a job that something was asked of, or that others wait for (`needs_steps`), for these are looked after in several statements
--   (settle-in-steps.ts);
-- * of a lease in which somebody wrote something that this statement's snapshot does not show (`changed_by`): the same again, with a new
--   snapshot, shows it.
--
--   :since      seconds: the times of attempts are microseconds after it
--   :lease      a row for each lease, in the order of their numbers: its first and last run
--   :run        a row for each run: first and last index in its lease, smallest and largest home, where it begins in the flat arrays (`at`,
--               `outputs`, `outcomes_from`), its lane, and how many of its jobs did not succeed, by their next state
--   :started, :finished, :outputs, :outcomes, :failures   flat arrays: an element for each attempt, or for each that has one
--   :lane       the lanes, which the others refer to by number
--   :move       a row for each job that goes on: `nth` of its run
--
-- Jobs under limits are settled by the whole statement; that of others lacks the block `limited`.
with locked_lease as materialized (
  select c.run_from, c.run_to, l.id,
    l.unsettled  -- guard: unsettled-after-lock
    , l.changed_by, l.settled, l.jobs
  from unnest(:lease.id::bigint[], :lease.run_from::int[], :lease.run_to::int[]) as c(id, run_from, run_to)
  -- Each lease as it is after the lock. To its `jobs` nothing is appended: but the result is in memory, while the column itself is stored
  -- apart, and would be fetched anew for every run.
  cross join lateral (
    select id, unsettled, changed_by, settled, jobs || '{}'::uuid[] as jobs from pawl.lease l
    where l.id = c.id and l.worker = :worker::int  -- stop: settle-snapshot
    for update  -- guard: lease-locked
  ) l
),
run as materialized (
  select n as no, o.id as lease, o.unsettled, o.settled, (:run.first::int[])[n] as first, (:run.last::int[])[n] as last, cardinality(o.jobs) as most,
    o.jobs[(:run.first::int[])[n] : (:run.last::int[])[n]] as jobs
  from locked_lease o cross join lateral generate_series(o.run_from, o.run_to) as n
  where o.changed_by is null or pg_visible_in_snapshot(o.changed_by, pg_current_snapshot())  -- guard: changes-are-visible
),
needs_steps as materialized (
  select case
      when exists (select from pawl.dependency)  -- guard: dependents-need-steps
      then array(select distinct parent from pawl.dependency where parent = any(array(select unnest(jobs) from run))) else '{}' end
    || case
      when exists (select from pawl.intent)  -- guard: intents-need-steps
      then array(select job from pawl.intent where job = any(array(select unnest(jobs) from run))) else '{}' end as jobs
),
settleable as materialized (
  select r.*, r.last - r.first + 1 as count from run r
  where r.last <= r.most
    and r.jobs[1] >= (select floor from pawl.partition_range)  -- guard: month-stays
    and not r.settled && int4multirange(int4range(r.first, r.last, '[]'))  -- guard: settled-once
    and not r.jobs && (select jobs from needs_steps)
),
appended as (
  insert into pawl.history (home, last, lease, since, ended, first, worker, jobs, started, finished, outcomes, failures, outputs)
  select (:run.home::bigint[])[g.no], (:run.last_home::bigint[])[g.no], g.lease,
    to_timestamp(:since::float8 + case when g.count = 1 then (:started::bigint[])[p.at] / 1e6 else 0 end),
    case when g.count = 1 then to_timestamp(:since::float8 + (:finished::bigint[])[p.at] / 1e6) end,
    g.jobs[1], :worker::int, case when g.count > 1 then g.jobs end,
    case when g.count > 1 then (:started::bigint[])[p.at : p.at + g.count - 1]::int[] end,
    case when g.count > 1 then (:finished::bigint[])[p.at : p.at + g.count - 1]::int[] end,
    case when p.outcomes_from is not null then (:outcomes::int[])
      [(p.outcomes_from - 1) * {{numbers_per_outcome}} + 1 : p.outcomes_to * {{numbers_per_outcome}}] end,
    case when p.outcomes_from is not null then (:failures::text[])[p.outcomes_from : p.outcomes_to]::json[] end,
    case when p.outputs is not null then (:outputs::text[])[p.outputs : p.outputs + g.count - 1]::json[] end
  from settleable g cross join lateral (
    select (:run.at::int[])[g.no] as at, (:run.outcomes_from::int[])[g.no] as outcomes_from, (:run.outcomes_to::int[])[g.no] as outcomes_to,
      (:run.outputs::int[])[g.no] as outputs
  ) p
),
done as materialized (
  select lease, unsettled, settled, sum(count)::int as count, range_agg(int4range(first, last, '[]')) as indexes
  from settleable group by lease, unsettled, settled
),
ended_lease as (delete from pawl.lease l using done d where l.id = d.lease and d.unsettled <= d.count),
reduced_lease as (
  update pawl.lease l set unsettled = d.unsettled - d.count, settled =
    d.settled +  -- guard: settled-adds-up
    d.indexes
  from done d where l.id = d.lease and d.unsettled > d.count
),
move as materialized (
  select g.jobs[m.nth] as job, m.next, m.attempts, m.crashes, m.delay, m.suspect, m.kind, m.name, (:lane.queue::text[])[m.lane] as queue,
    (:lane.priority::int2[])[m.lane] as priority, (:lane.tenant::text[])[m.lane] as tenant, (:lane.task::text[])[m.lane] as task
  from unnest(:move.run::int[], :move.nth::int[], :move.lane::int[], :move.next::int2[], :move.attempts::int2[], :move.crashes::int2[],
      :move.delay::float8[], :move.suspect::bool[], :move.kind::text[], :move.name::text[])
    with ordinality as m(run, nth, lane, next, attempts, crashes, delay, suspect, kind, name, turn)
  join settleable g on g.no = m.run order by m.turn
),
readied as (
  insert into pawl.ready (id, priority, attempts, crashes, queue, tenant, task)
  select job, priority, attempts, crashes, queue, tenant, task from move where next = {{state.ready}} and not suspect
),
suspected as (
  insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
  select job, priority, attempts, crashes, queue, tenant, task from move where next = {{state.ready}} and suspect
),
scheduled as (
  insert into pawl.scheduled (run_at, id, priority, attempts, crashes, queue, tenant, task)
  select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) + delay * interval '1 millisecond',
    job, priority, attempts, crashes, queue, tenant, task
  from move where next = {{state.scheduled}}
),
died as (
  insert into pawl.dead (died_at, id, priority, queue, tenant, task, kind, name)
  select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()), job, priority, queue, tenant, task, kind, name
  from move where next = {{state.dead}}
),
counters as (
  insert into pawl.counter_delta (queue, task, running, ready, scheduled, dead, cancelled, succeeded)
  select queue, task, -all_of_them, ready, scheduled, dead, cancelled, all_of_them - ready - scheduled - dead - cancelled from (
    select (:lane.queue::text[])[(:run.lane::int[])[no]] as queue, (:lane.task::text[])[(:run.lane::int[])[no]] as task, sum(count) as all_of_them,
      coalesce(sum((:run.ready::int[])[no]), 0) as ready, coalesce(sum((:run.scheduled::int[])[no]), 0) as scheduled,
      coalesce(sum((:run.dead::int[])[no]), 0) as dead, coalesce(sum((:run.cancelled::int[])[no]), 0) as cancelled
    from settleable group by 1, 2
  ) c
)
--+ limited
-- Slots that are given up. Those of a limit key that only counts slots go to the first of its queue, at once. Slots that are left, and all of
-- other limit keys, are to be looked at under the lock of the limit key (`limit_keys`).
--
-- It takes no lock of the limit key: as many slots are taken as are given up, so that whoever holds the lock counts the same before and
-- after. The limit key may be read as it was a moment ago, which admits no job that could not have been admitted in that moment. The rest is
-- left to the lock (`plain`):
-- * a rate, a serial slot, a pause; and another rule or a pause of a limit check that is not in the limit key yet: a job in the queue may be
--   stored under it;
-- * more slots held than there are: the limit was lowered, and each that is given up is one less;
-- * a limit key that was open when it was last looked at, so that it is not known which jobs of its queue have waited;
-- * a job in the queue that needs other limit keys as well, or goes to the suspects (`barred`).
, leaving as materialized (select array(select unnest(jobs) from settleable) as jobs),
freed as (
  delete from pawl.slot s where s.job = any((select jobs from leaving)::uuid[])
    and (s.kind <> 'serial' or s.job not in (select job from move where next = {{state.scheduled}})) returning s.kind, s.key
),
deleted_limits as (
  delete from pawl.job_limits t where t.job = any((select jobs from leaving)::uuid[])
    and t.job not in (select job from move where next = {{state.scheduled}})
),
freed_slots as materialized (
  select key, count(*)::int as freed, (count(*) filter (where kind = 'key'))::int as count from freed
  where kind in ('key', 'serial', 'rate')  -- guard: freed-slots-are-passed-on
  group by key
),
plain as materialized (
  select p.key, p.count from freed_slots p join pawl.limit_key g on g.key = p.key
  where
    g.closed and  -- guard: limit-key-was-closed
    g.rule->'rate' is null and coalesce(g.paused_until <= coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()), true)
    and (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key) <= (g.rule->>'concurrency')::float8
    and not exists (
      select from pawl.limit_check k where k.key = g.key and (
        k.rule::text <> g.rule::text or  -- guard: limit-check-has-same-rule
        k.paused_until is not null
      )
    )
),
next as materialized (
  select p.key, h.* from plain p cross join lateral (
    select h.id, h.rank, h.seq, h.crashes from pawl.parked h
    where h.limit_key = p.key  -- stop: pass-on-snapshot
    order by h.rank, h.seq
    limit p.count  -- guard: as-many-as-freed
    for update skip locked  -- guard: next-in-queue-locked
  ) h
),
barred as materialized (
  select n.key from next n where n.crashes >= {{suspect_from}} or (select cardinality(t.limit_keys) from pawl.job_limits t where t.job = n.id) <> 1
),
passed_on as (
  delete from pawl.parked p using next n where p.id = n.id and not n.key = any(array(select key from barred))
  returning p.id, p.priority, p.attempts, p.crashes, p.queue, p.tenant, p.task, n.key, n.rank, n.seq
),
sorted as materialized (
  select * from
    passed_on  -- guard: passed-on-were-deleted
  order by rank, seq
),
admitted_rows as (
  insert into pawl.ready (seq, id, priority, attempts, crashes, queue, tenant, task)
  select nextval('pawl.ready_seq') + {{admitted_section_start}}, id,
    priority  -- stop: pass-on-drawn
    , attempts, crashes, queue, tenant, task
  from sorted
),
held as (
  insert into pawl.slot (kind, key, job)
  select 'key', key, id from passed_on  -- guard: slots-of-passed-on
),
let_in as (insert into pawl.counter_delta (queue, task, parked, ready) select queue, task, -count(*), count(*) from passed_on group by queue, task),
limit_keys as materialized (select p.key from freed_slots p where p.freed > (select count(*) from passed_on h where h.key = p.key)),
limit_checks as (
  insert into pawl.limit_check (at, key) select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()), key from limit_keys
)
select (select json_agg(key) from limit_keys)::text as limit_keys,
  (select json_agg(f) from (select distinct queue, priority, tenant, task from passed_on) f)::text as admitted_lanes, null::text as remainder
union all
--- limited
-- What it left alone, if it did. Of jobs under limits, another row says what was freed for others to pass, and which lanes were admitted to.
select null::text as limit_keys, null::text as admitted_lanes, case when (
    select count(*) from settleable
    -- stop: settle-locked
  ) < cardinality(:run.first::int[]) then json_build_object(
    'settled', array(select no from settleable), 'needSteps', (select jobs from needs_steps),
    'changed', array(select id::text from locked_lease where not pg_visible_in_snapshot(changed_by, pg_current_snapshot()))
  )::text end as remainder
