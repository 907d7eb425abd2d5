import type { Lane } from "../../core/lane.js";
import type { GateKey } from "../../core/limit.js";
import { SUSPECT_FROM } from "../../core/outcome.js";
import { type Db, ms, NOW, statement } from "./db.js";
import { linedUp } from "./line-up.js";
import type { LowWaters } from "./low-water.js";

/**
 * Moves what is due, oldest first; several processes share the work by skipping each other's rows. A job with a pause
 * asked of it is parked. ready.seq is drawn after the delete, which assigns the transaction's id (see SafePoint).
 * When the next one is due is asked for along with it, and counted from when that is known.
 */
const PROMOTE = statement(
  "promote",
  `
  with due as materialized (
    select id from pawl.scheduled where run_at >= to_timestamp($3::float8 / 1000) and run_at <= ${NOW} order by run_at limit $2 for update skip locked
  ),
  taken as materialized (delete from pawl.scheduled s using due where s.id = due.id returning s.*),
  paused as materialized (select i.job from pawl.intent i join taken t on t.id = i.job where i.kind = 'pause'),
  forgotten as (delete from pawl.intent i using paused where i.job = paused.job),
  ${linedUp("taken", "g.id not in (select job from paused)", "order by g.run_at")},
  r as (insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
    select id, band, spent, crashes, queue, tenant, task from taken
    where crashes < ${SUSPECT_FROM} and id not in (select job from paused) and id not in (select id from lined) order by run_at),
  u as (insert into pawl.suspect (id, band, spent, crashes, queue, tenant, task)
    select id, band, spent, crashes, queue, tenant, task from taken
    where crashes >= ${SUSPECT_FROM} and id not in (select job from paused) and id not in (select id from lined) order by run_at),
  p as (insert into pawl.parked (run_at, id, band, spent, crashes, reason, queue, tenant, task)
    select null, id, band, spent, crashes, 'paused', queue, tenant, task from taken where id in (select job from paused)),
  counted as (insert into pawl.delta (queue, task, scheduled, ready, parked)
    select queue, task, -count(*), count(*) filter (where id not in (select job from paused)), count(*) filter (where id in (select job from paused)) from taken group by queue, task)
  select queue, band, tenant, task, count(*)::int as jobs, null as gate, null::float8 as next from taken group by queue, band, tenant, task
  union all select null, null, null, null, 0, gate, null from knocked_at
  union all select null, null, null, null, 0, null, (
    select ${ms("s.run_at")} - ${ms("coalesce(to_timestamp($1::float8 / 1000), clock_timestamp())")} from pawl.scheduled s
    where to_timestamp($3::float8 / 1000) <= s.run_at and case when s.id in (select id from due) then false else true end order by s.run_at limit 1
  )`,
);

/** Of a lane and how many of its jobs it moved, or of a gate to look at, or in how many ms the next is due. */
interface Answer extends Lane {
  readonly jobs: number;
  readonly gate: GateKey | null;
  readonly next: number | null;
}

export async function promote(
  db: Db,
  low: LowWaters,
  limit: number,
): Promise<{ readonly count: number; readonly nextIn?: number; readonly lanes: readonly Lane[] }> {
  const answer = await db.query<Answer>(PROMOTE, [db.now(), limit, low.scheduled.value]);
  const gates = answer.flatMap(({ gate }) => gate ?? []);
  if (gates.length > 0) await db.onKnock?.(new Set(gates));
  const next = answer.find((row) => row.next !== null)?.next ?? undefined;
  return {
    count: answer.reduce((sum, { jobs }) => sum + jobs, 0),
    lanes: answer.filter(({ jobs }) => jobs > 0).map(({ queue, band, tenant, task }) => ({ queue, band, tenant, task })),
    ...(next === undefined ? {} : { nextIn: next }),
  };
}
