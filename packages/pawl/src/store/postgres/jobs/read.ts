import type { Failure } from "../../../core/jobs/failure.js";
import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { AttemptRecord, JobRecord, LogLine } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { Scope } from "../../port/index.js";
import type { PartRequest } from "../../port/jobs/pages.js";
import { plainArray } from "../connection/arrays.js";
import { levelOf, outcomeOf, stateOf } from "../connection/codes.js";
import { type Db, ms, statement } from "../connection/db.js";
import { bytesOf, withinBytes } from "../connection/pages.js";
import { readFor } from "../connection/tenant-role.js";
import type { DriverRow, Queryable, Statement } from "../drivers/driver.js";
import { type Facts, readFacts, withoutStarted } from "./job-state.js";
import { laneOf } from "./waiting-jobs.js";

export function inScope(scope: Scope, tenant: string): boolean {
  return scope === "everyone" || scope.tenant === tenant;
}

/** The job if the scope may see it. Another tenant's job is as unknown as a random id. */
export async function find(on: Queryable, scope: Scope, id: JobId): Promise<Facts | undefined> {
  const [facts] = await readFacts(on, [id]);
  return facts !== undefined && inScope(scope, facts.lane.tenant) ? facts : undefined;
}

export async function get(db: Db, scope: Scope, id: JobId): Promise<JobRecord | undefined> {
  const facts = await readFor(db, scope, (on) => find(on, scope, id));
  return facts === undefined ? undefined : withoutStarted(facts);
}

const LANES = statement(
  "job_lanes",
  `select g.id, j.queue, j.priority, j.tenant, j.task from unnest($1::uuid[]) as g(id)
   cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j where ($2::text is null or j.tenant = $2)`,
);

export async function lanes(db: Db, scope: Scope, ids: readonly JobId[]): Promise<ReadonlyMap<JobId, Lane>> {
  if (ids.length === 0) return new Map();
  const values = [plainArray([...new Set(ids)]), scope === "everyone" ? null : scope.tenant];
  const rows = await readFor(db, scope, (on) => on.query<Lane & { readonly id: JobId }>(LANES, values));
  return new Map(rows.map((row) => [row.id, laneOf(row)]));
}

const HISTORY = statement(
  "history",
  withinBytes(
    `select a.lease::text, a.outcome, a.next, w.name as worker, ${ms("a.started_at")} as started_at, ${ms("a.finished_at")} as finished_at, a.output::text, a.failure::text,
       ${bytesOf("a.output", "a.failure")} as bytes, (row_number() over (order by a.lease))::int as index
     from pawl.any_attempt a left join pawl.worker w on w.id = a.worker where a.job = $1::uuid order by a.lease limit $2 offset $3`,
    "index",
    "$4",
  ),
);

export interface AttemptRow {
  readonly lease: LeaseId;
  readonly outcome: number;
  readonly next: number;
  readonly worker: string | null;
  readonly started_at: number;
  readonly finished_at: number;
  readonly output: string | null;
  readonly failure: string | null;
}

export async function history(db: Db, scope: Scope, id: JobId, part?: PartRequest): Promise<readonly AttemptRecord[]> {
  const rows = await ofJob<AttemptRow>(db, scope, id, HISTORY, part);
  return rows.map((row) => attemptOf(id, row));
}

export function attemptOf(job: JobId, row: AttemptRow): AttemptRecord {
  return {
    job,
    lease: row.lease,
    outcome: outcomeOf(row.outcome),
    next: stateOf(row.next),
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    ...(row.worker === null ? {} : { worker: row.worker }),
    ...(row.output === null ? {} : outcomeOf(row.outcome) === "redriven" ? { replacedInput: row.output } : { output: row.output }),
    ...(row.failure === null ? {} : { failure: JSON.parse(row.failure) as Failure }),
  };
}

const LOGS = statement(
  "logs",
  withinBytes(
    `select ${ms("l.at")} as at, l.level, l.message, l.data::text, ${bytesOf("l.message", "l.data")} as bytes, (row_number() over (order by l.at, l.line))::int as index
     from pawl.any_log l where l.job = $1::uuid and l.level <> 4 order by l.at, l.line limit $2 offset $3`,
    "index",
    "$4",
  ),
);

export async function logs(db: Db, scope: Scope, id: JobId, part?: PartRequest): Promise<readonly LogLine[]> {
  return (await ofJob<LineRow>(db, scope, id, LOGS, part)).map(lineOf);
}

export interface LineRow {
  readonly at: number;
  readonly level: number;
  readonly message: string;
  readonly data: string | null;
}

export function lineOf({ at, level, message, data }: LineRow): LogLine {
  return { at, level: levelOf(level) as LogLine["level"], message, ...(data === null ? {} : { data }) };
}

/** Rows of a job, if the scope may see it. */
function ofJob<R extends DriverRow>(db: Db, scope: Scope, id: JobId, sql: Statement, part: PartRequest | undefined): Promise<readonly R[]> {
  return readFor(db, scope, async (on) => ((await find(on, scope, id)) === undefined ? [] : on.query<R>(sql, [id, ...valuesOf(part)])));
}

function valuesOf(part: PartRequest | undefined): readonly (number | null)[] {
  return part === undefined ? [null, 0, Number.POSITIVE_INFINITY] : [part.limit, part.after, part.bytes];
}
