import type { JobId } from "../../core/id.js";
import { plainArray } from "./arrays.js";
import { type Db, ms, statement } from "./db.js";

const READ_APART = statement(
  "read_apart",
  `select id, home::float8, input::text, options::text, ${ms("due_at")} as at from pawl.any_job where id = any($1::uuid[])`,
);

/** What a worker needs of a job's immutable facts. */
export interface Facts {
  /** its number, which never changes */
  readonly home: number;
  readonly input: string;
  readonly options: string | null;
  /** its due time, where its options need it */
  readonly at: number | null;
}

/** The facts of jobs that outlived their partition, or whose input is large: a claim does not bring them along. */
export async function readApart(db: Db, ids: readonly JobId[]): Promise<ReadonlyMap<JobId, Facts>> {
  const rows = await db.query<Facts & { readonly id: JobId }>(READ_APART, [plainArray(ids)]);
  return new Map(rows.map((row) => [row.id, row]));
}
