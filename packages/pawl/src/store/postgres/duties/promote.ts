import type { Lane } from "../../../core/jobs/lane.js";
import { SUSPECT_FROM } from "../../../core/jobs/outcome.js";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { queueAtLimit } from "../limits/wait-at-limit.js";

/**
 * Moves what is due, oldest first; several processes share the work by skipping each other's rows. A job with a pause
 * asked of it is parked. ready.seq is drawn after the delete, which assigns the transaction's id (see SafeSequence).
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
  ${queueAtLimit("taken", "g.id not in (select job from paused)", "order by g.run_at")},
  r as (insert into pawl.ready (id, priority, attempts, crashes, queue, tenant, task)
    select id, priority, attempts, crashes, queue, tenant, task from taken
    where crashes < ${SUSPECT_FROM} and id not in (select job from paused) and id not in (select id from queued_at_limit) order by run_at),
  u as (insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
    select id, priority, attempts, crashes, queue, tenant, task from taken
    where crashes >= ${SUSPECT_FROM} and id not in (select job from paused) and id not in (select id from queued_at_limit) order by run_at),
  p as (insert into pawl.parked (run_at, id, priority, attempts, crashes, reason, queue, tenant, task)
    select null, id, priority, attempts, crashes, 'paused', queue, tenant, task from taken where id in (select job from paused)),
  counted as (insert into pawl.counter_delta (queue, task, scheduled, ready, parked)
    select queue, task, -count(*), count(*) filter (where id not in (select job from paused)), count(*) filter (where id in (select job from paused)) from taken group by queue, task)
  select queue, priority, tenant, task, count(*)::int as jobs, null as limit_key, null::float8 as next from taken group by queue, priority, tenant, task
  union all select null, null, null, null, 0, limit_key, null from keys_to_check
  union all select null, null, null, null, 0, null, (
    select ${ms("s.run_at")} - ${ms("coalesce(to_timestamp($1::float8 / 1000), clock_timestamp())")} from pawl.scheduled s
    where to_timestamp($3::float8 / 1000) <= s.run_at and case when s.id in (select id from due) then false else true end order by s.run_at limit 1
  )`,
);

/** Of a lane and how many of its jobs it moved, or of a limit key to look at, or in how many ms the next is due. */
interface PromoteRow extends Lane {
  readonly jobs: number;
  readonly limit_key: LimitKeyId | null;
  readonly next: number | null;
}

export async function promote(
  db: Db,
  watermarks: LowWatermarks,
  limit: number,
): Promise<{ readonly count: number; readonly nextIn?: number; readonly lanes: readonly Lane[] }> {
  const answer = await db.query<PromoteRow>(PROMOTE, [db.now(), limit, watermarks.scheduled.value]);
  const limitKeys = answer.flatMap((row) => row.limit_key ?? []);
  if (limitKeys.length > 0) await db.onLimitChecks?.(new Set(limitKeys));
  const next = answer.find((row) => row.next !== null)?.next ?? undefined;
  return {
    count: answer.reduce((sum, { jobs }) => sum + jobs, 0),
    lanes: answer.filter(({ jobs }) => jobs > 0).map(({ queue, priority, tenant, task }) => ({ queue, priority, tenant, task })),
    ...(next === undefined ? {} : { nextIn: next }),
  };
}
