import type { JobId } from "../../core/id.js";
import { plainArray } from "./arrays.js";
import { type Db, ms, statement } from "./db.js";

const READ_KEPT = statement(
  "read_kept",
  `select id, input::text, options::text, ${ms("due_at")} as due_at from pawl.job_kept where id = any($1::uuid[])`,
);

interface KeptRow {
  readonly id: JobId;
  readonly input: string;
  readonly options: string | null;
  readonly due_at: number;
}

/** The facts of jobs that outlived their partition: looked for only where the partition had nothing. */
export async function readKept(db: Db, ids: readonly JobId[]): Promise<ReadonlyMap<JobId, KeptRow>> {
  const rows = await db.query<KeptRow>(READ_KEPT, [plainArray(ids)]);
  return new Map(rows.map((row) => [row.id, row]));
}
