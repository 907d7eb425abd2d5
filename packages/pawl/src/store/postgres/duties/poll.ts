import { ADMIT, type Poll, PROMOTE, REAP, TICK } from "../../port/duties/duties.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import type { Db } from "../connection/db.js";
import { sqlFile } from "../connection/sql-statement.js";

export const EXPIRE = "expire";
export const UNBLOCK = "unblock";
export const CARRY_OUT = "carry out intents";
export const FOLD = "fold counts";

const POLL = sqlFile("duties/poll.sql");

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
  const [found] = await POLL.query<PollRow>(db, {
    now: db.now(),
    scheduledFrom: watermarks.scheduled.value,
    leaseFrom: watermarks.lease.value,
    timerFrom: watermarks.timer.value,
    tickFrom: watermarks.tick.value,
    limitCheckFrom: watermarks.limitCheck.value,
    deltaFrom: watermarks.delta.value,
    drawsTransaction: watermarks.drawsTransactionId(),
  });
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
  const due = new Map<string, number>();
  const dueAt = (duty: string, at: number | null) => {
    if (at !== null) due.set(duty, at - row.now);
  };
  dueAt(PROMOTE, row.scheduled);
  dueAt(REAP, row.lease);
  dueAt(EXPIRE, row.timer);
  dueAt(TICK, row.tick);
  dueAt(ADMIT, row.limit_check);
  if (row.intents) due.set(CARRY_OUT, 0);
  if (row.unverified) due.set(UNBLOCK, 0);
  if (row.delta !== null) due.set(FOLD, 0);
  return { now: row.now, due, upFor: row.up_for, ...(row.epoch === null ? {} : { watched: { epoch: row.epoch, for: row.watched_for } }) };
}
