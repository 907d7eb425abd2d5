import { outcomeCode, stateCode } from "./codes.js";
import { hotStatement, NOW, statement } from "./db.js";
import { HAND_OVER } from "./hand-over.js";
import { UNFIT } from "./unfit.js";

/**
 * The hot exit: one statement that locks the leases in order, checks that each job is in its lease, appends the
 * attempts (the insert is the acknowledgement), lowers `open`, and moves the jobs on. It settles all of a batch or
 * nothing, so that nothing has to be derived from what it really settled. It settles nothing and
 * - says so, where something was asked of a job or jobs wait for one (`guard`). What came after the snapshot it cannot
 *   see: intents are left to `carryOut`; for the rest the lease is marked as `watched`, which `own` does see;
 * - fails, where one of them does not fit (stale, or its partition is going) or was settled before.
 * Both are rare, and `settle-guarded.ts` then does the same in several statements.
 *
 * - `own` returns the lease as it is after the lock; `open` is taken from there, never from the snapshot.
 * - leases are sent once, and referred to by number; times as microseconds since the first of them. That is less to
 *   send and to parse.
 * - what jobs under limits hold is freed, or handed over, by a text of its own (SETTLE_LIMITED): others have nothing of it.
 * - what most settlements have in common is left out (`usual`): unnest pads short arrays with nulls.
 * - the rows of a batch are matched by IN inside CASE, which Postgres must do by hashing: it believes that an array
 *   parameter has ten elements, and would join two such sets of five hundred by a nested loop.
 * - the failure is a cast that cannot succeed: SQL has no other word for it. It depends on a count, or the planner
 *   would try it beforehand.
 */
function settleText(limits: string, told: string): string {
  return `
  with guard as materialized (
    select exists (select from pawl.dependency where parent = any($6::uuid[])) or exists (select from pawl.intent where job = any($6::uuid[])) as raised
  ),
  own as materialized (
    select id, open, watched, settled, jobs from pawl.lease where id = any($3::bigint[]) and worker = $2 order by id for update
  ),
  aside as materialized (select raised or exists (select from own where watched) as raised from guard),
  free as materialized (select own.*, c.done from own join unnest($3::bigint[], $4::int[]) as c(id, done) on c.id = own.id where not (select raised from aside)),
  fresh as (
    insert into pawl.attempt (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
    select ($3::bigint[])[g.lease], to_timestamp($37 + g.started / 1e6), to_timestamp($37 + g.finished / 1e6), g.job, $2,
      coalesce(g.outcome, ${outcomeCode("succeeded")}), coalesce(g.next, ${stateCode("succeeded")}), coalesce(g.spent, 1), coalesce(g.crashes, 0), g.output::json, g.failure::json
    from unnest($5::int[], $6::uuid[], $7::bigint[], $8::bigint[], $9::int2[], $10::int2[], $11::int2[], $12::int2[], $13::text[], $14::text[])
      as g(lease, job, started, finished, outcome, next, spent, crashes, output, failure)
    where g.job >= (select floor from pawl.span)
      and case when (($3::bigint[])[g.lease], g.job) in (
        select o.id, u.job from free o cross join lateral unnest(o.jobs) with ordinality as u(job, place) where o.settled is null or not u.place::int <@ o.settled
      ) then true else false end
    returning 1
  ),
  closed as (delete from pawl.lease l using free o where l.id = o.id and o.open <= o.done),
  lowered as (
    update pawl.lease l set open = o.open - o.done, settled = case when o.settled is not null then o.settled + (
      select range_agg(int4range(u.place::int, u.place::int, '[]')) from unnest(o.jobs) with ordinality as u(job, place)
      where case when u.job in (select unnest($6::uuid[])) then true else false end
    ) end
    from free o where l.id = o.id and o.open > o.done
  ),
  moved as materialized (
    select m.*, ($15::text[])[m.lane] as queue, ($16::int2[])[m.lane] as band, ($17::text[])[m.lane] as tenant, ($18::text[])[m.lane] as task
    from unnest($19::uuid[], $20::int[], $21::int2[], $22::int2[], $23::int2[], $24::float8[], $25::bool[], $26::text[], $27::text[])
      as m(job, lane, next, spent, crashes, delay, suspect, kind, name)
    where not (select raised from aside)
  ),
  r as (insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
    select job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("ready")} and not suspect),
  u as (insert into pawl.suspect (id, band, spent, crashes, queue, tenant, task)
    select job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("ready")} and suspect),
  s as (insert into pawl.scheduled (run_at, id, band, spent, crashes, queue, tenant, task)
    select ${NOW} + delay * interval '1 millisecond', job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("scheduled")}),
  d as (insert into pawl.dead (died_at, id, band, queue, tenant, task, kind, name)
    select ${NOW}, job, band, queue, tenant, task, kind, name from moved where next = ${stateCode("dead")}),
  counted as (
    insert into pawl.delta (queue, task, running, succeeded, ready, scheduled, dead, cancelled)
    select * from unnest($28::text[], $29::text[], $30::int[], $31::int[], $32::int[], $33::int[], $34::int[], $35::int[]) where not (select raised from aside)
  )${limits}
  select ${told} raised, case when raised then true when (select count(*) from fresh) = $36 then true
    else ('${UNFIT}: only ' || (select count(*) from fresh) || ' of ' || $36 || ' fit')::bool end as settled from aside`;
}

export const SETTLE = hotStatement("settle", "settle", settleText("", ""));

/** The same for jobs under limits, with what becomes of the places that they hold. */
export const SETTLE_LIMITED = hotStatement(
  "settle",
  "settle_limited",
  settleText(
    `,
  leaving as materialized (select case when not raised then $6::uuid[] else '{}' end as jobs from aside),
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
);

export const CLASSIFY = statement(
  "classify_settled",
  `select exists (select from pawl.any_attempt a where a.job = g.job and a.lease = g.lease and a.worker = $1 and a.outcome <> ${outcomeCode("crashed")}) as known
   from unnest($2::bigint[], $3::uuid[]) with ordinality as g(lease, job, ord) order by g.ord`,
);
