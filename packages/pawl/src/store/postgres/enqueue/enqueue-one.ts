import type { JobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import { isPawlError } from "../../../core/values/error.js";
import { type Db, hotStatement, ms, NOW } from "../connection/db.js";
import { DriverError } from "../connection/errors.js";
import type { Queryable } from "../drivers/driver.js";
import { NOTIFY_IDLE_WORKER, TAKE_IDLE_WORKER } from "../handoff/handoff-statements.js";
import { fitsReadyRow, optionsText } from "./job-options.js";

/** A wakeup that goes out with the commit of the enqueue, instead of after it. Never in a transaction of somebody else's. */
export interface InlineNotify {
  readonly channel: string;
  readonly payload: string;
}

/**
 * Stores one job that is due at once, has no timer and can meet no conflict: what `enqueue_now` does, without the arrays,
 * whose set-up costs more than one job does. $9: its ready row carries its input and options.
 */
const ENQUEUE_ONE = hotStatement(
  "enqueue",
  "enqueue_one",
  `
  with ${storing()},
  readied as (
    insert into pawl.ready (seq, id, priority, queue, tenant, task, inputs, options)
    select home, id, $3::int2, $2::text, $4::text, $5::text, case when $9::bool then $7::json::text end, case when $9::bool then $8::json::text end from stored
  ),
  counted as (insert into pawl.counter_delta (queue, task, ready) values ($2::text, $5::text, 1))
  select id, ${ms("created_at")} as now, false as handed_off from stored`,
);

/**
 * The same with its wakeup ($10, $11), unless an idle worker waits for it: then it is that one's ($12: if it may be), who begins
 * it at once. Whoever enqueued it waits for the disk after that (`Flusher`), instead of both.
 */
const ENQUEUE_AND_NOTIFY = hotStatement(
  "enqueue",
  "enqueue_and_notify",
  `
  with ${storing()},
  ${TAKE_IDLE_WORKER},
  readied as (
    insert into pawl.ready (seq, id, priority, queue, tenant, task, inputs, options)
    select home, id, $3::int2, $2::text, $4::text, $5::text, case when $9::bool then $7::json::text end, case when $9::bool then $8::json::text end from stored
    where not exists (select from chosen)
  ),
  counted as (insert into pawl.counter_delta (queue, task, ready, running) select $2::text, $5::text, 1 - n, n from (select count(*) as n from chosen) s)
  select id, ${ms("created_at")} as now, exists (select from chosen) as handed_off,
    case when exists (select from chosen) then set_config('synchronous_commit', 'off', true) end as lazily,
    case when exists (select from chosen) then ${NOTIFY_IDLE_WORKER} else pg_notify($10::text, $11::text)::text end as notified from stored`,
);

/** The number of a job, by which it stands in its lane, is drawn after the transaction's id: `SafeSequence` relies on that order. */
function storing(): string {
  return `stored as (
    insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
    select at.now, at.now, (lpad(to_hex(floor(greatest(floor_ms, least(${ms("at.now")}, ceiling_ms - 1)))::bigint), 12, '0') || $6::text)::uuid,
      $3::int2, $2::text, $4::text, $5::text, $7::json, $8::json, case when pg_current_xact_id() is not null then nextval('pawl.ready_seq') end from pawl.partition_range, (select ${NOW} as now) at limit 1
    returning home, id, created_at
  )`;
}

export interface StoredJobs {
  readonly answers: readonly Enqueued[];
  readonly now: number;
  /** the one that is in a worker's hands already, who was told; it may not be on disk */
  readonly handedOff?: JobId;
}

export async function enqueueOne(db: Db, on: Queryable, job: NewJob, inlineNotify?: InlineNotify): Promise<StoredJobs> {
  const { id, now, handed_off } = await store(db, on, job, inlineNotify).catch((error: unknown) => {
    // A wakeup that the server will not take (its queue is full) is no reason not to store the job.
    if (inlineNotify === undefined || !isRefused(error)) throw error;
    return store(db, on, job);
  });
  return { now, answers: [{ kind: "created", id }], ...(handed_off ? { handedOff: id } : {}) };
}

async function store(db: Db, on: Queryable, job: NewJob, inlineNotify?: InlineNotify): Promise<StoredRow> {
  const { queue, priority, tenant, task } = job.lane;
  const values = [db.now(), queue, priority, tenant, task, job.idSuffix, job.input, optionsText(job) ?? null, fitsReadyRow([job])];
  const [row] = await (inlineNotify === undefined
    ? on.query<StoredRow>(ENQUEUE_ONE, values)
    : on.query<StoredRow>(ENQUEUE_AND_NOTIFY, [...values, inlineNotify.channel, inlineNotify.payload, job.options?.atMostOnce !== true]));
  return row as StoredRow;
}

interface StoredRow {
  readonly id: JobId;
  readonly now: number;
  readonly handed_off: boolean;
}

function isRefused(error: unknown): boolean {
  return isPawlError(error) && error.cause instanceof DriverError && error.cause.fate === "refused";
}
