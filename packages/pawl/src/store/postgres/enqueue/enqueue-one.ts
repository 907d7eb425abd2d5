import type { JobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import { isPawlError } from "../../../core/values/error.js";
import type { Db } from "../connection/db.js";
import { DriverError } from "../connection/errors.js";
import { sqlFile } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import { fitsReadyRow, optionsText } from "./job-options.js";

/** A wakeup that goes out with the commit of the enqueue, instead of after it. Never in a transaction of somebody else's. */
export interface InlineNotify {
  readonly channel: string;
  readonly payload: string;
}

const ENQUEUE_ONE = sqlFile("enqueue/enqueue-one.sql", { hot: "enqueue" });
const ENQUEUE_AND_NOTIFY = sqlFile("enqueue/enqueue-and-notify.sql", { hot: "enqueue" });

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
  const values = {
    now: db.now(),
    queue,
    priority,
    tenant,
    task,
    idSuffix: job.idSuffix,
    input: job.input,
    options: optionsText(job) ?? null,
    carries: fitsReadyRow([job]),
  };
  const [row] =
    inlineNotify === undefined
      ? await ENQUEUE_ONE.query<StoredRow>(on, values)
      : await ENQUEUE_AND_NOTIFY.query<StoredRow>(on, { ...values, ...inlineNotify, mayHandOff: job.options?.atMostOnce !== true });
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
