import type { Failure } from "../../core/failure.js";
import { firstIdAt, type JobId, type LeaseId } from "../../core/id.js";
import type { AttemptRecord, JobRecord, LogLine, State } from "../../core/job.js";
import type { JobFilter, Page, PageRequest, Scope } from "../port.js";
import { levelOf, outcomeOf, stateCode, stateOf } from "./codes.js";
import { type Db, ms, statement } from "./db.js";
import { readCauses } from "./dead-groups.js";
import type { Queryable, Statement } from "./drivers/driver.js";
import { type Facts, readFacts, withoutStarted } from "./facts.js";

export function inScope(scope: Scope, tenant: string): boolean {
  return scope === "everyone" || scope.tenant === tenant;
}

/** The job if the scope may see it. Another tenant's job is as unknown as a random id. */
export async function find(on: Queryable, scope: Scope, id: JobId): Promise<Facts | undefined> {
  const [facts] = await readFacts(on, [id]);
  return facts !== undefined && inScope(scope, facts.lane.tenant) ? facts : undefined;
}

export async function get(db: Db, scope: Scope, id: JobId): Promise<JobRecord | undefined> {
  const facts = await find(db, scope, id);
  return facts === undefined ? undefined : withoutStarted(facts);
}

const ALL = "pawl.any_job";
/** Where the ids of a state are found. */
const SOURCES: Readonly<Record<State | "any", string>> = {
  ready: "pawl.any_ready",
  scheduled: "pawl.scheduled",
  parked: "pawl.parked",
  blocked: "pawl.blocked",
  dead: "pawl.dead",
  running: "(select u.id, l.id as lease from pawl.lease l cross join lateral unnest(l.jobs) as u(id))",
  succeeded: ALL,
  cancelled: ALL,
  any: ALL,
};
/** What has a job's facts there. */
const job = (state: State | "any") => (SOURCES[state] === ALL ? "s" : "j");

const LAST = "(select a.next from pawl.any_attempt a where a.job = s.id order by a.lease desc limit 1)";
const WAITS = ["ready", "suspect", "scheduled", "parked", "blocked", "dead"]
  .map((table) => `exists (select from pawl.${table} w where w.id = s.id)`)
  .join(" or ");
/** CASE, so that the planner walks the ids in order and asks this of each: as a join it would ask it of every job there is. */
const endedAs = (state: State) => `case when ${WAITS} then false else ${LAST} = ${stateCode(state)} end`;
const CONDITIONS: Readonly<Partial<Record<State | "any", string>>> = {
  running: "not exists (select from pawl.any_attempt a where a.job = s.id and a.lease = s.lease)",
  succeeded: endedAs("succeeded"),
  cancelled: endedAs("cancelled"),
};

const LISTS = new Map<State | "any", Statement>(
  (Object.keys(SOURCES) as (State | "any")[]).map((state) => [
    state,
    statement(
      `list_${state}`,
      `
      select s.id from ${SOURCES[state]} s ${SOURCES[state] === ALL ? "" : "join pawl.any_job j on j.id = s.id"}
      where s.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and s.id >= coalesce($9::uuid, '00000000-0000-0000-0000-000000000000')
        and ($3::text is null or ${job(state)}.tenant = $3) and ($4::text is null or ${job(state)}.queue = $4) and ($5::text is null or ${job(state)}.task = $5)
        and ($6::text is null or (${job(state)}.options->'tags')::jsonb ? $6) and ($7::text is null or ${job(state)}.options->>'key' = $7)
        and ($8::text is null or exists (select from pawl.dead d where d.id = s.id and (d.kind = $8 or d.name = $8)))
        and ($10::text is null or exists (select from pawl.dead d where d.id = s.id and d.fingerprint = $10))
        ${CONDITIONS[state] === undefined ? "" : `and ${CONDITIONS[state]}`}
      order by s.id desc limit $1`,
    ),
  ]),
);

/** Newest due time first, by keyset: a page costs its own length, however many came before it. */
export async function list(db: Db, scope: Scope, filter: JobFilter, page: PageRequest): Promise<Page> {
  const { failure, fingerprint, dueFrom, dueBefore } = filter;
  if (fingerprint !== undefined) await readCauses(db);
  // Only the dead have died of something: they are few, and looked through alone.
  const state = filter.state ?? (failure === undefined && fingerprint === undefined ? "any" : "dead");
  const rows = await db.query<{ id: JobId }>(LISTS.get(state) as Statement, [
    page.limit + 1,
    earlier(page.after, dueBefore === undefined ? undefined : firstIdAt(dueBefore)),
    scope === "everyone" ? null : scope.tenant,
    filter.queue ?? null,
    filter.task ?? null,
    filter.tag ?? null,
    filter.key ?? null,
    failure ?? null,
    dueFrom === undefined ? null : firstIdAt(dueFrom),
    fingerprint ?? null,
  ]);
  const shown = rows.slice(0, page.limit).map((row) => row.id);
  // A job may have moved on between the two statements: the page shows it as it is now.
  const jobs = (await readFacts(db, shown)).map(withoutStarted);
  const last = shown.at(-1);
  return { jobs, ...(rows.length > page.limit && last !== undefined ? { next: last } : {}) };
}

/** Where a page begins: after the last one, and not before what was asked for. */
function earlier(a: JobId | undefined, b: JobId | undefined): JobId | null {
  if (a === undefined || b === undefined) return a ?? b ?? null;
  return a < b ? a : b;
}

const HISTORY = statement(
  "history",
  `select a.lease::text, a.outcome, a.next, w.name as worker, ${ms("a.started_at")} as started_at, ${ms("a.finished_at")} as finished_at, a.output::text, a.failure::text
   from pawl.any_attempt a left join pawl.worker w on w.id = a.worker where a.job = $1::uuid order by a.lease`,
);

interface HistoryRow {
  readonly lease: LeaseId;
  readonly outcome: number;
  readonly next: number;
  readonly worker: string | null;
  readonly started_at: number;
  readonly finished_at: number;
  readonly output: string | null;
  readonly failure: string | null;
}

export async function history(db: Db, scope: Scope, id: JobId): Promise<readonly AttemptRecord[]> {
  if ((await find(db, scope, id)) === undefined) return [];
  const rows = await db.query<HistoryRow>(HISTORY, [id]);
  return rows.map((row) => ({
    job: id,
    lease: row.lease,
    outcome: outcomeOf(row.outcome),
    next: stateOf(row.next),
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    ...(row.worker === null ? {} : { worker: row.worker }),
    ...(row.output === null ? {} : outcomeOf(row.outcome) === "redriven" ? { replacedInput: row.output } : { output: row.output }),
    ...(row.failure === null ? {} : { failure: JSON.parse(row.failure) as Failure }),
  }));
}

const LOGS = statement(
  "logs",
  `select ${ms("l.at")} as at, l.level, l.message, l.data::text from pawl.any_log l where l.job = $1::uuid and l.level <> 4 order by l.at, l.lease`,
);

export async function logs(db: Db, scope: Scope, id: JobId): Promise<readonly LogLine[]> {
  if ((await find(db, scope, id)) === undefined) return [];
  const rows = await db.query<{ at: number; level: number; message: string; data: string | null }>(LOGS, [id]);
  return rows.map((row) => ({
    at: row.at,
    level: levelOf(row.level) as LogLine["level"],
    message: row.message,
    ...(row.data === null ? {} : { data: row.data }),
  }));
}
