import type { Poll } from "../../port/duties/duties.js";
import { LAST_SEQ } from "../claim/live-lanes.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { type Db, ms, NOW, SERVER, statement } from "../connection/db.js";

const POLL = statement(
  "poll",
  `
  select ${ms(NOW)} as now,
    (select ${ms("run_at")} from pawl.scheduled where run_at >= to_timestamp($2::float8 / 1000) order by run_at limit 1) as scheduled,
    (select ${ms("until")} from pawl.lease where until >= to_timestamp($3::float8 / 1000) order by until limit 1) as lease,
    (select ${ms("at")} from pawl.timer where at >= to_timestamp($4::float8 / 1000) order by at limit 1) as timer,
    (select ${ms("due_at")} from pawl.schedule where due_at >= to_timestamp($6::float8 / 1000) order by due_at limit 1) as tick,
    (select ${ms("at")} from pawl.limit_check where at >= to_timestamp($7::float8 / 1000) order by at limit 1) as limit_check,
    (select id::float8 from pawl.counter_delta where id >= $5::float8::bigint order by id limit 1) as delta,
    (select last_value::float8 from pawl.counter_delta_id_seq) as last_delta,
    ${LAST_SEQ}::float8 as last_ready,
    ${ms("statement_timestamp()")} - ${ms("pg_postmaster_start_time()")} as up_for,
    exists (select from pawl.intent) as intents,
    exists (select from pawl.dependency where not verified) as unverified,
    w.epoch, ${ms("w.until")} - ${ms(NOW)} as watched_for,
    ${SERVER} as server, pg_snapshot_xmin(s)::text as xmin, case when $8::bool then pg_current_xact_id()::text end as xact
  from pg_current_snapshot() s left join pawl.event_watch w on w.until > ${NOW}`,
);

interface PollRow {
  readonly now: number;
  readonly scheduled: number | null;
  readonly lease: number | null;
  readonly timer: number | null;
  readonly tick: number | null;
  readonly limit_check: number | null;
  readonly intents: boolean;
  readonly unverified: boolean;
  readonly delta: number | null;
  readonly last_delta: number;
  readonly last_ready: number;
  readonly up_for: number;
  readonly epoch: string | null;
  readonly watched_for: number;
  readonly server: string;
  readonly xmin: string;
  readonly xact: string | null;
}

/** What a poll tells the store itself. */
export interface MaintenancePollListener {
  /** which server answered */
  server(server: string): void;
  /** the last number that a job drew which became ready */
  ready(last: number): void;
}

export async function poll(db: Db, watermarks: LowWatermarks, listener: MaintenancePollListener): Promise<Poll> {
  const drawsTransactionId = watermarks.drawsTransactionId();
  const [found] = await db.query<PollRow>(POLL, [
    db.now(),
    watermarks.scheduled.value,
    watermarks.lease.value,
    watermarks.timer.value,
    watermarks.delta.value,
    watermarks.tick.value,
    watermarks.limitCheck.value,
    drawsTransactionId,
  ]);
  const row = found as PollRow;
  listener.server(row.server);
  const horizon = { xmin: Number(row.xmin), xact: row.xact === null ? undefined : Number(row.xact) };
  watermarks.scheduled.saw(row.now, row.scheduled ?? undefined, horizon);
  watermarks.lease.saw(row.now, row.lease ?? undefined, horizon);
  watermarks.timer.saw(row.now, row.timer ?? undefined, horizon);
  watermarks.tick.saw(row.now, row.tick ?? undefined, horizon);
  watermarks.limitCheck.saw(row.now, row.limit_check ?? undefined, horizon);
  watermarks.delta.saw(row.last_delta, row.delta ?? undefined, horizon);
  listener.ready(row.last_ready);
  return {
    now: row.now,
    intents: row.intents,
    unverified: row.unverified,
    deltas: row.delta !== null,
    upFor: row.up_for,
    ...(row.epoch === null ? {} : { watched: { epoch: row.epoch, for: row.watched_for } }),
    ...(row.scheduled === null ? {} : { scheduledIn: row.scheduled - row.now }),
    ...(row.lease === null ? {} : { leaseIn: row.lease - row.now }),
    ...(row.timer === null ? {} : { timerIn: row.timer - row.now }),
    ...(row.tick === null ? {} : { tickIn: row.tick - row.now }),
    ...(row.limit_check === null ? {} : { admitIn: row.limit_check - row.now }),
  };
}
