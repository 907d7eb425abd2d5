import { isPawlError } from "../../core/error.js";
import type { JobId } from "../../core/id.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import { type Db, hotStatement, ms, NOW } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { DriverError } from "./errors.js";
import { carrying, optionsText } from "./options-text.js";
import { TAKE_SEAT, TELL_SEAT } from "./seat-statements.js";

/** A wake-up that goes out with the commit of the enqueue, instead of after it. Never in a transaction of somebody else's. */
export interface Ride {
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
    insert into pawl.ready (seq, id, band, queue, tenant, task, inputs, options)
    select home, id, $3::int2, $2::text, $4::text, $5::text, case when $9::bool then $7::json::text end, case when $9::bool then $8::json::text end from stored
  ),
  counted as (insert into pawl.delta (queue, task, ready) values ($2::text, $5::text, 1))
  select id, ${ms("created_at")} as now, false as handed from stored`,
);

/**
 * The same with its wake-up ($10, $11), unless a worker sits and waits for it: then it is that one's ($12: if it may be), who begins
 * it at once. Whoever enqueued it waits for the disk after that (`Flusher`), instead of both.
 */
const ENQUEUE_AND_TELL = hotStatement(
  "enqueue",
  "enqueue_and_tell",
  `
  with ${storing()},
  ${TAKE_SEAT},
  readied as (
    insert into pawl.ready (seq, id, band, queue, tenant, task, inputs, options)
    select home, id, $3::int2, $2::text, $4::text, $5::text, case when $9::bool then $7::json::text end, case when $9::bool then $8::json::text end from stored
    where not exists (select from seat)
  ),
  counted as (insert into pawl.delta (queue, task, ready, running) select $2::text, $5::text, 1 - n, n from (select count(*) as n from seat) s)
  select id, ${ms("created_at")} as now, exists (select from seat) as handed,
    case when exists (select from seat) then set_config('synchronous_commit', 'off', true) end as lazily,
    case when exists (select from seat) then ${TELL_SEAT} else pg_notify($10::text, $11::text)::text end as told from stored`,
);

/** The number of a job, by which it stands in its lane, is drawn after the transaction's id: `SafePoint` relies on that order. */
function storing(): string {
  return `stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options, home)
    select at.now, at.now, (lpad(to_hex(floor(greatest(floor_ms, least(${ms("at.now")}, ceiling_ms - 1)))::bigint), 12, '0') || $6::text)::uuid,
      $3::int2, $2::text, $4::text, $5::text, $7::json, $8::json, case when pg_current_xact_id() is not null then nextval('pawl.ready_seq') end from pawl.span, (select ${NOW} as now) at limit 1
    returning home, id, created_at
  )`;
}

export interface StoredJobs {
  readonly answers: readonly Enqueued[];
  readonly now: number;
  /** the one that is in a worker's hands already, who was told; it may not be on disk */
  readonly handed?: JobId;
}

export async function enqueueOne(db: Db, on: Queryable, job: NewJob, ride?: Ride): Promise<StoredJobs> {
  const { id, now, handed } = await store(db, on, job, ride).catch((error: unknown) => {
    // A wake-up that the server will not take (its queue is full) is no reason not to store the job.
    if (ride === undefined || !isRefused(error)) throw error;
    return store(db, on, job);
  });
  return { now, answers: [{ kind: "created", id }], ...(handed ? { handed: id } : {}) };
}

async function store(db: Db, on: Queryable, job: NewJob, ride?: Ride): Promise<StoredRow> {
  const { queue, band, tenant, task } = job.lane;
  const values = [db.now(), queue, band, tenant, task, job.tail, job.input, optionsText(job) ?? null, carrying([job])];
  const [row] = await (ride === undefined
    ? on.query<StoredRow>(ENQUEUE_ONE, values)
    : on.query<StoredRow>(ENQUEUE_AND_TELL, [...values, ride.channel, ride.payload, job.options?.atMostOnce !== true]));
  return row as StoredRow;
}

interface StoredRow {
  readonly id: JobId;
  readonly now: number;
  readonly handed: boolean;
}

function isRefused(error: unknown): boolean {
  return isPawlError(error) && error.cause instanceof DriverError && error.cause.fate === "refused";
}
