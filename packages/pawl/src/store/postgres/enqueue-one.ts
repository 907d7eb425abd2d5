import { isPawlError } from "../../core/error.js";
import { jobId } from "../../core/id.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import { type Db, hotStatement, ms, NOW } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { DriverError } from "./errors.js";
import { optionsText } from "./options-text.js";
import { clampDue, type Span } from "./span.js";

/** A wake-up that goes out with the commit of the enqueue, instead of after it. */
export interface Ride {
  readonly channel: string;
  readonly payload: string;
}

/**
 * Stores one job that is due at once, has no timer and can meet no conflict: what `enqueue_now` does, without the arrays
 * and parcels whose set-up costs more than one job does.
 */
const ENQUEUE_ONE = hotStatement(
  "enqueue",
  "enqueue_one",
  `
  with clock as materialized (
    select at.now, floor_ms, ceiling_ms from pawl.span, (select ${NOW} as now) at limit 1
  ),
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options)
    select c.now, c.now, (lpad(to_hex(floor(greatest(c.floor_ms, least(${ms("c.now")}, c.ceiling_ms - 1)))::bigint), 12, '0') || $6::text)::uuid,
      $3::int2, $2::text, $4::text, $5::text, $7::json, $8::json from clock c
    returning id
  ),
  readied as (
    insert into pawl.ready (id, band, spent, crashes, queue, tenant, task) select id, $3::int2, 0, 0, $2::text, $4::text, $5::text from stored
  ),
  counted as (insert into pawl.delta (queue, task, ready) values ($2::text, $5::text, 1))
  select ${ms("now")} as now, floor_ms as floor, ceiling_ms as ceiling,
    case when $9::text is not null then pg_notify($9::text, $10::text)::text end as told from clock`,
);

export async function enqueueOne(db: Db, on: Queryable, job: NewJob, ride?: Ride): Promise<{ answers: readonly Enqueued[]; now: number }> {
  try {
    return await store(db, on, job, ride);
  } catch (error) {
    // A wake-up that the server will not take (its queue is full) is no reason not to store the job.
    if (ride === undefined || !isRefused(error)) throw error;
    return store(db, on, job);
  }
}

async function store(db: Db, on: Queryable, job: NewJob, ride?: Ride): Promise<{ answers: readonly Enqueued[]; now: number }> {
  const { queue, band, tenant, task } = job.lane;
  const values = [db.now(), queue, band, tenant, task, job.tail, job.input, optionsText(job) ?? null, ride?.channel ?? null, ride?.payload ?? null];
  const [at] = (await on.query<Span>(ENQUEUE_ONE, values)) as [Span];
  return { now: at.now, answers: [{ kind: "created", id: jobId(clampDue(at.now, at), job.tail) }] };
}

function isRefused(error: unknown): boolean {
  return isPawlError(error) && error.cause instanceof DriverError && error.cause.fate === "refused";
}
