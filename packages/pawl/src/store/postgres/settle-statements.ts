import { outcomeCode, stateCode } from "./codes.js";
import { hotStatement, NOW, statement } from "./db.js";
import { HAND_OVER } from "./hand-over.js";
import { named } from "./named.js";

/** What a settlement is sent. Arrays named `lease_…` have an entry for each lease, `run_…` for each run, `moved_…` for each job that goes on. */
const PARAMETERS = [
  "now",
  "worker",
  /** seconds: the times of attempts are microseconds after it */
  "since",
  "started",
  "finished",
  "outputs",
  "odd",
  "failures",
  "lease_ids",
  "lease_from",
  "lease_to",
  "run_first",
  "run_last",
  "run_home",
  "run_last_home",
  "run_at",
  "run_outputs",
  "run_odd_from",
  "run_odd_to",
  "run_lane",
  "run_ready",
  "run_scheduled",
  "run_dead",
  "run_cancelled",
  "queue",
  "band",
  "tenant",
  "task",
  "moved_run",
  "moved_nth",
  "moved_lane",
  "moved_next",
  "moved_spent",
  "moved_crashes",
  "moved_delay",
  "moved_suspect",
  "moved_kind",
  "moved_name",
] as const;

/** Numbers in `odd` for each attempt that was not a first one that succeeded: its place in the row, outcome, next state, spent, crashes. */
export const ODD_NUMBERS = 5;

/**
 * The hot exit: one statement that locks the leases in order, appends the attempts (the insert is the acknowledgement), closes or
 * lowers the leases, and moves jobs on that did not end. A job is addressed by its place in its lease; ids are not sent.
 *
 * Jobs come in runs: places one after the other, of one lane. A run is settled as a whole or left alone as a whole, and everything
 * else is derived from the runs that were settled. Left alone are runs
 * - with a place that is settled already, or that the lease does not have, or whose month is going;
 * - with a job that something was asked of, or that others wait for (`asked`), for these are looked after in several statements
 *   (settle-guarded.ts);
 * - of a lease in which somebody wrote something that this statement's snapshot does not show (`watched`): the same again, with a
 *   new snapshot, shows it.
 *
 * - `own` has each lease as it is after the lock. In its `jobs`, nothing is appended to what is stored: but the result is in memory,
 *   while the column itself is stored apart, and would be fetched anew for every run.
 * - the leases are locked in the order they are sent, which is that of their numbers;
 * - what a run has of the flat arrays is said by where it begins in them (`run_at`, `run_outputs`, `run_odd_from`).
 */
function settleText(limits: string, told: string): string {
  return `
  with own as materialized (
    select c.run_from, c.run_to, l.id, l.open, l.watched, l.settled, l.jobs from unnest(:lease_ids::bigint[], :lease_from::int[], :lease_to::int[]) as c(lease, run_from, run_to)
    cross join lateral (select id, open, watched, settled, jobs || '{}'::uuid[] as jobs from pawl.lease l where l.id = c.lease and l.worker = :worker::int for update) l
  ),
  run as materialized (
    select n as no, o.id as lease, o.open, o.settled, (:run_first::int[])[n] as first, (:run_last::int[])[n] as last, cardinality(o.jobs) as most,
      o.jobs[(:run_first::int[])[n] : (:run_last::int[])[n]] as jobs
    from own o cross join lateral generate_series(o.run_from, o.run_to) as n
    where o.watched is null or pg_visible_in_snapshot(o.watched, pg_current_snapshot())
  ),
  asked as materialized (
    select case when exists (select from pawl.dependency) then array(select distinct parent from pawl.dependency where parent = any(array(select unnest(jobs) from run))) else '{}' end
      || case when exists (select from pawl.intent) then array(select job from pawl.intent where job = any(array(select unnest(jobs) from run))) else '{}' end as jobs
  ),
  good as materialized (
    select r.*, r.last - r.first + 1 as count from run r
    where r.last <= r.most and r.jobs[1] >= (select floor from pawl.span)
      and not r.settled && int4multirange(int4range(r.first, r.last, '[]')) and not r.jobs && (select jobs from asked)
  ),
  appended as (
    insert into pawl.history (home, last, lease, since, ended, first, worker, jobs, started, finished, odd, failures, outputs)
    select (:run_home::bigint[])[g.no], (:run_last_home::bigint[])[g.no], g.lease,
      to_timestamp(:since::float8 + case when g.count = 1 then (:started::bigint[])[p.at] / 1e6 else 0 end),
      case when g.count = 1 then to_timestamp(:since::float8 + (:finished::bigint[])[p.at] / 1e6) end,
      g.jobs[1], :worker::int, case when g.count > 1 then g.jobs end,
      case when g.count > 1 then (:started::bigint[])[p.at : p.at + g.count - 1]::int[] end,
      case when g.count > 1 then (:finished::bigint[])[p.at : p.at + g.count - 1]::int[] end,
      case when p.odd_from is not null then (:odd::int[])[p.odd_from * ${ODD_NUMBERS} - ${ODD_NUMBERS - 1} : p.odd_to * ${ODD_NUMBERS}] end,
      case when p.odd_from is not null then (:failures::text[])[p.odd_from : p.odd_to]::json[] end,
      case when p.outputs is not null then (:outputs::text[])[p.outputs : p.outputs + g.count - 1]::json[] end
    from good g cross join lateral (
      select (:run_at::int[])[g.no] as at, (:run_odd_from::int[])[g.no] as odd_from, (:run_odd_to::int[])[g.no] as odd_to, (:run_outputs::int[])[g.no] as outputs
    ) p
  ),
  done as materialized (
    select lease, open, settled, sum(count)::int as count, range_agg(int4range(first, last, '[]')) as places from good group by lease, open, settled
  ),
  closed as (delete from pawl.lease l using done d where l.id = d.lease and d.open <= d.count),
  lowered as (update pawl.lease l set open = d.open - d.count, settled = d.settled + d.places from done d where l.id = d.lease and d.open > d.count),
  moved as materialized (
    select g.jobs[m.nth] as job, m.next, m.spent, m.crashes, m.delay, m.suspect, m.kind, m.name,
      (:queue::text[])[m.lane] as queue, (:band::int2[])[m.lane] as band, (:tenant::text[])[m.lane] as tenant, (:task::text[])[m.lane] as task
    from unnest(:moved_run::int[], :moved_nth::int[], :moved_lane::int[], :moved_next::int2[], :moved_spent::int2[], :moved_crashes::int2[], :moved_delay::float8[],
      :moved_suspect::bool[], :moved_kind::text[], :moved_name::text[]) with ordinality as m(run, nth, lane, next, spent, crashes, delay, suspect, kind, name, turn)
    join good g on g.no = m.run order by m.turn
  ),
  readied as (insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
    select job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("ready")} and not suspect),
  suspected as (insert into pawl.suspect (id, band, spent, crashes, queue, tenant, task)
    select job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("ready")} and suspect),
  scheduled as (insert into pawl.scheduled (run_at, id, band, spent, crashes, queue, tenant, task)
    select ${NOW} + delay * interval '1 millisecond', job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("scheduled")}),
  died as (insert into pawl.dead (died_at, id, band, queue, tenant, task, kind, name)
    select ${NOW}, job, band, queue, tenant, task, kind, name from moved where next = ${stateCode("dead")}),
  counted as (
    insert into pawl.delta (queue, task, running, ready, scheduled, dead, cancelled, succeeded)
    select queue, task, -all_of_them, ready, scheduled, dead, cancelled, all_of_them - ready - scheduled - dead - cancelled from (
      select (:queue::text[])[(:run_lane::int[])[no]] as queue, (:task::text[])[(:run_lane::int[])[no]] as task, sum(count) as all_of_them,
        coalesce(sum((:run_ready::int[])[no]), 0) as ready, coalesce(sum((:run_scheduled::int[])[no]), 0) as scheduled,
        coalesce(sum((:run_dead::int[])[no]), 0) as dead, coalesce(sum((:run_cancelled::int[])[no]), 0) as cancelled
      from good group by 1, 2
    ) c
  )${limits}
  select ${told} case when (select count(*) from good) < cardinality(:run_first::int[]) then json_build_object(
    'settled', array(select no from good), 'asked', (select jobs from asked),
    'changed', array(select id::text from own where not pg_visible_in_snapshot(watched, pg_current_snapshot()))
  )::text end as rest`;
}

export type SettleParameter = (typeof PARAMETERS)[number];

export const SETTLE = named(PARAMETERS, settleText("", ""), (text) => hotStatement("settle", "settle", text));

/** The same for jobs under limits, with what becomes of the places that they hold. */
export const SETTLE_LIMITED = named(
  PARAMETERS,
  settleText(
    `,
  leaving as materialized (select array(select unnest(jobs) from good) as jobs),
  freed as (
    delete from pawl.slot s where s.job = any((select jobs from leaving)::uuid[])
      and (s.kind <> 'serial' or s.job not in (select job from moved where next = ${stateCode("scheduled")})) returning s.kind, s.key
  ),
  torn as (delete from pawl.ticket t where t.job = any((select jobs from leaving)::uuid[]) and t.job not in (select job from moved where next = ${stateCode("scheduled")})),
  ${HAND_OVER},
  knocked as (insert into pawl.knock (at, key) select ${NOW}, key from gates)`,
    `(select json_agg(key) from gates)::text as gates,
    (select json_agg(f) from (select distinct queue, band, tenant, task from handed) f)::text as fronts,`,
  ),
  (text) => hotStatement("settle", "settle_limited", text),
);

/** Of settlements whose leases are gone: which are on record. What the reaper recorded in their place makes them stale. */
export const CLASSIFY = statement(
  "classify_settled",
  `select exists (select from pawl.any_attempt a where a.job = g.job and a.lease = g.lease and a.worker = $1 and a.outcome <> ${outcomeCode("crashed")}) as known
   from unnest($2::bigint[], $3::uuid[]) with ordinality as g(lease, job, ord) order by g.ord`,
);
