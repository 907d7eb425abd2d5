import type { Failure } from "../../../core/jobs/failure.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { JobState } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { isSuspect } from "../../../core/jobs/outcome.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { outcomeCode, stateCode } from "../connection/codes.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { LaneNumbers, laneCte } from "../connection/lane-numbers.js";
import type { Queryable } from "../drivers/driver.js";
import { splitRows } from "../enqueue/ready-rows.js";
import { noteLimitChecks } from "../limits/limit-checks.js";
import { queueAtLimit } from "../limits/wait-at-limit.js";
import { APPEND_SINGLES } from "../settle/history.js";

/**
 * The primitives of every change that is not on the hot path: take jobs out of the table they wait in, put them into
 * another, record in their history what a person or a duty did, and count it. Each is one statement over a batch.
 */
export interface WaitingJob {
  readonly id: JobId;
  readonly lane: Lane;
  readonly state: "blocked" | "scheduled" | "ready" | "parked";
  readonly attempts: number;
  readonly crashes: number;
  readonly runAt?: number;
}

type LaneColumns = { queue: string; priority: Lane["priority"]; tenant: string; task: string };
export function laneOf(row: LaneColumns): Lane {
  return { queue: row.queue, priority: row.priority, tenant: row.tenant, task: row.task };
}

const COLUMNS = "id, queue, priority, tenant, task";
/** $2: only from there. A state, or null: wherever they are. */
const from = (state: WaitingJob["state"]) => `id = any($1::uuid[]) and coalesce($2::text, '${state}') = '${state}'`;
/**
 * Ready rows of one job are looked for one by one: those of several have no ids, and by its estimates Postgres would rather read all of them.
 * A row is never updated, so it stays where it is.
 */
export const FROM_READY = `ctid = any(array(
      select r.ctid from unnest($1::uuid[]) as g(id) cross join lateral (select r.ctid from pawl.ready r where r.id = g.id limit 1) r
    )) and ${from("ready")}`;
const TAKE_WAITING = statement(
  "take",
  `
  with r as (delete from pawl.ready where ${FROM_READY} returning ${COLUMNS}, attempts, crashes),
  u as (delete from pawl.suspect where ${from("ready")} returning ${COLUMNS}, attempts, crashes),
  s as (delete from pawl.scheduled where ${from("scheduled")} returning ${COLUMNS}, attempts, crashes, run_at),
  p as (delete from pawl.parked where ${from("parked")} returning ${COLUMNS}, attempts, crashes, run_at),
  b as (delete from pawl.blocked where ${from("blocked")} returning ${COLUMNS}, run_at)
  select 'ready' as state, ${COLUMNS}, attempts, crashes, null::float8 as run_at from r
  union all select 'ready', ${COLUMNS}, attempts, crashes, null from u
  union all select 'scheduled', ${COLUMNS}, attempts, crashes, ${ms("run_at")} from s
  union all select 'parked', ${COLUMNS}, attempts, crashes, ${ms("run_at")} from p
  union all select 'blocked', ${COLUMNS}, 0, 0, ${ms("run_at")} from b`,
);

type TakenRow = LaneColumns & { state: WaitingJob["state"]; id: JobId; attempts: number; crashes: number; run_at: number | null };

/**
 * Takes the jobs out of wherever they wait, or out of where those of one state do. What is not answered does not wait there:
 * it has moved on, is running, finished or unknown.
 */
export async function takeWaiting(on: Queryable, ids: readonly JobId[], state?: WaitingJob["state"]): Promise<readonly WaitingJob[]> {
  if (ids.length === 0) return [];
  await splitRows(on, ids);
  const rows = await on.query<TakenRow>(TAKE_WAITING, [plainArray(ids), state ?? null]);
  return rows.map((row) => ({
    id: row.id,
    lane: laneOf(row),
    state: row.state,
    attempts: row.attempts,
    crashes: row.crashes,
    ...(row.run_at === null ? {} : { runAt: row.run_at }),
  }));
}

/** A job on its way into a waiting table. `runAt` in ms: for scheduled and blocked, and remembered by parked. */
export interface JobMove {
  readonly id: JobId;
  readonly lane: Lane;
  readonly to: WaitingJob["state"] | "dead";
  readonly attempts: number;
  readonly crashes: number;
  readonly runAt?: number;
  readonly failure?: Failure;
}

const PUT_WAITING = statement(
  "put",
  `
  with ${laneCte(2)},
  items as materialized (
    select l.queue, l.priority, l.tenant, l.task, g.* from unnest($6::uuid[], $7::int[], $8::int2[], $9::int2[], $10::int2[], $11::float8[], $12::bool[], $13::text[], $14::text[])
      with ordinality as g(id, lane, state, attempts, crashes, run_at, suspect, kind, name, ord)
    join lane l on l.no = g.lane order by g.ord
  ),
  ${queueAtLimit("items", `g.state = ${stateCode("ready")}`, "order by g.ord")},
  r as (insert into pawl.ready (id, priority, attempts, crashes, queue, tenant, task)
    select id, priority, attempts, crashes, queue, tenant, task from items where state = ${stateCode("ready")} and not suspect and id not in (select id from queued_at_limit)),
  u as (insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
    select id, priority, attempts, crashes, queue, tenant, task from items where state = ${stateCode("ready")} and suspect and id not in (select id from queued_at_limit)),
  s as (insert into pawl.scheduled (run_at, id, priority, attempts, crashes, queue, tenant, task)
    select to_timestamp(run_at / 1000), id, priority, attempts, crashes, queue, tenant, task from items where state = ${stateCode("scheduled")}),
  p as (insert into pawl.parked (run_at, id, priority, attempts, crashes, reason, queue, tenant, task)
    select case when to_timestamp(run_at / 1000) > ${NOW} then to_timestamp(run_at / 1000) end, id, priority, attempts, crashes, 'paused', queue, tenant, task
    from items where state = ${stateCode("parked")}),
  b as (insert into pawl.blocked (run_at, id, priority, queue, tenant, task)
    select to_timestamp(run_at / 1000), id, priority, queue, tenant, task from items where state = ${stateCode("blocked")}),
  d as (insert into pawl.dead (died_at, id, priority, queue, tenant, task, kind, name)
    select ${NOW}, id, priority, queue, tenant, task, kind, name from items where state = ${stateCode("dead")})
  select limit_key from keys_to_check`,
);

/** Those under limits that were to become ready line up instead: they are counted as parked, whatever the caller says. */

export async function putWaiting(db: Db, on: Queryable, jobs: readonly JobMove[]): Promise<void> {
  if (jobs.length === 0) return;
  const lanes = new LaneNumbers();
  const numbers = jobs.map((job) => lanes.number(job.lane));
  const limitKeys = await on.query<{ limit_key: string }>(PUT_WAITING, [
    db.now(),
    ...lanes.parameters(),
    plainArray(jobs.map((job) => job.id)),
    plainArray(numbers),
    plainArray(jobs.map((job) => stateCode(job.to))),
    plainArray(jobs.map((job) => job.attempts)),
    plainArray(jobs.map((job) => job.crashes)),
    plainArray(jobs.map((job) => job.runAt)),
    plainArray(jobs.map((job) => isSuspect(job.crashes))),
    textArray(jobs.map((job) => job.failure?.kind ?? "error")),
    textArray(jobs.map((job) => job.failure?.name ?? "error")),
  ]);
  noteLimitChecks(
    on,
    limitKeys.map((row) => row.limit_key),
  );
}

/** A line in a job's history that no worker wrote, under a fresh number of the same sequence as leases. */
export interface HistoryEntry {
  readonly id: JobId;
  readonly outcome: "cancelled" | "failed" | "redriven";
  readonly next: JobState;
  readonly attempts: number;
  readonly crashes: number;
  readonly failure?: Failure;
  /** encoded JSON kept with the entry */
  readonly output?: string;
}

const ADD_HISTORY = statement(
  "add_history",
  `
  with items as materialized (
    select g.*, nextval('pawl.lease_seq') as lease, ${NOW} as since, ${NOW} as ended, null::int as worker from unnest($2::uuid[], $3::int2[], $4::int2[], $5::int2[], $6::int2[], $7::text[], $8::text[])
      as g(job, outcome, next, attempts, crashes, failure, output)
  ),
  ${APPEND_SINGLES}
  select count(*)::int as added from items`,
);

export async function addHistory(db: Db, on: Queryable, entries: readonly HistoryEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await on.query(ADD_HISTORY, [
    db.now(),
    plainArray(entries.map((item) => item.id)),
    plainArray(entries.map((item) => outcomeCode(item.outcome))),
    plainArray(entries.map((item) => stateCode(item.next))),
    plainArray(entries.map((item) => item.attempts)),
    plainArray(entries.map((item) => item.crashes)),
    textArray(entries.map((item) => (item.failure === undefined ? undefined : JSON.stringify(item.failure)))),
    textArray(entries.map((item) => item.output)),
  ]);
}

/** The same line for jobs that died while they waited: no attempt was made, and the failure says why. */
export function addDeath(db: Db, on: Queryable, dead: readonly JobMove[]): Promise<void> {
  return addHistory(
    db,
    on,
    dead.map(({ id, attempts, crashes, failure }) => ({
      id,
      outcome: "failed",
      next: "dead",
      attempts,
      crashes,
      ...(failure === undefined ? {} : { failure }),
    })),
  );
}
