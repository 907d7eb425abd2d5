import { jobId } from "../../core/id.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { LanesTable } from "./lanes-table.js";
import { clampDue, type Span } from "./span.js";

/**
 * Stores a batch of jobs that can meet no conflict (no key, request id or dependency) in one statement.
 *
 * The server stamps the ids with its own clock: due time, clamped to the partitions that exist, then the caller's
 * tail. It answers with one row, the clock and the clamp, out of which the same ids are computed here: a thousand
 * jobs need no thousand rows back.
 *
 * ready.seq is drawn after the insert into job, which assigns the transaction's id: `SafePoint` relies on that order.
 */
const ENQUEUE = statement(
  "enqueue",
  `
  with clock as materialized (
    select at.now, floor_ms, ceiling_ms,
      lpad(to_hex(floor(greatest(floor_ms, least(${ms("at.now")}, ceiling_ms - 1)))::bigint), 12, '0') as prefix
    from pawl.span, (select ${NOW} as now) at limit 1
  ),
  given as materialized (
    select ($2::text[])[g.lane] as queue, ($3::int2[])[g.lane] as band, ($4::text[])[g.lane] as tenant, ($5::text[])[g.lane] as task, g.tail, g.input, g.options, g.expire, g.deadline, g.ord,
      g.delay is null and g.run_at is null as immediate,
      greatest(c.now, coalesce(to_timestamp(g.run_at / 1000), c.now + g.delay * interval '1 millisecond')) as due_at
    from unnest($6::text[], $7::int[], $8::text[], $9::text[], $10::float8[], $11::float8[], $12::float8[], $13::float8[])
      with ordinality as g(tail, lane, input, options, delay, run_at, expire, deadline, ord)
    cross join clock c
  ),
  stamped as materialized (
    select g.*, ((case when g.immediate then c.prefix
      else lpad(to_hex(floor(greatest(c.floor_ms, least(${ms("g.due_at")}, c.ceiling_ms - 1)))::bigint), 12, '0') end) || g.tail)::uuid as id
    from given g cross join clock c
  ),
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options)
    select c.now, s.due_at, s.id, s.band, s.queue, s.tenant, s.task, s.input::json, s.options::json from stamped s cross join clock c order by s.ord
    returning id, due_at, band, queue, tenant, task
  ),
  readied as (
    insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
    select s.id, s.band, 0, 0, s.queue, s.tenant, s.task from stored s cross join clock c where s.due_at <= c.now
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

export async function enqueuePlain(db: Db, on: Queryable, jobs: readonly NewJob[]): Promise<{ answers: readonly Enqueued[]; now: number }> {
  const [span] = await on.query<{ now: number; floor: number; ceiling: number }>(ENQUEUE, [db.now(), ...parameters(jobs)]);
  const at = span as Span;
  return { now: at.now, answers: jobs.map((job) => ({ kind: "created", id: jobId(clampDue(dueTime(job, at.now), at), job.tail) })) };
}

export function dueTime(job: NewJob, now: number): number {
  return Math.max(now, job.runAt ?? now + (job.delay ?? 0));
}

export function optionsText(job: NewJob): string | undefined {
  return job.options === undefined ? undefined : encodeOptions(job.options);
}

/** Options objects are shared by the jobs of a call: encode each once. */
const encoded = new WeakMap<object, string>();
function encodeOptions(options: object): string {
  let text = encoded.get(options);
  if (text === undefined) {
    text = JSON.stringify(options);
    encoded.set(options, text);
  }
  return text;
}

function parameters(jobs: readonly NewJob[]): string[] {
  const lanes = new LanesTable();
  const numbers = jobs.map((job) => lanes.number(job.lane));
  return [
    ...lanes.parameters(),
    plainArray(jobs.map((job) => job.tail)),
    plainArray(numbers),
    textArray(jobs.map((job) => job.input)),
    sparse(jobs, textArray, optionsText),
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
