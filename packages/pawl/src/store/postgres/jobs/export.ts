import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { JobState, ParkReason } from "../../../core/jobs/job.js";
import { type Lane, laneKey } from "../../../core/jobs/lane.js";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import type { Scope } from "../../port/index.js";
import type { PageRequest, WholeJob, WholePage } from "../../port/jobs/jobs.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { levelOf, outcomeCode, stateCode } from "../connection/codes.js";
import { type Db, ms, statement } from "../connection/db.js";
import { bytesOf } from "../connection/pages.js";
import { MAX_HOME_DISTANCE, SEQ_STEP } from "../connection/sql-constants.js";
import { readInside } from "../connection/tenant-role.js";
import type { Queryable } from "../drivers/driver.js";
import { type FactsRow, recordOf } from "./job-state.js";
import { walked } from "./list.js";
import { type AttemptRow, attemptOf, type LineRow, lineOf } from "./read.js";

/**
 * All that is kept of the jobs of a page, by a statement for each kind of row: asked job by job, the same costs twenty times as
 * much. One snapshot for all of them, or a job that moves on meanwhile would be in no table, or in two. What belongs to what
 * is put together here: left to the server, a join of sets whose sizes it does not know may compare each row with each.
 */
const SNAPSHOT = statement("whole_snapshot", "set transaction isolation level repeatable read");

/**
 * Of what may be large: inputs, lines, and attempts in rows of their own. Those that share a row have outputs of a few kilobytes and
 * failures within their bounds.
 */
const SIZES = statement(
  "whole_sizes",
  `select job, sum(bytes)::float8 as bytes from (
     select id as job, ${bytesOf("input")} as bytes from pawl.any_job where id = any($1::uuid[])
     union all select h.first, ${bytesOf("h.outputs[1]", "h.failures[1]")} from pawl.history h
       where h.home = any($2::bigint[]) and h.jobs is null and h.first = any($1::uuid[])
     union all select h.first, ${bytesOf("h.outputs[1]", "h.failures[1]")} from pawl.history_kept h where h.first = any($1::uuid[])
     union all select job, ${bytesOf("message", "data")} from pawl.any_log where job = any($1::uuid[])
   ) s group by job`,
);
const HOMES = statement("whole_homes", "select id, home::text from pawl.any_job where id = any($1::uuid[])");
const JOBS = statement(
  "whole_jobs",
  `select id, queue, priority, tenant, task, input::text, options::text, ${ms("created_at")} as created_at, ${ms("due_at")} as due_at, home::text
   from pawl.any_job where id = any($1::uuid[])`,
);
const WAITING = statement(
  "whole_waiting",
  `select r.id, 'ready' as waiting, null::float8 as run_at, null as parked_for, null as limit_key
     from unnest($1::uuid[]) as g(id) cross join lateral (select r.id from pawl.ready r where r.id = g.id limit 1) r
   union all select id, 'ready', null, null, null from pawl.suspect where id = any($1::uuid[])
   union all select id, 'scheduled', ${ms("run_at")}, null, null from pawl.scheduled where id = any($1::uuid[])
   union all select id, 'parked', ${ms("run_at")}, reason, limit_key from pawl.parked where id = any($1::uuid[])
   union all select id, 'blocked', null, null, null from pawl.blocked where id = any($1::uuid[])
   union all select id, 'dead', null, null, null from pawl.dead where id = any($1::uuid[])`,
);
const INTENTS = statement("whole_intents", "select job, kind from pawl.intent where job = any($1::uuid[])");
const PARENTS = statement(
  "whole_parents",
  "select child, string_agg(parent::text, ',' order by parent) as parents from pawl.dependency where child = any($1::uuid[]) group by child",
);
/** Entries of arrays as one text: no JSON has this character in it. */
const ELEMENT_SEPARATOR = "\u0001";
const ATTEMPTS_OF = `h.lease::text, w.name as worker, ${ms("h.since")} as since, ${ms("h.ended")} as ended, h.first, array_to_string(h.jobs, ',') as jobs,
  array_to_string(h.started, ',') as started, array_to_string(h.finished, ',') as finished, array_to_string(h.outcomes, ',') as outcomes,
  array_to_string(h.failures, chr(1), '') as failures, array_to_string(h.outputs, chr(1), '') as outputs`;
/** Rows whose jobs have numbers around those that are asked for; whose jobs they are is looked at here. */
const HISTORY = statement(
  "whole_history",
  `select ${ATTEMPTS_OF} from unnest($1::bigint[], $2::bigint[]) as g(low, high)
   join pawl.history h on h.home > g.low and h.home <= g.high left join pawl.worker w on w.id = h.worker
   where int8range(h.home, h.last, '[]') && $3::int8multirange`,
);
const HISTORY_KEPT = statement(
  "whole_history_kept",
  `select ${ATTEMPTS_OF} from pawl.history_kept h left join pawl.worker w on w.id = h.worker where h.first = any($1::uuid[])`,
);
/** Ready rows of several jobs between these numbers. */
const READY = statement(
  "whole_ready",
  `select array_to_string(r.jobs, ',') as jobs from unnest($1::text[], $2::int2[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) as g(queue, priority, tenant, task, low, high)
   join pawl.ready r on r.queue = g.queue and r.priority = g.priority and r.tenant = g.tenant and r.task = g.task and r.seq > g.low and r.seq <= g.high where r.jobs is not null`,
);
const LOGS = statement(
  "whole_logs",
  `select job, ${ms("at")} as at, level, message, data::text from pawl.any_log where job = any($1::uuid[]) order by at, line`,
);

interface JobRow extends Lane, Pick<FactsRow, "id" | "input" | "options" | "created_at" | "due_at"> {
  readonly home: string;
}
interface WaitingRow {
  readonly id: JobId;
  readonly waiting: JobState;
  readonly run_at: number | null;
  readonly parked_for: ParkReason | null;
  readonly limit_key: LimitKeyId | null;
}
interface JobAttemptRow extends AttemptRow {
  readonly job: JobId;
  readonly attempts: number;
  readonly crashes: number;
}
interface HistoryRow {
  readonly lease: LeaseId;
  readonly worker: string | null;
  readonly since: number;
  readonly ended: number | null;
  readonly first: JobId;
  readonly jobs: string | null;
  readonly started: string | null;
  readonly finished: string | null;
  readonly outcomes: string | null;
  readonly failures: string | null;
  readonly outputs: string | null;
}

/** As `list` without a filter. A page that its bytes cut short goes on with the first job that did not fit. */
export async function readExport(db: Db, scope: Scope, page: PageRequest): Promise<WholePage> {
  const { shown, more } = await walked(db, scope, {}, page);
  if (shown.length === 0) return { jobs: [], ...(more === undefined ? {} : { next: more }) };
  return db.reading(async (tx) => {
    await tx.query(SNAPSHOT, []);
    return readInside(db, tx, scope, async (on) => {
      const fitting = page.bytes === undefined ? shown : await within(on, shown, page.bytes);
      const jobs = await readWhole(on, fitting);
      const next = fitting.length < shown.length ? fitting.at(-1) : more;
      return { jobs, ...(next === undefined ? {} : { next }) };
    });
  });
}

/** Up to the one that fills these bytes. */
async function within(on: Queryable, ids: readonly JobId[], most: number): Promise<readonly JobId[]> {
  const homes = await on.query<{ id: JobId; home: string }>(HOMES, [plainArray(ids)]);
  const rows = await on.query<{ job: JobId; bytes: number }>(SIZES, [plainArray(ids), plainArray(homes.map(({ home }) => home))]);
  const sizes = new Map(rows.map(({ job, bytes }) => [job, bytes]));
  let before = 0;
  const end = ids.findIndex((id) => {
    const full = before >= most;
    before += sizes.get(id) ?? 0;
    return full;
  });
  return end === -1 ? ids : ids.slice(0, end);
}

/** In the order of the ids; those that are gone are left out. */
async function readWhole(on: Queryable, ids: readonly JobId[]): Promise<readonly WholeJob[]> {
  const wanted = [plainArray(ids)];
  const jobs = new Map((await on.query<JobRow>(JOBS, wanted)).map((row) => [row.id, row]));
  const waiting = new Map((await on.query<WaitingRow>(WAITING, wanted)).map((row) => [row.id, row]));
  const intents = new Map((await on.query<{ job: JobId; kind: NonNullable<FactsRow["intent"]> }>(INTENTS, wanted)).map((row) => [row.job, row.kind]));
  const parents = new Map((await on.query<{ child: JobId; parents: string }>(PARENTS, wanted)).map((row) => [row.child, row.parents]));
  const attempts = grouped(await readAttempts(on, jobs), ({ job }) => job);
  for (const tried of attempts.values()) tried.sort(byLease);
  const notWaiting = [...jobs.values()].filter(({ id }) => !waiting.has(id) && !isEnded(attempts.get(id)?.at(-1)));
  const together = await readyTogether(on, notWaiting);
  const lines = grouped(await on.query<LineRow & { readonly job: JobId }>(LOGS, wanted), ({ job }) => job);
  return ids.flatMap((id) => {
    const job = jobs.get(id);
    if (job === undefined) return [];
    const tried = attempts.get(id) ?? [];
    const logLines = lines.get(id) ?? [];
    const row = together.has(id) ? READY_ROW : waiting.get(id);
    const last = tried.at(-1);
    const record = recordOf({
      id,
      queue: job.queue,
      priority: job.priority,
      tenant: job.tenant,
      task: job.task,
      input: job.input,
      options: job.options,
      created_at: job.created_at,
      due_at: job.due_at,
      waiting: row?.waiting ?? null,
      run_at: row?.run_at ?? null,
      parked_for: row?.parked_for ?? null,
      limit_key: row?.limit_key ?? null,
      next: last?.next ?? null,
      attempts: last?.attempts ?? 0,
      crashes: last?.crashes ?? 0,
      finished_at: last?.finished_at ?? null,
      output: last?.output ?? null,
      failure: last?.failure ?? null,
      progress: logLines.findLast(({ level }) => levelOf(level) === "progress")?.data ?? null,
      waits_for: parents.get(id) ?? null,
      intent: intents.get(id) ?? null,
    });
    const history = tried.map((one) => attemptOf(id, one));
    const logs = logLines.filter(({ level }) => levelOf(level) !== "progress").map(lineOf);
    return [{ job: record, history, logs }];
  });
}

const READY_ROW = { waiting: "ready", run_at: null, parked_for: null, limit_key: null } as const;

function isEnded(last: JobAttemptRow | undefined): boolean {
  return last !== undefined && ENDED.has(last.next);
}
const ENDED: ReadonlySet<number> = new Set([stateCode("succeeded"), stateCode("cancelled")]);

function grouped<Key, Row>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group === undefined) groups.set(keyOf(row), [row]);
    else group.push(row);
  }
  return groups;
}

/** The numbers of leases, which are longer than those of JavaScript may be. */
function byLease(a: JobAttemptRow, b: JobAttemptRow): number {
  return a.lease.length - b.lease.length || (a.lease < b.lease ? -1 : 1);
}

async function readAttempts(on: Queryable, jobs: ReadonlyMap<JobId, JobRow>): Promise<readonly JobAttemptRow[]> {
  if (jobs.size === 0) return [];
  const homes = [...jobs.values()].map(({ home }) => Number(home)).sort((a, b) => a - b);
  const ranges = rangesOf(homes, MAX_HOME_DISTANCE);
  const numbers = `{${[...new Set(homes)].map((home) => `[${home},${home + 1})`).join(",")}}`;
  const columns = [plainArray(ranges.map(({ low }) => low)), plainArray(ranges.map(({ high }) => high))];
  const rows = await on.query<HistoryRow>(HISTORY, [...columns, numbers]);
  const kept = await on.query<HistoryRow>(HISTORY_KEPT, [plainArray([...jobs.keys()])]);
  return [...rows, ...kept].flatMap((row) => attemptsIn(row, jobs));
}

/** The attempts of a row of history that are of these jobs. */
function attemptsIn(row: HistoryRow, wanted: ReadonlyMap<JobId, unknown>): readonly JobAttemptRow[] {
  const { lease, worker, since, ended, first } = row;
  const jobs = row.jobs === null ? [first] : (row.jobs.split(",") as JobId[]);
  if (!jobs.some((job) => wanted.has(job))) return [];
  const [started, finished, failures, outputs] = [
    listOf(row.started, ","),
    listOf(row.finished, ","),
    listOf(row.failures, ELEMENT_SEPARATOR),
    listOf(row.outputs, ELEMENT_SEPARATOR),
  ];
  const outcomes = outcomesOf(row.outcomes);
  // In whole microseconds, so that it comes to the very number that the server's arithmetic would.
  const at = (micros: string | undefined) => (Math.round(since * 1_000) + Number(micros)) / 1_000;
  return jobs.flatMap((job, index): JobAttemptRow[] => {
    if (!wanted.has(job)) return [];
    const times =
      row.jobs === null ? { started_at: since, finished_at: ended ?? since } : { started_at: at(started[index]), finished_at: at(finished[index]) };
    const { failureIndex, ...how } = outcomes.get(index + 1) ?? PLAIN_SUCCESS;
    return [{ job, lease, worker, ...times, ...how, output: outputs[index] || null, failure: failures[failureIndex] || null }];
  });
}

interface ExportedOutcome extends Pick<JobAttemptRow, "outcome" | "next" | "attempts" | "crashes"> {
  /** its index among the failures */
  readonly failureIndex: number;
}

/** A first attempt that succeeded has no numbers of its own. */
const PLAIN_SUCCESS: ExportedOutcome = { outcome: outcomeCode("succeeded"), next: stateCode("succeeded"), attempts: 1, crashes: 0, failureIndex: -1 };

/** By index from 1: five numbers for each. */
function outcomesOf(text: string | null): ReadonlyMap<number, ExportedOutcome> {
  const numbers = listOf(text, ",").map(Number);
  const outcomes = new Map<number, ExportedOutcome>();
  for (let at = 0; at + 4 < numbers.length; at += 5) {
    const [index = 0, outcome = 0, next = 0, attempts = 0, crashes = 0] = numbers.slice(at, at + 5);
    outcomes.set(index, { outcome, next, attempts, crashes, failureIndex: at / 5 });
  }
  return outcomes;
}

function listOf(text: string | null, between: string): readonly string[] {
  return text === null ? [] : text.split(between);
}

/** Those of these jobs that are ready in one row with others. */
async function readyTogether(on: Queryable, jobs: readonly JobRow[]): Promise<ReadonlySet<JobId>> {
  if (jobs.length === 0) return new Set();
  const ranges = [...grouped(jobs, laneKey).values()].flatMap((ofLane) => {
    const homes = ofLane.map(({ home }) => Number(home)).sort((a, b) => a - b);
    return rangesOf(homes, SEQ_STEP).map((range) => ({ ...range, lane: ofLane[0] as Lane }));
  });
  const rows = await on.query<{ jobs: string }>(READY, [
    textArray(ranges.map(({ lane }) => lane.queue)),
    plainArray(ranges.map(({ lane }) => lane.priority)),
    textArray(ranges.map(({ lane }) => lane.tenant)),
    textArray(ranges.map(({ lane }) => lane.task)),
    plainArray(ranges.map(({ low }) => low)),
    plainArray(ranges.map(({ high }) => high)),
  ]);
  return new Set(rows.flatMap((row) => row.jobs.split(",") as JobId[]));
}

interface Range {
  readonly low: number;
  high: number;
}

/** Where rows may begin that reach up to these numbers, by at most `reach`. Ranges that would overlap are one. In order. */
function rangesOf(numbers: readonly number[], reach: number): readonly Range[] {
  const ranges: Range[] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last !== undefined && number - last.high <= reach) last.high = number;
    else ranges.push({ low: number - reach, high: number });
  }
  return ranges;
}
