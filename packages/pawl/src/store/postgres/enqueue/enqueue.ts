import { idsDueAt, jobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { ALL_NULL, plainArray, textArray } from "../connection/arrays.js";
import { type Db, hotStatement, ms, NOW } from "../connection/db.js";
import { LaneNumbers } from "../connection/lane-numbers.js";
import type { Queryable } from "../drivers/driver.js";
import { clampDue, type PartitionRange } from "../schema/partition-range.js";
import { enqueueOne, type InlineNotify, type StoredJobs } from "./enqueue-one.js";
import { fitsReadyRow, optionsText } from "./job-options.js";
import { groupIntoRows, JOBS_PER_ROW, type RowRange, SEPARATOR } from "./ready-rows.js";

/**
 * Stores a batch of jobs that can meet no conflict (no key, idempotency key or dependency) in one statement.
 *
 * The server makes the ids by its own clock: due time, clamped to the partitions that exist, then the caller's
 * id suffix. It answers with one row, the clock and the clamp, out of which the same ids are computed here: a thousand
 * jobs need no thousand rows back.
 *
 * Inputs are sent as one JSON array: joined here and taken apart there without being escaped.
 *
 * The number of a job, by which it stands in its lane, is drawn after the transaction's id: `SafeSequence` relies on that order.
 */
const ENQUEUE = hotStatement(
  "enqueue",
  "enqueue",
  `
  with clock as materialized (
    select at.now, floor_ms, ceiling_ms, pg_current_xact_id() as xact,
      lpad(to_hex(floor(greatest(floor_ms, least(${ms("at.now")}, ceiling_ms - 1)))::bigint), 12, '0') as prefix
    from pawl.partition_range, (select ${NOW} as now) at limit 1
  ),
  items as materialized (
    select ($2::text[])[g.lane] as queue, ($3::int2[])[g.lane] as priority, ($4::text[])[g.lane] as tenant, ($5::text[])[g.lane] as task, g.id_suffix, g.input, g.options, g.expire, g.deadline, g.ord,
      g.delay is null and g.run_at is null as immediate,
      greatest(c.now, coalesce(to_timestamp(g.run_at / 1000), c.now + g.delay * interval '1 millisecond')) as due_at
    from rows from (json_array_elements($8::json), unnest($6::text[], $7::int[], $9::text[], $10::float8[], $11::float8[], $12::float8[], $13::float8[]))
      with ordinality as g(input, id_suffix, lane, options, delay, run_at, expire, deadline, ord)
    cross join clock c
  ),
  with_id as materialized (
    select g.*, ((case when g.immediate then c.prefix
      else lpad(to_hex(floor(greatest(c.floor_ms, least(${ms("g.due_at")}, c.ceiling_ms - 1)))::bigint), 12, '0') end) || g.id_suffix)::uuid as id
    from items g cross join clock c
  ),
  stored as (
    insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
    select c.now, s.due_at, s.id, s.priority, s.queue, s.tenant, s.task, s.input, s.options::json, nextval('pawl.ready_seq')
    from with_id s cross join clock c where c.xact is not null order by s.ord
    returning home, id, due_at, priority, queue, tenant, task
  ),
  readied as (
    insert into pawl.ready (seq, id, priority, queue, tenant, task)
    select s.home, s.id, s.priority, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at <= c.now
  ),
  calendared as (
    insert into pawl.scheduled (run_at, id, priority, attempts, crashes, queue, tenant, task)
    select s.due_at, s.id, s.priority, 0, 0, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at > c.now
  ),
  timed as (
    insert into pawl.timer (at, job, kind)
    select s.due_at + t.after * interval '1 millisecond', s.id, t.kind
    from with_id s cross join lateral (values ('expire', s.expire), ('deadline', s.deadline)) as t(kind, after) where t.after is not null
  ),
  counted as (
    insert into pawl.counter_delta (queue, task, ready, scheduled)
    select g.queue, g.task, count(*) filter (where g.due_at <= c.now), count(*) filter (where g.due_at > c.now)
    from items g cross join clock c group by g.queue, g.task
  )
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling from clock`,
);

/** The instant, with the prefix of ids due at it. It takes the transaction's id. */
const CLOCK = `clock as materialized (
    select at.now, floor_ms, ceiling_ms, pg_current_xact_id() as xact,
      lpad(to_hex(floor(greatest(floor_ms, least(${ms("at.now")}, ceiling_ms - 1)))::bigint), 12, '0') as prefix
    from pawl.partition_range, (select ${NOW} as now) at limit 1
  )`;

/** A number for each ready row, drawn after the transaction's id. */
function seqNumbers(count: string): string {
  return `numbers as materialized (
    select array(select nextval('pawl.ready_seq') from generate_series(1, ${count}) where c.xact is not null) as seq from clock c cross join items a
  )`;
}

/** Stands in the template of an id where its time goes. */
const TIME_PLACEHOLDER = "@";

/** The ids and inputs of all jobs, out of which each row has those of its own. The time is put into all ids at once, as one text. */
function itemsCte(idTemplates: string, inputs: string): string {
  return `items as materialized (
    select replace(${idTemplates}::text, '${TIME_PLACEHOLDER}', c.prefix)::uuid[] as ids, array(select json_array_elements(${inputs}::json)) as inputs from clock c
  )`;
}

/** What a row of several jobs (`p`) carries of them, if it does: their inputs, and their options if any of the batch has some. */
function inputsAndOptions(whether: string, options: string): string {
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
  with ${CLOCK}, ${itemsCte("$6", "$8")}, ${seqNumbers("cardinality($13::int[]) + cardinality(a.ids) - cardinality($10::int[])")},
  stored as (
    insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
    select c.now, c.now, g.id, ($3::int2[])[coalesce(g.lane, 1)], ($2::text[])[coalesce(g.lane, 1)], ($4::text[])[coalesce(g.lane, 1)],
      ($5::text[])[coalesce(g.lane, 1)], g.input, g.options::json, coalesce(n.seq[g.row] + g.index - ($11::int[])[g.row], n.seq[cardinality($13::int[]) + g.index - cardinality($10::int[])])
    from clock c cross join numbers n cross join items a
      cross join lateral unnest(a.ids, a.inputs, $7::int[], $9::text[], $10::int[]) with ordinality as g(id, input, lane, options, row, index)
  ),
  readied as (
    insert into pawl.ready (seq, size, priority, queue, tenant, task, id, jobs, inputs, options)
    select n.seq[p.no], p.last - p.first + 1, ($3::int2[])[p.lane], ($2::text[])[p.lane], ($4::text[])[p.lane], ($5::text[])[p.lane],
      null::uuid, a.ids[p.first : p.last], ${inputsAndOptions("$15", "$9")}
    from numbers n cross join items a cross join unnest($11::int[], $12::int[], $13::int[]) with ordinality as p(first, last, lane, no)
    union all
    select s.seq, 1, ($3::int2[])[coalesce(s.lane, 1)], ($2::text[])[coalesce(s.lane, 1)], ($4::text[])[coalesce(s.lane, 1)], ($5::text[])[coalesce(s.lane, 1)],
      s.id, null, case when $15::bool then s.input::text end, case when $15::bool then s.options end
    from numbers n cross join items a cross join lateral unnest(
      n.seq[cardinality($13::int[]) + 1 :], a.ids[cardinality($10::int[]) + 1 :], a.inputs[cardinality($10::int[]) + 1 :],
      ($7::int[])[cardinality($10::int[]) + 1 :], ($9::text[])[cardinality($10::int[]) + 1 :]
    ) as s(seq, id, input, lane, options)
  ),
  counted as (
    insert into pawl.counter_delta (queue, task, ready) select queue, task, sum(jobs) from unnest($2::text[], $5::text[], $14::int[]) as l(queue, task, jobs) group by queue, task
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
  with ${CLOCK}, ${itemsCte("$6", "$7")}, ${seqNumbers("($9::int + $10::int - 1) / $10::int")},
  stored as (
    insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
    select g.now, g.now, g.id, $3::int2, $2::text, $4::text, $5::text, g.input, g.options::json,
      g.seq[(g.index - 1) / $10::int + 1] + (g.index - 1) % $10::int
    from (
      select c.now, n.seq, unnest(a.ids) as id, unnest(a.inputs) as input, unnest($8::text[]) as options, generate_series(1, $9::int) as index
      from clock c cross join numbers n cross join items a
    ) g
  ),
  readied as (
    insert into pawl.ready (seq, size, priority, queue, tenant, task, id, jobs, inputs, options)
    select p.seq, p.last - p.first + 1, $3::int2, $2::text, $4::text, $5::text,
      case when p.last = p.first then a.ids[p.first] end, case when p.last > p.first then a.ids[p.first : p.last] end, ${inputsAndOptions("$11", "$8")}
    from numbers n cross join items a cross join lateral (
      select u.seq, (u.no - 1) * $10::int + 1 as first, least(u.no * $10::int, $9::int) as last from unnest(n.seq) with ordinality as u(seq, no)
    ) p
  ),
  counted as (insert into pawl.counter_delta (queue, task, ready) values ($2::text, $5::text, $9::int))
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling from clock`,
);

export async function enqueuePlain(
  db: Db,
  on: Queryable,
  jobs: readonly NewJob[],
  maxPerRow = JOBS_PER_ROW,
  inlineNotify?: InlineNotify,
): Promise<StoredJobs> {
  if (isOneNow(jobs)) return enqueueOne(db, on, jobs[0], inlineNotify);
  if (jobs.every(isPlainNow)) {
    const [at] = (await storeNow(db, on, jobs, maxPerRow)) as [PartitionRange];
    return { now: at.now, answers: createdAt(at, jobs) };
  }
  const [at] = (await on.query<PartitionRange>(ENQUEUE, [db.now(), ...plainColumns(jobs), ...times(jobs)])) as [PartitionRange];
  return { now: at.now, answers: jobs.map((job) => ({ kind: "created", id: jobId(clampDue(dueTime(job, at.now), at), job.idSuffix) })) };
}

function storeNow(db: Db, on: Queryable, jobs: readonly NewJob[], maxPerRow: number): Promise<readonly PartitionRange[]> {
  const [{ lane }] = jobs as readonly [NewJob];
  return jobs.length > 1 && jobs.every((job) => job.lane === lane)
    ? on.query<PartitionRange>(ENQUEUE_BULK, [db.now(), ...bulkColumns(lane, jobs, maxPerRow)])
    : on.query<PartitionRange>(ENQUEUE_NOW, [db.now(), ...columnsInRows(jobs, maxPerRow)]);
}

function createdAt(at: PartitionRange, jobs: readonly NewJob[]): readonly Enqueued[] {
  const idOf = idsDueAt(clampDue(at.now, at));
  return jobs.map(({ idSuffix }) => ({ kind: "created", id: idOf(idSuffix) }));
}

export function dueTime(job: NewJob, now: number): number {
  return Math.max(now, job.runAt ?? now + (job.delay ?? 0));
}

/** One job that is due at once and has no timer. */
export function isOneNow(jobs: readonly NewJob[]): jobs is readonly [NewJob] {
  return jobs.length === 1 && isPlainNow(jobs[0] as NewJob);
}

function isPlainNow(job: NewJob): boolean {
  return job.delay === undefined && job.runAt === undefined && job.options?.startWithin === undefined && job.options?.finishWithin === undefined;
}

/** What both statements are sent; `numbers` of the lanes may be left out where there is only one. */
function columnsOf(lanes: LaneNumbers, ids: string, jobs: readonly NewJob[], numbers: readonly number[]): readonly string[] {
  return [...lanes.parameters(), ids, plainArray(numbers), inputsOf(jobs), sparse(jobs, textArray, optionsText)];
}

function plainColumns(jobs: readonly NewJob[]): readonly string[] {
  const lanes = new LaneNumbers();
  const numbers = jobs.map((job) => lanes.number(job.lane));
  return columnsOf(lanes, plainArray(jobs.map((job) => job.idSuffix)), jobs, numbers);
}

function columnsInRows(items: readonly NewJob[], maxPerRow: number): readonly unknown[] {
  const table = new LaneNumbers();
  const numbers = items.map((job) => table.number(job.lane));
  const { jobs, lanes, rows } = groupIntoRows(items, numbers, table.size, maxPerRow);
  const counts = new Array<number>(table.size).fill(0);
  for (const lane of lanes) (counts[lane - 1] as number)++;
  return [
    ...columnsOf(table, idTemplates(jobs), jobs, table.size === 1 ? [] : lanes),
    ...rowColumns(rows),
    plainArray(rows.map(({ lane }) => lane)),
    plainArray(counts),
    fitsReadyRow(jobs),
  ];
}

function bulkColumns({ queue, priority, tenant, task }: Lane, jobs: readonly NewJob[], maxPerRow: number): readonly unknown[] {
  return [
    queue,
    priority,
    tenant,
    task,
    idTemplates(jobs),
    inputsOf(jobs),
    sparse(jobs, textArray, optionsText),
    jobs.length,
    maxPerRow,
    fitsReadyRow(jobs),
  ];
}

/** Of jobs in rows of several: which row each is in; and the first and last of each row. */
function rowColumns(rows: readonly RowRange[]): readonly string[] {
  return [
    plainArray(rows.flatMap(({ first, last }, index) => new Array<number>(last - first + 1).fill(index + 1))),
    plainArray(rows.map(({ first }) => first)),
    plainArray(rows.map(({ last }) => last)),
  ];
}

function idTemplates(jobs: readonly NewJob[]): string {
  return `{${TIME_PLACEHOLDER}${jobs.map((job) => job.idSuffix).join(`,${TIME_PLACEHOLDER}`)}}`;
}

/** Inputs are texts of JSON already. */
function inputsOf(jobs: readonly NewJob[]): string {
  return `[${jobs.map((job) => job.input).join(",")}]`;
}

function times(jobs: readonly NewJob[]): readonly string[] {
  return [
    sparse(jobs, plainArray, (job) => job.delay),
    sparse(jobs, plainArray, (job) => job.runAt),
    sparse(jobs, plainArray, (job) => job.options?.startWithin),
    sparse(jobs, plainArray, (job) => job.options?.finishWithin),
  ];
}

/** A column that is empty for most batches costs nothing when it is. */
function sparse<T>(jobs: readonly NewJob[], array: (values: readonly (T | undefined)[]) => string, value: (job: NewJob) => T | undefined): string {
  return jobs.some((job) => value(job) !== undefined) ? array(jobs.map(value)) : ALL_NULL;
}
