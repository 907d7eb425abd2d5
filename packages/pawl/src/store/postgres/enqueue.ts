import { idsDueAt, jobId } from "../../core/id.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import { type Db, hotStatement, ms, NOW } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { enqueueOne, type Ride, type StoredJobs } from "./enqueue-one.js";
import { LanesTable } from "./lanes-table.js";
import { carrying, optionsText } from "./options-text.js";
import { inRows, JOBS_PER_ROW, type RowOfMany, SEPARATOR } from "./ready-rows.js";
import { clampDue, type Span } from "./span.js";

/**
 * Stores a batch of jobs that can meet no conflict (no key, request id or dependency) in one statement.
 *
 * The server stamps the ids with its own clock: due time, clamped to the partitions that exist, then the caller's
 * tail. It answers with one row, the clock and the clamp, out of which the same ids are computed here: a thousand
 * jobs need no thousand rows back.
 *
 * Inputs are sent as one JSON array: joined here and taken apart there without being escaped.
 *
 * The number of a job, by which it stands in its lane, is drawn after the transaction's id: `SafePoint` relies on that order.
 */
const ENQUEUE = hotStatement(
  "enqueue",
  "enqueue",
  `
  with clock as materialized (
    select at.now, floor_ms, ceiling_ms, pg_current_xact_id() as xact,
      lpad(to_hex(floor(greatest(floor_ms, least(${ms("at.now")}, ceiling_ms - 1)))::bigint), 12, '0') as prefix
    from pawl.span, (select ${NOW} as now) at limit 1
  ),
  given as materialized (
    select ($2::text[])[g.lane] as queue, ($3::int2[])[g.lane] as band, ($4::text[])[g.lane] as tenant, ($5::text[])[g.lane] as task, g.tail, g.input, g.options, g.expire, g.deadline, g.ord,
      g.delay is null and g.run_at is null as immediate,
      greatest(c.now, coalesce(to_timestamp(g.run_at / 1000), c.now + g.delay * interval '1 millisecond')) as due_at
    from rows from (json_array_elements($8::json), unnest($6::text[], $7::int[], $9::text[], $10::float8[], $11::float8[], $12::float8[], $13::float8[]))
      with ordinality as g(input, tail, lane, options, delay, run_at, expire, deadline, ord)
    cross join clock c
  ),
  stamped as materialized (
    select g.*, ((case when g.immediate then c.prefix
      else lpad(to_hex(floor(greatest(c.floor_ms, least(${ms("g.due_at")}, c.ceiling_ms - 1)))::bigint), 12, '0') end) || g.tail)::uuid as id
    from given g cross join clock c
  ),
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options, home)
    select c.now, s.due_at, s.id, s.band, s.queue, s.tenant, s.task, s.input, s.options::json, nextval('pawl.ready_seq')
    from stamped s cross join clock c where c.xact is not null order by s.ord
    returning home, id, due_at, band, queue, tenant, task
  ),
  readied as (
    insert into pawl.ready (seq, id, band, queue, tenant, task)
    select s.home, s.id, s.band, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at <= c.now
  ),
  calendared as (
    insert into pawl.scheduled (run_at, id, band, spent, crashes, queue, tenant, task)
    select s.due_at, s.id, s.band, 0, 0, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at > c.now
  ),
  timed as (
    insert into pawl.timer (at, job, kind)
    select s.due_at + t.after * interval '1 millisecond', s.id, t.kind
    from stamped s cross join lateral (values ('expire', s.expire), ('deadline', s.deadline)) as t(kind, after) where t.after is not null
  ),
  counted as (
    insert into pawl.delta (queue, task, ready, scheduled)
    select g.queue, g.task, count(*) filter (where g.due_at <= c.now), count(*) filter (where g.due_at > c.now)
    from given g cross join clock c group by g.queue, g.task
  )
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling from clock`,
);

/** The instant, with the prefix of ids due at it. It takes the transaction's id. */
const CLOCK = `clock as materialized (
    select at.now, floor_ms, ceiling_ms, pg_current_xact_id() as xact,
      lpad(to_hex(floor(greatest(floor_ms, least(${ms("at.now")}, ceiling_ms - 1)))::bigint), 12, '0') as prefix
    from pawl.span, (select ${NOW} as now) at limit 1
  )`;

/** A number for each ready row, drawn after the transaction's id. */
function numbers(count: string): string {
  return `numbers as materialized (
    select array(select nextval('pawl.ready_seq') from generate_series(1, ${count}) where c.xact is not null) as seq from clock c cross join given a
  )`;
}

/** Stands in an unstamped id where its time goes. */
const UNSTAMPED = "@";

/** The ids and inputs of all jobs, out of which each row has those of its own. Ids are stamped all at once, as one text. */
function given(unstamped: string, inputs: string): string {
  return `given as materialized (
    select replace(${unstamped}::text, '${UNSTAMPED}', c.prefix)::uuid[] as ids, array(select json_array_elements(${inputs}::json)) as inputs from clock c
  )`;
}

/** What a row of several jobs (`p`) carries of them, if it does: their inputs, and their options if any of the batch has some. */
function carried(whether: string, options: string): string {
  return `case when ${whether}::bool then array_to_string(a.inputs[p.first : p.last], E'${SEPARATOR}') end,
      case when ${whether}::bool and cardinality(${options}::text[]) > 0 then array_to_string((${options}::text[])[p.first : p.last], E'${SEPARATOR}', '') end`;
}

/**
 * The same for a batch of which every job is due at once and none has a timer: most batches. The numbers of the ready rows are drawn
 * before the jobs are stored, so the transaction is given its id before that. Rows of several jobs come first ($11 to $13: first and
 * last job, and lane of each; $10: of each of their jobs, which row it is in), then those of one job.
 */
const ENQUEUE_NOW = hotStatement(
  "enqueue",
  "enqueue_now",
  `
  with ${CLOCK}, ${given("$6", "$8")}, ${numbers("cardinality($13::int[]) + cardinality(a.ids) - cardinality($10::int[])")},
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options, home)
    select c.now, c.now, g.id, ($3::int2[])[coalesce(g.lane, 1)], ($2::text[])[coalesce(g.lane, 1)], ($4::text[])[coalesce(g.lane, 1)],
      ($5::text[])[coalesce(g.lane, 1)], g.input, g.options::json, coalesce(n.seq[g.row] + g.place - ($11::int[])[g.row], n.seq[cardinality($13::int[]) + g.place - cardinality($10::int[])])
    from clock c cross join numbers n cross join given a
      cross join lateral unnest(a.ids, a.inputs, $7::int[], $9::text[], $10::int[]) with ordinality as g(id, input, lane, options, row, place)
  ),
  readied as (
    insert into pawl.ready (seq, size, band, queue, tenant, task, id, jobs, inputs, options)
    select n.seq[p.no], p.last - p.first + 1, ($3::int2[])[p.lane], ($2::text[])[p.lane], ($4::text[])[p.lane], ($5::text[])[p.lane],
      null::uuid, a.ids[p.first : p.last], ${carried("$15", "$9")}
    from numbers n cross join given a cross join unnest($11::int[], $12::int[], $13::int[]) with ordinality as p(first, last, lane, no)
    union all
    select s.seq, 1, ($3::int2[])[coalesce(s.lane, 1)], ($2::text[])[coalesce(s.lane, 1)], ($4::text[])[coalesce(s.lane, 1)], ($5::text[])[coalesce(s.lane, 1)],
      s.id, null, case when $15::bool then s.input::text end, case when $15::bool then s.options end
    from numbers n cross join given a cross join lateral unnest(
      n.seq[cardinality($13::int[]) + 1 :], a.ids[cardinality($10::int[]) + 1 :], a.inputs[cardinality($10::int[]) + 1 :],
      ($7::int[])[cardinality($10::int[]) + 1 :], ($9::text[])[cardinality($10::int[]) + 1 :]
    ) as s(seq, id, input, lane, options)
  ),
  counted as (
    insert into pawl.delta (queue, task, ready) select queue, task, sum(jobs) from unnest($2::text[], $5::text[], $14::int[]) as l(queue, task, jobs) group by queue, task
  )
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling from clock`,
);

/**
 * The same for jobs of one lane, $10 to each row: what callers with thousands of jobs send. Nothing is looked up per job, nothing is
 * handed on from one step to the next, and jobs are unpacked as they are stored, not before.
 */
const ENQUEUE_BULK = hotStatement(
  "enqueue",
  "enqueue_bulk",
  `
  with ${CLOCK}, ${given("$6", "$7")}, ${numbers("($9::int + $10::int - 1) / $10::int")},
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options, home)
    select g.now, g.now, g.id, $3::int2, $2::text, $4::text, $5::text, g.input, g.options::json,
      g.seq[(g.place - 1) / $10::int + 1] + (g.place - 1) % $10::int
    from (
      select c.now, n.seq, unnest(a.ids) as id, unnest(a.inputs) as input, unnest($8::text[]) as options, generate_series(1, $9::int) as place
      from clock c cross join numbers n cross join given a
    ) g
  ),
  readied as (
    insert into pawl.ready (seq, size, band, queue, tenant, task, id, jobs, inputs, options)
    select p.seq, p.last - p.first + 1, $3::int2, $2::text, $4::text, $5::text,
      case when p.last = p.first then a.ids[p.first] end, case when p.last > p.first then a.ids[p.first : p.last] end, ${carried("$11", "$8")}
    from numbers n cross join given a cross join lateral (
      select u.seq, (u.no - 1) * $10::int + 1 as first, least(u.no * $10::int, $9::int) as last from unnest(n.seq) with ordinality as u(seq, no)
    ) p
  ),
  counted as (insert into pawl.delta (queue, task, ready) values ($2::text, $5::text, $9::int))
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling from clock`,
);

export async function enqueuePlain(db: Db, on: Queryable, jobs: readonly NewJob[], most = JOBS_PER_ROW, ride?: Ride): Promise<StoredJobs> {
  if (isOneNow(jobs)) return enqueueOne(db, on, jobs[0], ride);
  if (jobs.every(isPlainNow)) {
    const [at] = (await askNow(db, on, jobs, most)) as [Span];
    return { now: at.now, answers: createdAt(at, jobs) };
  }
  const [at] = (await on.query<Span>(ENQUEUE, [db.now(), ...plainFacts(jobs), ...times(jobs)])) as [Span];
  return { now: at.now, answers: jobs.map((job) => ({ kind: "created", id: jobId(clampDue(dueTime(job, at.now), at), job.tail) })) };
}

function askNow(db: Db, on: Queryable, jobs: readonly NewJob[], most: number): Promise<readonly Span[]> {
  const [{ lane }] = jobs as readonly [NewJob];
  return jobs.length > 1 && jobs.every((job) => job.lane === lane)
    ? on.query<Span>(ENQUEUE_BULK, [db.now(), ...bulkFacts(lane, jobs, most)])
    : on.query<Span>(ENQUEUE_NOW, [db.now(), ...factsInRows(jobs, most)]);
}

function createdAt(at: Span, jobs: readonly NewJob[]): readonly Enqueued[] {
  const idOf = idsDueAt(clampDue(at.now, at));
  return jobs.map(({ tail }) => ({ kind: "created", id: idOf(tail) }));
}

export function dueTime(job: NewJob, now: number): number {
  return Math.max(now, job.runAt ?? now + (job.delay ?? 0));
}

/** One job that is due at once and has no timer. */
export function isOneNow(jobs: readonly NewJob[]): jobs is readonly [NewJob] {
  return jobs.length === 1 && isPlainNow(jobs[0] as NewJob);
}

function isPlainNow(job: NewJob): boolean {
  return job.delay === undefined && job.runAt === undefined && job.options?.expire === undefined && job.options?.deadline === undefined;
}

/** What both statements are sent; `numbers` of the lanes may be left out where there is only one. */
function facts(lanes: LanesTable, ids: string, jobs: readonly NewJob[], numbers: readonly number[]): readonly string[] {
  return [...lanes.parameters(), ids, plainArray(numbers), inputsOf(jobs), sparse(jobs, textArray, optionsText)];
}

function plainFacts(jobs: readonly NewJob[]): readonly string[] {
  const lanes = new LanesTable();
  const numbers = jobs.map((job) => lanes.number(job.lane));
  return facts(lanes, plainArray(jobs.map((job) => job.tail)), jobs, numbers);
}

function factsInRows(given: readonly NewJob[], most: number): readonly unknown[] {
  const table = new LanesTable();
  const numbers = given.map((job) => table.number(job.lane));
  const { jobs, lanes, rows } = inRows(given, numbers, table.size, most);
  const counts = new Array<number>(table.size).fill(0);
  for (const lane of lanes) (counts[lane - 1] as number)++;
  return [
    ...facts(table, unstamped(jobs), jobs, table.size === 1 ? [] : lanes),
    ...rowFacts(rows),
    plainArray(rows.map(({ lane }) => lane)),
    plainArray(counts),
    carrying(jobs),
  ];
}

function bulkFacts({ queue, band, tenant, task }: Lane, jobs: readonly NewJob[], most: number): readonly unknown[] {
  return [queue, band, tenant, task, unstamped(jobs), inputsOf(jobs), sparse(jobs, textArray, optionsText), jobs.length, most, carrying(jobs)];
}

/** Of jobs in rows of several: which row each is in; and the first and last of each row. */
function rowFacts(rows: readonly RowOfMany[]): readonly string[] {
  return [
    plainArray(rows.flatMap(({ first, last }, index) => new Array<number>(last - first + 1).fill(index + 1))),
    plainArray(rows.map(({ first }) => first)),
    plainArray(rows.map(({ last }) => last)),
  ];
}

function unstamped(jobs: readonly NewJob[]): string {
  return `{${UNSTAMPED}${jobs.map((job) => job.tail).join(`,${UNSTAMPED}`)}}`;
}

/** Inputs are texts of JSON already. */
function inputsOf(jobs: readonly NewJob[]): string {
  return `[${jobs.map((job) => job.input).join(",")}]`;
}

function times(jobs: readonly NewJob[]): readonly string[] {
  return [
    sparse(jobs, plainArray, (job) => job.delay),
    sparse(jobs, plainArray, (job) => job.runAt),
    sparse(jobs, plainArray, (job) => job.options?.expire),
    sparse(jobs, plainArray, (job) => job.options?.deadline),
  ];
}

/** A column that is empty for most batches costs nothing when it is. */
function sparse<T>(jobs: readonly NewJob[], array: (values: readonly (T | undefined)[]) => string, value: (job: NewJob) => T | undefined): string {
  return jobs.some((job) => value(job) !== undefined) ? array(jobs.map(value)) : ALL_NULL;
}
