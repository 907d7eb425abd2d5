import type { Lane } from "../../core/lane.js";
import type { GateKey } from "../../core/limit.js";
import { SUSPECT_FROM } from "../../core/outcome.js";
import { type Db, ms, NOW, statement } from "./db.js";
import { linedUp } from "./line-up.js";
import type { LowWaters } from "./low-water.js";

/**
 * Moves what is due, oldest first; several processes share the work by skipping each other's rows. A job with a pause
 * asked of it is parked. ready.seq is drawn after the delete, which assigns the transaction's id (see SafePoint).
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
  select queue, band, tenant, task, count(*)::int as jobs, null as gate from taken group by queue, band, tenant, task
  union all select null, null, null, null, 0, gate from knocked_at`,
);

const NEXT_DUE = statement(
  "next_due",
  `select ${ms("run_at")} - ${ms(NOW)} as next from pawl.scheduled where run_at >= to_timestamp($2::float8 / 1000) order by run_at limit 1`,
);

export async function promote(
  db: Db,
  low: LowWaters,
  limit: number,
): Promise<{ readonly count: number; readonly nextIn?: number; readonly lanes: readonly Lane[] }> {
  const answer = await db.query<Lane & { jobs: number; gate: GateKey | null }>(PROMOTE, [db.now(), limit, low.scheduled.value]);
  const gates = answer.flatMap(({ gate }) => gate ?? []);
  if (gates.length > 0) await db.onKnock?.(new Set(gates));
  const rows = answer.filter(({ gate }) => gate === null);
  const promoted = rows.reduce((sum, row) => sum + row.jobs, 0);
  const [next] = await db.query<{ next: number }>(NEXT_DUE, [db.now(), low.scheduled.value]);
  return {
    count: promoted,
    lanes: rows.map((row) => ({ queue: row.queue, band: row.band, tenant: row.tenant, task: row.task })),
    ...(next === undefined ? {} : { nextIn: next.next }),
  };
}
