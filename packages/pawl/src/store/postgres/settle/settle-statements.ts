import { outcomeCode, stateCode } from "../connection/codes.js";
import { hotStatement, NOW, statement } from "../connection/db.js";
import { withNames } from "../connection/named-statement.js";
import { PASS_SLOTS_ON } from "../limits/pass-slot-on.js";

/** What a settlement is sent. Arrays named `lease_…` have an entry for each lease, `run_…` for each run, `move_…` for each job that goes on. */
const PARAMETERS = [
  "now",
  "worker",
  /** seconds: the times of attempts are microseconds after it */
  "since",
  "started",
  "finished",
  "outputs",
  "outcomes",
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
  "run_outcomes_from",
  "run_outcomes_to",
  "run_lane",
  "run_ready",
  "run_scheduled",
  "run_dead",
  "run_cancelled",
  "queue",
  "priority",
  "tenant",
  "task",
  "move_run",
  "move_nth",
  "move_lane",
  "move_next",
  "move_attempts",
  "move_crashes",
  "move_delay",
  "move_suspect",
  "move_kind",
  "move_name",
] as const;

/** Numbers in `outcomes` for each attempt that was not a first one that succeeded: its index in the row, outcome, next state, attempts, crashes. */
export const NUMBERS_PER_OUTCOME = 5;

/**
 * The hot exit: one statement that locks the leases in order, appends the attempts (the insert is the acknowledgement), closes or
 * lowers the leases, and moves jobs on that did not end. A job is addressed by its index in its lease; ids are not sent.
 *
 * Jobs come in runs: indexes one after the other, of one lane. A run is settled as a whole or left alone as a whole, and everything
 * else is derived from the runs that were settled. Left alone are runs
 * - with an index that is settled already, or that the lease does not have, or whose month is going;
 * - with a job that something was asked of, or that others wait for (`needs_steps`), for these are looked after in several statements
 *   (settle-in-steps.ts);
 * - of a lease in which somebody wrote something that this statement's snapshot does not show (`changed_by`): the same again, with a
 *   new snapshot, shows it.
 *
 * - `locked_lease` has each lease as it is after the lock. In its `jobs`, nothing is appended to what is stored: but the result is in memory,
 *   while the column itself is stored apart, and would be fetched anew for every run.
 * - the leases are locked in the order they are sent, which is that of their numbers;
 * - what a run has of the flat arrays is said by where it begins in them (`run_at`, `run_outputs`, `run_outcomes_from`).
 */
function settleText(limits: string, extra: string): string {
  return `
  with locked_lease as materialized (
    select c.run_from, c.run_to, l.id, l.unsettled, l.changed_by, l.settled, l.jobs from unnest(:lease_ids::bigint[], :lease_from::int[], :lease_to::int[]) as c(lease, run_from, run_to)
    cross join lateral (select id, unsettled, changed_by, settled, jobs || '{}'::uuid[] as jobs from pawl.lease l where l.id = c.lease and l.worker = :worker::int for update) l
  ),
  run as materialized (
    select n as no, o.id as lease, o.unsettled, o.settled, (:run_first::int[])[n] as first, (:run_last::int[])[n] as last, cardinality(o.jobs) as most,
      o.jobs[(:run_first::int[])[n] : (:run_last::int[])[n]] as jobs
    from locked_lease o cross join lateral generate_series(o.run_from, o.run_to) as n
    where o.changed_by is null or pg_visible_in_snapshot(o.changed_by, pg_current_snapshot())
  ),
  needs_steps as materialized (
    select case when exists (select from pawl.dependency) then array(select distinct parent from pawl.dependency where parent = any(array(select unnest(jobs) from run))) else '{}' end
      || case when exists (select from pawl.intent) then array(select job from pawl.intent where job = any(array(select unnest(jobs) from run))) else '{}' end as jobs
  ),
  settleable as materialized (
    select r.*, r.last - r.first + 1 as count from run r
    where r.last <= r.most and r.jobs[1] >= (select floor from pawl.partition_range)
      and not r.settled && int4multirange(int4range(r.first, r.last, '[]')) and not r.jobs && (select jobs from needs_steps)
  ),
  appended as (
    insert into pawl.history (home, last, lease, since, ended, first, worker, jobs, started, finished, outcomes, failures, outputs)
    select (:run_home::bigint[])[g.no], (:run_last_home::bigint[])[g.no], g.lease,
      to_timestamp(:since::float8 + case when g.count = 1 then (:started::bigint[])[p.at] / 1e6 else 0 end),
      case when g.count = 1 then to_timestamp(:since::float8 + (:finished::bigint[])[p.at] / 1e6) end,
      g.jobs[1], :worker::int, case when g.count > 1 then g.jobs end,
      case when g.count > 1 then (:started::bigint[])[p.at : p.at + g.count - 1]::int[] end,
      case when g.count > 1 then (:finished::bigint[])[p.at : p.at + g.count - 1]::int[] end,
      case when p.outcomes_from is not null then (:outcomes::int[])[p.outcomes_from * ${NUMBERS_PER_OUTCOME} - ${NUMBERS_PER_OUTCOME - 1} : p.outcomes_to * ${NUMBERS_PER_OUTCOME}] end,
      case when p.outcomes_from is not null then (:failures::text[])[p.outcomes_from : p.outcomes_to]::json[] end,
      case when p.outputs is not null then (:outputs::text[])[p.outputs : p.outputs + g.count - 1]::json[] end
    from settleable g cross join lateral (
      select (:run_at::int[])[g.no] as at, (:run_outcomes_from::int[])[g.no] as outcomes_from, (:run_outcomes_to::int[])[g.no] as outcomes_to, (:run_outputs::int[])[g.no] as outputs
    ) p
  ),
  done as materialized (
    select lease, unsettled, settled, sum(count)::int as count, range_agg(int4range(first, last, '[]')) as indexes from settleable group by lease, unsettled, settled
  ),
  ended_lease as (delete from pawl.lease l using done d where l.id = d.lease and d.unsettled <= d.count),
  reduced_lease as (update pawl.lease l set unsettled = d.unsettled - d.count, settled = d.settled + d.indexes from done d where l.id = d.lease and d.unsettled > d.count),
  move as materialized (
    select g.jobs[m.nth] as job, m.next, m.attempts, m.crashes, m.delay, m.suspect, m.kind, m.name,
      (:queue::text[])[m.lane] as queue, (:priority::int2[])[m.lane] as priority, (:tenant::text[])[m.lane] as tenant, (:task::text[])[m.lane] as task
    from unnest(:move_run::int[], :move_nth::int[], :move_lane::int[], :move_next::int2[], :move_attempts::int2[], :move_crashes::int2[], :move_delay::float8[],
      :move_suspect::bool[], :move_kind::text[], :move_name::text[]) with ordinality as m(run, nth, lane, next, attempts, crashes, delay, suspect, kind, name, turn)
    join settleable g on g.no = m.run order by m.turn
  ),
  readied as (insert into pawl.ready (id, priority, attempts, crashes, queue, tenant, task)
    select job, priority, attempts, crashes, queue, tenant, task from move where next = ${stateCode("ready")} and not suspect),
  suspected as (insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
    select job, priority, attempts, crashes, queue, tenant, task from move where next = ${stateCode("ready")} and suspect),
  scheduled as (insert into pawl.scheduled (run_at, id, priority, attempts, crashes, queue, tenant, task)
    select ${NOW} + delay * interval '1 millisecond', job, priority, attempts, crashes, queue, tenant, task from move where next = ${stateCode("scheduled")}),
  died as (insert into pawl.dead (died_at, id, priority, queue, tenant, task, kind, name)
    select ${NOW}, job, priority, queue, tenant, task, kind, name from move where next = ${stateCode("dead")}),
  counters as (
    insert into pawl.counter_delta (queue, task, running, ready, scheduled, dead, cancelled, succeeded)
    select queue, task, -all_of_them, ready, scheduled, dead, cancelled, all_of_them - ready - scheduled - dead - cancelled from (
      select (:queue::text[])[(:run_lane::int[])[no]] as queue, (:task::text[])[(:run_lane::int[])[no]] as task, sum(count) as all_of_them,
        coalesce(sum((:run_ready::int[])[no]), 0) as ready, coalesce(sum((:run_scheduled::int[])[no]), 0) as scheduled,
        coalesce(sum((:run_dead::int[])[no]), 0) as dead, coalesce(sum((:run_cancelled::int[])[no]), 0) as cancelled
      from settleable group by 1, 2
    ) c
  )${limits}
  select ${extra} case when (select count(*) from settleable) < cardinality(:run_first::int[]) then json_build_object(
    'settled', array(select no from settleable), 'needSteps', (select jobs from needs_steps),
    'changed', array(select id::text from locked_lease where not pg_visible_in_snapshot(changed_by, pg_current_snapshot()))
  )::text end as remainder`;
}

export type SettleParameter = (typeof PARAMETERS)[number];

export const SETTLE = withNames(PARAMETERS, settleText("", ""), (text) => hotStatement("settle", "settle", text));

/** The same for jobs under limits, with what becomes of the slots that they hold. */
export const SETTLE_LIMITED = withNames(
  PARAMETERS,
  settleText(
    `,
  leaving as materialized (select array(select unnest(jobs) from settleable) as jobs),
  freed as (
    delete from pawl.slot s where s.job = any((select jobs from leaving)::uuid[])
      and (s.kind <> 'serial' or s.job not in (select job from move where next = ${stateCode("scheduled")})) returning s.kind, s.key
  ),
  deleted_limits as (delete from pawl.job_limits t where t.job = any((select jobs from leaving)::uuid[]) and t.job not in (select job from move where next = ${stateCode("scheduled")})),
  ${PASS_SLOTS_ON},
  limit_checks as (insert into pawl.limit_check (at, key) select ${NOW}, key from limit_keys)`,
    `(select json_agg(key) from limit_keys)::text as limit_keys,
    (select json_agg(f) from (select distinct queue, priority, tenant, task from passed_on) f)::text as admitted_lanes,`,
  ),
  (text) => hotStatement("settle", "settle_limited", text),
);

/** Of settlements whose leases are gone: which are on record. What the reaper recorded in their index makes them stale. */
export const CLASSIFY = statement(
  "classify_settled",
  `select exists (select from pawl.any_attempt a where a.job = g.job and a.lease = g.lease and a.worker = $1 and a.outcome <> ${outcomeCode("crashed")}) as known
   from unnest($2::bigint[], $3::uuid[]) with ordinality as g(lease, job, ord) order by g.ord`,
);
