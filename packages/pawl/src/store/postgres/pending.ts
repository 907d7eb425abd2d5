import type { Failure } from "../../core/failure.js";
import type { JobId } from "../../core/id.js";
import type { State } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { isSuspect } from "../../core/outcome.js";
import { plainArray, textArray } from "./arrays.js";
import { outcomeCode, stateCode } from "./codes.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { APPEND_SINGLES } from "./history.js";
import { noteKnocks } from "./knocks.js";
import { LanesTable, laneCte } from "./lanes-table.js";
import { linedUp } from "./line-up.js";
import { splitRows } from "./ready-rows.js";

/**
 * The primitives of every change that is not on the hot path: take jobs out of the table they wait in, put them into
 * another, mark what a person or a duty did in their history, and count it. Each is one statement over a batch.
 */
export interface PendingJob {
  readonly id: JobId;
  readonly lane: Lane;
  readonly state: "blocked" | "scheduled" | "ready" | "parked";
  readonly spent: number;
  readonly crashes: number;
  readonly runAt?: number;
}

type LaneColumns = { queue: string; band: Lane["band"]; tenant: string; task: string };
export function laneOf(row: LaneColumns): Lane {
  return { queue: row.queue, band: row.band, tenant: row.tenant, task: row.task };
}

const COLUMNS = "id, queue, band, tenant, task";
/** $2: only from there. A state, or null: wherever they are. */
const from = (state: PendingJob["state"]) => `id = any($1::uuid[]) and coalesce($2::text, '${state}') = '${state}'`;
/**
 * Ready rows of one job are looked for one by one: those of several have no ids, and by its estimates Postgres would rather read all of them.
 * A row is never updated, so it stays where it is.
 */
export const FROM_READY = `ctid = any(array(
      select r.ctid from unnest($1::uuid[]) as g(id) cross join lateral (select r.ctid from pawl.ready r where r.id = g.id limit 1) r
    )) and ${from("ready")}`;
const TAKE = statement(
  "take",
  `
  with r as (delete from pawl.ready where ${FROM_READY} returning ${COLUMNS}, spent, crashes),
  u as (delete from pawl.suspect where ${from("ready")} returning ${COLUMNS}, spent, crashes),
  s as (delete from pawl.scheduled where ${from("scheduled")} returning ${COLUMNS}, spent, crashes, run_at),
  p as (delete from pawl.parked where ${from("parked")} returning ${COLUMNS}, spent, crashes, run_at),
  b as (delete from pawl.blocked where ${from("blocked")} returning ${COLUMNS}, run_at)
  select 'ready' as state, ${COLUMNS}, spent, crashes, null::float8 as run_at from r
  union all select 'ready', ${COLUMNS}, spent, crashes, null from u
  union all select 'scheduled', ${COLUMNS}, spent, crashes, ${ms("run_at")} from s
  union all select 'parked', ${COLUMNS}, spent, crashes, ${ms("run_at")} from p
  union all select 'blocked', ${COLUMNS}, 0, 0, ${ms("run_at")} from b`,
);

type TakenRow = LaneColumns & { state: PendingJob["state"]; id: JobId; spent: number; crashes: number; run_at: number | null };

/**
 * Takes the jobs out of wherever they wait, or out of where those of one state do. What is not answered does not wait there:
 * it has moved on, is running, finished or unknown.
 */
export async function take(on: Queryable, ids: readonly JobId[], state?: PendingJob["state"]): Promise<readonly PendingJob[]> {
  if (ids.length === 0) return [];
  await splitRows(on, ids);
  const rows = await on.query<TakenRow>(TAKE, [plainArray(ids), state ?? null]);
  return rows.map((row) => ({
    id: row.id,
    lane: laneOf(row),
    state: row.state,
    spent: row.spent,
    crashes: row.crashes,
    ...(row.run_at === null ? {} : { runAt: row.run_at }),
  }));
}

/** A job on its way into a waiting table. `runAt` in ms: for scheduled and blocked, and remembered by parked. */
export interface Placement {
  readonly id: JobId;
  readonly lane: Lane;
  readonly to: PendingJob["state"] | "dead";
  readonly spent: number;
  readonly crashes: number;
  readonly runAt?: number;
  readonly failure?: Failure;
}

const PUT = statement(
  "put",
  `
  with ${laneCte(2)},
  given as materialized (
    select l.queue, l.band, l.tenant, l.task, g.* from unnest($6::uuid[], $7::int[], $8::int2[], $9::int2[], $10::int2[], $11::float8[], $12::bool[], $13::text[], $14::text[])
      with ordinality as g(id, lane, state, spent, crashes, run_at, suspect, kind, name, ord)
    join lane l on l.no = g.lane order by g.ord
  ),
  ${linedUp("given", `g.state = ${stateCode("ready")}`, "order by g.ord")},
  r as (insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
    select id, band, spent, crashes, queue, tenant, task from given where state = ${stateCode("ready")} and not suspect and id not in (select id from lined)),
  u as (insert into pawl.suspect (id, band, spent, crashes, queue, tenant, task)
    select id, band, spent, crashes, queue, tenant, task from given where state = ${stateCode("ready")} and suspect and id not in (select id from lined)),
  s as (insert into pawl.scheduled (run_at, id, band, spent, crashes, queue, tenant, task)
    select to_timestamp(run_at / 1000), id, band, spent, crashes, queue, tenant, task from given where state = ${stateCode("scheduled")}),
  p as (insert into pawl.parked (run_at, id, band, spent, crashes, reason, queue, tenant, task)
    select case when to_timestamp(run_at / 1000) > ${NOW} then to_timestamp(run_at / 1000) end, id, band, spent, crashes, 'paused', queue, tenant, task
    from given where state = ${stateCode("parked")}),
  b as (insert into pawl.blocked (run_at, id, band, queue, tenant, task)
    select to_timestamp(run_at / 1000), id, band, queue, tenant, task from given where state = ${stateCode("blocked")}),
  d as (insert into pawl.dead (died_at, id, band, queue, tenant, task, kind, name)
    select ${NOW}, id, band, queue, tenant, task, kind, name from given where state = ${stateCode("dead")})
  select gate from knocked_at`,
);

/** Those under limits that were to become ready line up instead: they are counted as parked, whatever the caller says. */

export async function put(db: Db, on: Queryable, jobs: readonly Placement[]): Promise<void> {
  if (jobs.length === 0) return;
  const lanes = new LanesTable();
  const numbers = jobs.map((job) => lanes.number(job.lane));
  const gates = await on.query<{ gate: string }>(PUT, [
    db.now(),
    ...lanes.parameters(),
    plainArray(jobs.map((job) => job.id)),
    plainArray(numbers),
    plainArray(jobs.map((job) => stateCode(job.to))),
    plainArray(jobs.map((job) => job.spent)),
    plainArray(jobs.map((job) => job.crashes)),
    plainArray(jobs.map((job) => job.runAt)),
    plainArray(jobs.map((job) => isSuspect(job.crashes))),
    textArray(jobs.map((job) => job.failure?.kind ?? "error")),
    textArray(jobs.map((job) => job.failure?.name ?? "error")),
  ]);
  noteKnocks(
    on,
    gates.map(({ gate }) => gate),
  );
}

/** A line in a job's history that no worker wrote, under a fresh number of the same sequence as leases. */
export interface Mark {
  readonly id: JobId;
  readonly outcome: "cancelled" | "failed" | "redriven";
  readonly next: State;
  readonly spent: number;
  readonly crashes: number;
  readonly failure?: Failure;
  /** encoded JSON kept with the mark */
  readonly output?: string;
}

const MARK = statement(
  "mark",
  `
  with given as materialized (
    select g.*, nextval('pawl.lease_seq') as lease, ${NOW} as since, ${NOW} as ended, null::int as worker from unnest($2::uuid[], $3::int2[], $4::int2[], $5::int2[], $6::int2[], $7::text[], $8::text[])
      as g(job, outcome, next, spent, crashes, failure, output)
  ),
  ${APPEND_SINGLES}
  select count(*)::int as marked from given`,
);

export async function mark(db: Db, on: Queryable, marks: readonly Mark[]): Promise<void> {
  if (marks.length === 0) return;
  await on.query(MARK, [
    db.now(),
    plainArray(marks.map((item) => item.id)),
    plainArray(marks.map((item) => outcomeCode(item.outcome))),
    plainArray(marks.map((item) => stateCode(item.next))),
    plainArray(marks.map((item) => item.spent)),
    plainArray(marks.map((item) => item.crashes)),
    textArray(marks.map((item) => (item.failure === undefined ? undefined : JSON.stringify(item.failure)))),
    textArray(marks.map((item) => item.output)),
  ]);
}

/** The same line for jobs that died while they waited: no attempt was made, and the failure says why. */
export function markDead(db: Db, on: Queryable, dead: readonly Placement[]): Promise<void> {
  return mark(
    db,
    on,
    dead.map(({ id, spent, crashes, failure }) => ({
      id,
      outcome: "failed",
      next: "dead",
      spent,
      crashes,
      ...(failure === undefined ? {} : { failure }),
    })),
  );
}
