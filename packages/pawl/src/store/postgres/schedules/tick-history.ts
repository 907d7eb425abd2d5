import type { JobId } from "../../../core/jobs/id.js";
import type { FiredTick, ScheduleRef, SkipReason, TickGap, TickWay } from "../../../core/schedules/schedule.js";
import type { TickEntry } from "../../port/schedules/schedules.js";
import { plainArray } from "../connection/arrays.js";
import { stateCode } from "../connection/codes.js";
import { ms, NOW, type StoreDb, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import { deleteJob } from "../jobs/control.js";
import { firedAmong } from "./record-ticks.js";
import { findSchedule } from "./schedule-table.js";

const BEFORE = "%s < to_timestamp(coalesce($3::float8, 'infinity') / 1000)";
const FIRED = statement(
  "list_ticks",
  `select ${ms("at")} as at, ${ms("fired_at")} as fired_at, way, merged, job from pawl.tick
   where schedule = $1::bigint and ${BEFORE.replace("%s", "at")} order by at desc limit $2`,
);
const GAPS = statement(
  "list_gaps",
  `select ${ms("from_at")} as from_at, ${ms("to_at")} as to_at, ${ms("seen_at")} as seen_at, count, skipped, ${ms("merged_into")} as merged_into from pawl.tick_gap
   where schedule = $1::bigint and ${BEFORE.replace("%s", "to_at")} order by to_at desc limit $2`,
);

interface FiredRow {
  readonly at: number;
  readonly fired_at: number;
  readonly way: TickWay;
  readonly merged: number;
  readonly job: JobId;
}
interface GapRow {
  readonly from_at: number;
  readonly to_at: number;
  readonly seen_at: number;
  readonly count: number;
  readonly skipped: SkipReason | null;
  readonly merged_into: number | null;
}

export async function listTicks(
  db: StoreDb,
  ref: ScheduleRef,
  page: { readonly limit: number; readonly before?: number },
): Promise<readonly TickEntry[]> {
  const { ticks, skipped } = await readFor(db, ref, async (on) => {
    const found = await findSchedule(on, ref);
    if (found === undefined) return { ticks: [], skipped: [] };
    const values = [found.id, page.limit, page.before ?? null];
    return { ticks: await on.query<FiredRow>(FIRED, values), skipped: await on.query<GapRow>(GAPS, values) };
  });
  const fired = ticks.map(({ at, fired_at, way, merged, job }): FiredTick => ({ at, way, firedAt: fired_at, job, merged }));
  const gaps = skipped.map(
    ({ from_at, to_at, seen_at, count, skipped, merged_into }): TickGap => ({
      from: from_at,
      to: to_at,
      count,
      seenAt: seen_at,
      ...(skipped === null ? {} : { skipped }),
      ...(merged_into === null ? {} : { mergedInto: merged_into }),
    }),
  );
  const time = (entry: TickEntry) => ("at" in entry ? entry.at : entry.to);
  return [...fired, ...gaps].sort((a, b) => time(b) - time(a)).slice(0, page.limit);
}

export async function firedTicks(db: StoreDb, ref: ScheduleRef, ticks: readonly number[]): Promise<readonly number[]> {
  const found = await findSchedule(db, ref);
  if (found === undefined) return [];
  const there = new Set(await firedAmong(db, found.id, ticks));
  return ticks.filter((at) => there.has(at));
}

/** Finished jobs of schedules that keep only some, beyond those; and ticks whose job is gone already. */
const EXCESS = statement(
  "excess_jobs",
  `
  with ended as (
    select t.schedule, t.at, t.job, s.definition->'keep' as keep, case when d.id is not null then 'dead' when a.next = ${stateCode("cancelled")} then 'cancelled' else 'succeeded' end as state, j.id is null as gone
    from pawl.schedule s join pawl.tick t on t.schedule = s.id and not t.dropped
    left join lateral (select j.id from pawl.any_job j where j.id = t.job limit 1) j on true
    left join pawl.dead d on d.id = t.job
    left join lateral (select a.next from pawl.any_attempt a where a.job = t.job order by a.lease desc limit 1) a on true
    where s.keeps and (j.id is null or d.id is not null or a.next in (${stateCode("succeeded")}, ${stateCode("cancelled")}))
  ),
  ranked as (select *, row_number() over (partition by schedule, gone, state order by at desc) as nth from ended)
  select schedule::text, job, ${ms("at")} as at, gone from ranked
  where gone or nth > coalesce((keep->>(case state when 'dead' then 'dead' else 'succeeded' end))::int, 2147483647) limit $1`,
);
const DROPPED = statement(
  "dropped_jobs",
  "update pawl.tick t set dropped = true from unnest($1::bigint[], $2::float8[]) as g(schedule, at) where t.schedule = g.schedule and t.at = to_timestamp(g.at / 1000)",
);
const FORGET = [
  ["tick", "fired_at"],
  ["tick_gap", "seen_at"],
].map(([table, column]) =>
  statement(
    `forget_${table}`,
    `delete from pawl.${table} where ctid = any(array(select ctid from pawl.${table} where ${column} <= ${NOW} - $2::float8 * interval '1 millisecond' limit $3))`,
  ),
);

/** Answers how many jobs were dropped. */
export async function trimSchedules(db: StoreDb, limit: number, age: number): Promise<number> {
  const rows = await db.query<{ schedule: string; job: JobId; at: number; gone: boolean }>(EXCESS, [limit]);
  let dropped = 0;
  for (const { job, gone } of rows) {
    if (!gone && (await deleteJob(db, "everyone", job)).change.kind === "changed") dropped += 1;
  }
  if (rows.length > 0) await db.query(DROPPED, [plainArray(rows.map(({ schedule }) => schedule)), plainArray(rows.map(({ at }) => at))]);
  for (const one of FORGET) await db.query(one, [db.now(), age, limit]);
  return dropped;
}
