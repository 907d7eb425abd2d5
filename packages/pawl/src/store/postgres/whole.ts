import type { JobId, LeaseId } from "../../core/id.js";
import type { ParkReason, State } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { GateKey } from "../../core/limit.js";
import type { Scope } from "../port.js";
import type { PageRequest, WholeJob, WholePage } from "../port-jobs.js";
import { plainArray, textArray } from "./arrays.js";
import { levelOf, outcomeCode, stateCode } from "./codes.js";
import { type Db, ms, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { type FactsRow, recordOf } from "./facts.js";
import { walked } from "./list.js";
import { bytesOf } from "./pages.js";
import { SEQ_STEP } from "./parcels.js";
import { type AttemptRow, attemptOf, type LineRow, lineOf } from "./read.js";
import { readInside } from "./wall.js";

/**
 * All that is kept of the jobs of a page, by a statement for each kind of row: asked job by job, the same costs twenty times as
 * much. One snapshot for all of them, or a job that moves on meanwhile would be in no table, or in two. What belongs to what
 * is put together here: left to the server, a join of sets whose sizes it does not know may compare each row with each.
 */
const SNAPSHOT = statement("whole_snapshot", "set transaction isolation level repeatable read");

const SIZES = statement(
  "whole_sizes",
  `select job, sum(bytes)::float8 as bytes from (
     select id as job, ${bytesOf("input")} as bytes from pawl.any_job where id = any($1::uuid[])
     union all select job, ${bytesOf("output", "failure")} from pawl.attempt where job = any($1::uuid[])
     union all select job, ${bytesOf("output", "failure")} from pawl.attempt_kept where job = any($1::uuid[])
     union all select job, ${bytesOf("message", "data")} from pawl.any_log where job = any($1::uuid[])
   ) s group by job`,
);
const JOBS = statement(
  "whole_jobs",
  `select id, queue, band, tenant, task, input::text, options::text, ${ms("created_at")} as created_at, ${ms("due_at")} as due_at, home::text
   from pawl.any_job where id = any($1::uuid[])`,
);
const WAITING = statement(
  "whole_waiting",
  `select id, 'ready' as waiting, null::float8 as run_at, null as parked_for, null as gate from pawl.ready where id = any($1::uuid[])
   union all select id, 'ready', null, null, null from pawl.suspect where id = any($1::uuid[])
   union all select id, 'scheduled', ${ms("run_at")}, null, null from pawl.scheduled where id = any($1::uuid[])
   union all select id, 'parked', ${ms("run_at")}, reason, gate from pawl.parked where id = any($1::uuid[])
   union all select id, 'blocked', null, null, null from pawl.blocked where id = any($1::uuid[])
   union all select id, 'dead', null, null, null from pawl.dead where id = any($1::uuid[])`,
);
const INTENTS = statement("whole_intents", "select job, kind from pawl.intent where job = any($1::uuid[])");
const PARENTS = statement(
  "whole_parents",
  "select child, string_agg(parent::text, ',' order by parent) as parents from pawl.dependency where child = any($1::uuid[]) group by child",
);
const ATTEMPT = `a.job, a.lease::text, a.outcome, a.next, a.spent, a.crashes, w.name as worker, ${ms("a.started_at")} as started_at,
  ${ms("a.finished_at")} as finished_at, a.output::text, a.failure::text`;
const ATTEMPTS = statement(
  "whole_attempts",
  ["attempt", "attempt_kept"]
    .map((table) => `select ${ATTEMPT} from pawl.${table} a left join pawl.worker w on w.id = a.worker where a.job = any($1::uuid[])`)
    .join(" union all "),
);
/** The one that has a number is the nearest below it: they hold consecutive numbers, and overlap nowhere. */
const BUNDLES = statement(
  "whole_bundles",
  `with found as materialized (
     select distinct (select max(b.seq) from pawl.bundle b where b.seq <= h.home and b.seq > h.home - ${SEQ_STEP}) as seq from unnest($1::bigint[]) as h(home)
   )
   select b.lease::text, w.name as worker, ${ms("b.since")} as since, array_to_string(b.jobs, ',') as jobs, array_to_string(b.started, ',') as started,
     array_to_string(b.finished, ',') as finished
   from found f join pawl.bundle b on b.seq = f.seq left join pawl.worker w on w.id = b.worker`,
);
/** What is left of parcels between these numbers. */
const PARCELS = statement(
  "whole_parcels",
  `select array_to_string(p.jobs, ',') as jobs from unnest($1::text[], $2::int2[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) as g(queue, band, tenant, task, low, high)
   join pawl.parcel p on p.queue = g.queue and p.band = g.band and p.tenant = g.tenant and p.task = g.task and p.seq > g.low and p.seq <= g.high`,
);
const LOGS = statement(
  "whole_logs",
  `select job, ${ms("at")} as at, level, message, data::text from pawl.any_log where job = any($1::uuid[]) order by at, lease`,
);

interface JobRow extends Lane, Pick<FactsRow, "id" | "input" | "options" | "created_at" | "due_at"> {
  readonly home: string;
}
interface WaitingRow {
  readonly id: JobId;
  readonly waiting: State;
  readonly run_at: number | null;
  readonly parked_for: ParkReason | null;
  readonly gate: GateKey | null;
}
interface TriedRow extends AttemptRow {
  readonly job: JobId;
  readonly spent: number;
  readonly crashes: number;
}
interface BundleRow {
  readonly lease: LeaseId;
  readonly worker: string | null;
  readonly since: number;
  readonly jobs: string;
  readonly started: string;
  readonly finished: string;
}

/** As `list` without a filter. A page that its bytes cut short goes on with the first job that did not fit. */
export async function whole(db: Db, scope: Scope, page: PageRequest): Promise<WholePage> {
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
  const rows = await on.query<{ job: JobId; bytes: number }>(SIZES, [plainArray(ids)]);
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
  const asked = [plainArray(ids)];
  const jobs = new Map((await on.query<JobRow>(JOBS, asked)).map((row) => [row.id, row]));
  const waiting = new Map((await on.query<WaitingRow>(WAITING, asked)).map((row) => [row.id, row]));
  const intents = new Map((await on.query<{ job: JobId; kind: NonNullable<FactsRow["intent"]> }>(INTENTS, asked)).map((row) => [row.job, row.kind]));
  const parents = new Map((await on.query<{ child: JobId; parents: string }>(PARENTS, asked)).map((row) => [row.child, row.parents]));
  const attempts = grouped(await on.query<TriedRow>(ATTEMPTS, asked));
  for (const tried of attempts.values()) tried.sort(byLease);
  const untried = [...jobs.values()].filter(({ id }) => !attempts.has(id) && !waiting.has(id));
  for (const row of await readBundles(on, untried)) attempts.set(row.job, [row]);
  const unplaced = [...jobs.values()].filter(({ id }) => !waiting.has(id) && !isEnded(attempts.get(id)?.at(-1)));
  const packed = await readParcels(on, unplaced);
  const lines = grouped(await on.query<LineRow & { readonly job: JobId }>(LOGS, asked));
  return ids.flatMap((id) => {
    const job = jobs.get(id);
    if (job === undefined) return [];
    const tried = attempts.get(id) ?? [];
    const said = lines.get(id) ?? [];
    const place = packed.has(id) ? PACKED : waiting.get(id);
    const last = tried.at(-1);
    const record = recordOf({
      id,
      queue: job.queue,
      band: job.band,
      tenant: job.tenant,
      task: job.task,
      input: job.input,
      options: job.options,
      created_at: job.created_at,
      due_at: job.due_at,
      waiting: place?.waiting ?? null,
      run_at: place?.run_at ?? null,
      parked_for: place?.parked_for ?? null,
      gate: place?.gate ?? null,
      next: last?.next ?? null,
      spent: last?.spent ?? 0,
      crashes: last?.crashes ?? 0,
      finished_at: last?.finished_at ?? null,
      output: last?.output ?? null,
      failure: last?.failure ?? null,
      progress: said.findLast(({ level }) => levelOf(level) === "progress")?.data ?? null,
      waits_for: parents.get(id) ?? null,
      intent: intents.get(id) ?? null,
    });
    const history = tried.map((one) => attemptOf(id, one));
    const logs = said.filter(({ level }) => levelOf(level) !== "progress").map(lineOf);
    return [{ job: record, history, logs }];
  });
}

const PACKED = { waiting: "ready", run_at: null, parked_for: null, gate: null } as const;

function isEnded(last: TriedRow | undefined): boolean {
  return last !== undefined && ENDED.has(last.next);
}
const ENDED: ReadonlySet<number> = new Set([stateCode("succeeded"), stateCode("cancelled")]);

function grouped<Row extends { readonly job: JobId }>(rows: readonly Row[]): Map<JobId, Row[]> {
  const groups = new Map<JobId, Row[]>();
  for (const row of rows) {
    const group = groups.get(row.job);
    if (group === undefined) groups.set(row.job, [row]);
    else group.push(row);
  }
  return groups;
}

/** The numbers of leases, which are longer than those of JavaScript may be. */
function byLease(a: TriedRow, b: TriedRow): number {
  return a.lease.length - b.lease.length || (a.lease < b.lease ? -1 : 1);
}

/** The attempts of these jobs that are recorded together with those of others. */
async function readBundles(on: Queryable, jobs: readonly JobRow[]): Promise<readonly TriedRow[]> {
  if (jobs.length === 0) return [];
  const asked = new Set(jobs.map(({ id }) => id));
  const rows = await on.query<BundleRow>(BUNDLES, [plainArray(jobs.map(({ home }) => home))]);
  return rows.flatMap(({ lease, worker, since, jobs, started, finished }) => {
    const starts = started.split(",");
    const ends = finished.split(",");
    // In whole microseconds, so that it comes to the very number that the server's arithmetic would.
    const at = (micros: string | undefined) => (Math.round(since * 1_000) + Number(micros)) / 1_000;
    return (jobs.split(",") as JobId[]).flatMap((job, place): TriedRow[] => {
      if (!asked.has(job)) return [];
      return [{ job, lease, worker, started_at: at(starts[place]), finished_at: at(ends[place]), ...BUNDLED }];
    });
  });
}

/** What every attempt in a bundle has in common. */
const BUNDLED = { outcome: outcomeCode("succeeded"), next: stateCode("succeeded"), spent: 1, crashes: 0, output: null, failure: null } as const;

/** Those of these jobs that are ready, together with others. */
async function readParcels(on: Queryable, jobs: readonly JobRow[]): Promise<ReadonlySet<JobId>> {
  if (jobs.length === 0) return new Set();
  const ranges = rangesOf(jobs);
  const column = (value: (range: Range) => string | number) => plainArray(ranges.map(value));
  const rows = await on.query<{ jobs: string }>(PARCELS, [
    textArray(ranges.map(({ lane }) => lane.queue)),
    column(({ lane }) => lane.band),
    textArray(ranges.map(({ lane }) => lane.tenant)),
    textArray(ranges.map(({ lane }) => lane.task)),
    column(({ low }) => low),
    column(({ high }) => high),
  ]);
  return new Set(rows.flatMap((row) => row.jobs.split(",") as JobId[]));
}

interface Range {
  readonly lane: Lane;
  readonly low: number;
  high: number;
}

/** Where their parcels are, lane by lane: jobs whose numbers are near each other share a range. */
function rangesOf(jobs: readonly JobRow[]): readonly Range[] {
  const numbered = jobs.map((lane) => ({ lane, key: JSON.stringify([lane.queue, lane.band, lane.tenant, lane.task]), home: Number(lane.home) }));
  numbered.sort((a, b) => (a.key === b.key ? a.home - b.home : a.key < b.key ? -1 : 1));
  const ranges: Range[] = [];
  let key: string | undefined;
  for (const one of numbered) {
    const last = ranges.at(-1);
    if (last !== undefined && key === one.key && one.home - last.high <= SEQ_STEP) last.high = one.home;
    else ranges.push({ lane: one.lane, low: one.home - SEQ_STEP, high: one.home });
    key = one.key;
  }
  return ranges;
}
