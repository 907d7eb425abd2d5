import { DEFAULTS } from "../../core/defaults.js";
import { idsDueAt, jobId } from "../../core/id.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { BatchRequest } from "../port-batches.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import { type Db, hotStatement, ms, NOW } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { enqueueOne, type Ride, type StoredJobs } from "./enqueue-one.js";
import { LanesTable } from "./lanes-table.js";
import { optionsText } from "./options-text.js";
import { PARCELS, type Parcel, type ParcelSize, pack } from "./parcels.js";
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
    insert into pawl.ready (seq, id, band, spent, crashes, queue, tenant, task)
    select s.home, s.id, s.band, 0, 0, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at <= c.now
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

/** A number for each parcel, and for each job that is in none, drawn after the transaction's id. */
function numbers(count: string, clock = "clock"): string {
  return `numbers as materialized (
    select array(select nextval('pawl.ready_seq') from generate_series(1, ${count}) where c.xact is not null) as seq from ${clock} c cross join given a
  )`;
}

/** Stands in an unstamped id where its time goes. */
const UNSTAMPED = "@";

/** What is carried: columns of `parcel`. */
const INPUTS = "inputs";
const FACTS = "facts";

/** The ids and inputs of all jobs, out of which each parcel has those of its own. Ids are stamped all at once, as one text. */
function given(unstamped: string, inputs: string): string {
  return `given as materialized (
    select replace(${unstamped}::text, '${UNSTAMPED}', c.prefix)::uuid[] as ids, array(select json_array_elements(${inputs}::json)) as inputs from clock c
  )`;
}

/** What a parcel (`p`) carries of its jobs: their inputs, or those and their options (see `carrying`). */
function carried(what: string, options: string): string {
  return `case when ${what}::text = '${INPUTS}' then a.inputs[p.first : p.last] end,
      case when ${what}::text = '${FACTS}' then a.inputs[p.first : p.last] || ((${options}::text[])[p.first : p.last])::json[] end`;
}

/**
 * The same for a batch of which every job is due at once and none has a timer: most batches. Many jobs of one lane go
 * into parcels, the others become rows of `ready`. The numbers of parcels are drawn before the jobs are stored, so the
 * transaction is given its id before that.
 */
const ENQUEUE_NOW = hotStatement(
  "enqueue",
  "enqueue_now",
  `
  with ${CLOCK}, ${given("$6", "$8")}, ${numbers("cardinality($13::int[]) + cardinality(a.ids) - cardinality($10::int[])")},
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options, home)
    select c.now, c.now, g.id, ($3::int2[])[coalesce(g.lane, 1)], ($2::text[])[coalesce(g.lane, 1)], ($4::text[])[coalesce(g.lane, 1)],
      ($5::text[])[coalesce(g.lane, 1)], g.input, g.options::json, coalesce(n.seq[g.parcel] + g.place - ($11::int[])[g.parcel], n.seq[cardinality($13::int[]) + g.place - cardinality($10::int[])])
    from clock c cross join numbers n cross join given a
      cross join lateral unnest(a.ids, a.inputs, $7::int[], $9::text[], $10::int[]) with ordinality as g(id, input, lane, options, parcel, place)
  ),
  packed as (
    insert into pawl.parcel (seq, size, band, queue, tenant, task, jobs, inputs, facts)
    select n.seq[p.no], p.last - p.first + 1, ($3::int2[])[p.lane], ($2::text[])[p.lane], ($4::text[])[p.lane], ($5::text[])[p.lane],
      a.ids[p.first : p.last], ${carried("$15", "$9")}
    from numbers n cross join given a cross join unnest($11::int[], $12::int[], $13::int[]) with ordinality as p(first, last, lane, no)
  ),
  readied as (
    insert into pawl.ready (seq, id, band, spent, crashes, queue, tenant, task)
    select s.seq, s.id, ($3::int2[])[coalesce(s.lane, 1)], 0, 0, ($2::text[])[coalesce(s.lane, 1)], ($4::text[])[coalesce(s.lane, 1)], ($5::text[])[coalesce(s.lane, 1)]
    from numbers n cross join given a
      cross join lateral unnest(n.seq[cardinality($13::int[]) + 1 :], a.ids[cardinality($10::int[]) + 1 :], ($7::int[])[cardinality($10::int[]) + 1 :]) as s(seq, id, lane)
  ),
  counted as (
    insert into pawl.delta (queue, task, ready) select queue, task, sum(jobs) from unnest($2::text[], $5::text[], $14::int[]) as l(queue, task, jobs) group by queue, task
  )
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling from clock`,
);

/**
 * The same for jobs of one lane that all go into parcels, $10 to each: what callers with thousands of jobs send. Nothing is
 * looked up per job, nothing is handed on from one step to the next, and jobs are unpacked as they are stored, not before.
 * Without an instant in `clock` nothing is stored.
 */
function bulk(clock: string): string {
  return `${numbers("($9::int + $10::int - 1) / $10::int", clock)},
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options, home)
    select g.now, g.now, g.id, $3::int2, $2::text, $4::text, $5::text, g.input, g.options::json,
      g.seq[(g.place - 1) / $10::int + 1] + (g.place - 1) % $10::int
    from (
      select c.now, n.seq, unnest(a.ids) as id, unnest(a.inputs) as input, unnest($8::text[]) as options, generate_series(1, $9::int) as place
      from ${clock} c cross join numbers n cross join given a
    ) g
  ),
  packed as (
    insert into pawl.parcel (seq, size, band, queue, tenant, task, jobs, inputs, facts)
    select p.seq, cardinality(a.ids[p.first : p.last]), $3::int2, $2::text, $4::text, $5::text, a.ids[p.first : p.last], ${carried("$11", "$8")}
    from numbers n cross join given a cross join lateral (
      select u.seq, (u.no - 1) * $10::int + 1 as first, u.no * $10::int as last from unnest(n.seq) with ordinality as u(seq, no)
    ) p
  ),
  counted as (insert into pawl.delta (queue, task, ready) select $2::text, $5::text, $9::int from ${clock})
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling from ${clock}`;
}

const ENQUEUE_BULK = hotStatement("enqueue", "enqueue_bulk", `with ${CLOCK}, ${given("$6", "$7")}, ${bulk("clock")}`);

/** The same once per request id: who finds it taken stores nothing, after waiting for whoever is taking it. */
const ENQUEUE_BULK_ONCE = hotStatement(
  "enqueue",
  "enqueue_bulk_once",
  `with ${CLOCK}, ${given("$6", "$7")},
  opened as (
    insert into pawl.batch as b (tenant, id, digest, note, until, jobs)
    select $12::text, $13::text, $14::text, $15::text, c.now + $16::float8 * interval '1 millisecond', a.ids from clock c cross join given a
    on conflict (tenant, id) do update set digest = excluded.digest, note = excluded.note, until = excluded.until, jobs = excluded.jobs, fates = null, replaced = null
      where b.until <= ${NOW}
    returning 1
  ),
  begun as materialized (select c.* from clock c cross join opened),
  ${bulk("begun")}`,
);

export async function enqueuePlain(db: Db, on: Queryable, jobs: readonly NewJob[], size: ParcelSize = PARCELS, ride?: Ride): Promise<StoredJobs> {
  if (isOneNow(jobs)) return enqueueOne(db, on, jobs[0], ride);
  if (jobs.every(isPlainNow)) {
    const [at] = (await askNow(db, on, jobs, size)) as [Span];
    return { now: at.now, answers: createdAt(at, jobs) };
  }
  const [at] = (await on.query<Span>(ENQUEUE, [db.now(), ...plainFacts(jobs), ...times(jobs)])) as [Span];
  return { now: at.now, answers: jobs.map((job) => ({ kind: "created", id: jobId(clampDue(dueTime(job, at.now), at), job.tail) })) };
}

/** `undefined`: the request is known, and nothing was stored. */
export async function enqueueBulkOnce(
  db: Db,
  { tenant, id, digest, note }: BatchRequest,
  jobs: readonly NewJob[],
  size: ParcelSize,
): Promise<{ answers: readonly Enqueued[]; now: number } | undefined> {
  const [{ lane }] = jobs as readonly [NewJob];
  const request = [tenant, id, digest, note ?? null, DEFAULTS.keep.request];
  const [at] = await db.query<Span>(ENQUEUE_BULK_ONCE, [db.now(), ...bulkFacts(lane, jobs, size), ...request]);
  return at === undefined ? undefined : { now: at.now, answers: createdAt(at, jobs) };
}

/** Many jobs of one lane that are due at once. (Those of one plan share the very lane.) */
export function isBulk(jobs: readonly NewJob[], size: ParcelSize): boolean {
  return jobs.length >= size.from && jobs.every((job) => job.lane === jobs[0]?.lane && isPlainNow(job));
}

function askNow(db: Db, on: Queryable, jobs: readonly NewJob[], size: ParcelSize): Promise<readonly Span[]> {
  const [{ lane }] = jobs as readonly [NewJob];
  const alike = jobs.length >= size.from && jobs.every((job) => job.lane === lane);
  return alike
    ? on.query<Span>(ENQUEUE_BULK, [db.now(), ...bulkFacts(lane, jobs, size)])
    : on.query<Span>(ENQUEUE_NOW, [db.now(), ...packedFacts(jobs, size)]);
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

function packedFacts(given: readonly NewJob[], size: ParcelSize): readonly unknown[] {
  const table = new LanesTable();
  const numbers = given.map((job) => table.number(job.lane));
  const { jobs, lanes, parcels } = pack(given, numbers, table.size, size);
  const counts = new Array<number>(table.size).fill(0);
  for (const lane of lanes) (counts[lane - 1] as number)++;
  return [
    ...facts(table, unstamped(jobs), jobs, table.size === 1 ? [] : lanes),
    ...parcelFacts(parcels),
    plainArray(parcels.map(({ lane }) => lane)),
    plainArray(counts),
    carrying(jobs),
  ];
}

function bulkFacts({ queue, band, tenant, task }: Lane, jobs: readonly NewJob[], { most }: ParcelSize): readonly unknown[] {
  return [queue, band, tenant, task, unstamped(jobs), inputsOf(jobs), sparse(jobs, textArray, optionsText), jobs.length, most, carrying(jobs)];
}

/** Characters of an input, and of what is carried of a job on average, up to which a parcel of them is a row of a modest size. */
const SMALL = 64;
const SMALL_OPTIONS = 4 * SMALL;

/** What parcels carry of their jobs, so that who claims them need not look them up; nothing if one of them has too much. */
function carrying(jobs: readonly NewJob[]): typeof INPUTS | typeof FACTS | null {
  let size = 0;
  let plain = true;
  for (const job of jobs) {
    const options = optionsText(job)?.length ?? 0;
    if (job.input.length > SMALL || options > SMALL_OPTIONS) return null;
    size += job.input.length + options;
    plain &&= options === 0;
  }
  return plain ? INPUTS : size <= SMALL * jobs.length ? FACTS : null;
}

/** The parcel of each job, and the first and last of each parcel. */
function parcelFacts(parcels: readonly Parcel[]): readonly string[] {
  return [
    plainArray(parcels.flatMap(({ first, last }, index) => new Array<number>(last - first + 1).fill(index + 1))),
    plainArray(parcels.map(({ first }) => first)),
    plainArray(parcels.map(({ last }) => last)),
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
