import { idsDueAt, jobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { Db } from "../connection/db.js";
import { LaneNumbers } from "../connection/lane-numbers.js";
import { TIME_PLACEHOLDER } from "../connection/sql-constants.js";
import { sqlFile } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import { clampDue, type PartitionRange } from "../schema/partition-range.js";
import { enqueueOne, type InlineNotify, type StoredJobs } from "./enqueue-one.js";
import { fitsReadyRow, optionsText } from "./job-options.js";
import { groupIntoRows, JOBS_PER_ROW, type RowRange } from "./ready-rows.js";

const ENQUEUE = sqlFile("enqueue/enqueue.sql", { hot: "enqueue" });
const ENQUEUE_NOW = sqlFile("enqueue/enqueue-now.sql", { hot: "enqueue" });
const ENQUEUE_BULK = sqlFile("enqueue/enqueue-bulk.sql", { hot: "enqueue" });

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
  const [at] = (await storeAtTimes(db, on, jobs)) as [PartitionRange];
  return { now: at.now, answers: jobs.map((job) => ({ kind: "created", id: jobId(clampDue(dueTime(job, at.now), at), job.idSuffix) })) };
}

function storeAtTimes(db: Db, on: Queryable, jobs: readonly NewJob[]): Promise<readonly PartitionRange[]> {
  const lanes = new LaneNumbers();
  const numbers = jobs.map((job) => lanes.number(job.lane));
  return ENQUEUE.query<PartitionRange>(on, {
    now: db.now(),
    lane: lanes.columns(),
    inputs: inputsOf(jobs),
    job: {
      idSuffix: jobs.map((job) => job.idSuffix),
      lane: numbers,
      options: jobs.map(optionsText),
      delay: jobs.map((job) => job.delay),
      runAt: jobs.map((job) => job.runAt),
      expire: jobs.map((job) => job.options?.startWithin),
      deadline: jobs.map((job) => job.options?.finishWithin),
    },
  });
}

function storeNow(db: Db, on: Queryable, jobs: readonly NewJob[], maxPerRow: number): Promise<readonly PartitionRange[]> {
  const [{ lane }] = jobs as readonly [NewJob];
  return jobs.length > 1 && jobs.every((job) => job.lane === lane)
    ? storeInBulk(db, on, lane, jobs, maxPerRow)
    : storeInRows(db, on, jobs, maxPerRow);
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

function storeInRows(db: Db, on: Queryable, batch: readonly NewJob[], maxPerRow: number): Promise<readonly PartitionRange[]> {
  const table = new LaneNumbers();
  const numbers = batch.map((job) => table.number(job.lane));
  const { jobs, lanes, rows } = groupIntoRows(batch, numbers, table.size, maxPerRow);
  const counts = new Array<number>(table.size).fill(0);
  for (const lane of lanes) (counts[lane - 1] as number)++;
  return ENQUEUE_NOW.query<PartitionRange>(on, {
    now: db.now(),
    lane: { ...table.columns(), jobs: counts },
    idTemplates: idTemplates(jobs),
    inputs: inputsOf(jobs),
    // Where there is one lane only, its number is left out.
    job: { lane: table.size === 1 ? [] : lanes, options: jobs.map(optionsText), row: rowNumbers(rows) },
    row: { first: rows.map(({ first }) => first), last: rows.map(({ last }) => last), lane: rows.map(({ lane }) => lane) },
    carries: fitsReadyRow(jobs),
  });
}

function storeInBulk(
  db: Db,
  on: Queryable,
  { queue, priority, tenant, task }: Lane,
  jobs: readonly NewJob[],
  perRow: number,
): Promise<readonly PartitionRange[]> {
  return ENQUEUE_BULK.query<PartitionRange>(on, {
    now: db.now(),
    queue,
    priority,
    tenant,
    task,
    idTemplates: idTemplates(jobs),
    inputs: inputsOf(jobs),
    options: jobs.map(optionsText),
    count: jobs.length,
    perRow,
    carries: fitsReadyRow(jobs),
  });
}

/** Of jobs in rows of several: which row each is in. */
function rowNumbers(rows: readonly RowRange[]): readonly number[] {
  return rows.flatMap(({ first, last }, index) => new Array<number>(last - first + 1).fill(index + 1));
}

function idTemplates(jobs: readonly NewJob[]): string {
  return `{${TIME_PLACEHOLDER}${jobs.map((job) => job.idSuffix).join(`,${TIME_PLACEHOLDER}`)}}`;
}

/** Inputs are texts of JSON already. */
function inputsOf(jobs: readonly NewJob[]): string {
  return `[${jobs.map((job) => job.input).join(",")}]`;
}
