import type { JobId } from "../../../core/jobs/id.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, ms, statement } from "../connection/db.js";

const READ_JOB_DETAILS = statement(
  "read_apart",
  `select id, home::float8, input::text, options::text, ${ms("due_at")} as at from pawl.any_job where id = any($1::uuid[])`,
);

/** What a worker needs of a job's immutable facts. */
export interface JobDetails {
  /** its number, which never changes */
  readonly home: number;
  readonly input: string;
  readonly options: string | null;
  /** its due time, where its options need it */
  readonly at: number | null;
}

/** The facts of jobs that outlived their partition, or whose input is large: a claim does not bring them along. */
export async function readJobDetails(db: Db, ids: readonly JobId[]): Promise<ReadonlyMap<JobId, JobDetails>> {
  const rows = await db.query<JobDetails & { readonly id: JobId }>(READ_JOB_DETAILS, [plainArray(ids)]);
  return new Map(rows.map((row) => [row.id, row]));
}
