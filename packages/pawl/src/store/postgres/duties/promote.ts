import type { Lane } from "../../../core/jobs/lane.js";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import type { Db } from "../connection/db.js";
import { sqlFile } from "../connection/sql-statement.js";

const PROMOTE = sqlFile("duties/promote.sql");

/** Of a lane and how many of its jobs it moved, or of a limit key to look at, or in how many ms the next is due. */
interface PromoteRow extends Lane {
  readonly jobs: number;
  readonly limit_key: LimitKeyId | null;
  readonly next: number | null;
}

export async function promote(
  db: Db,
  watermarks: LowWatermarks,
  limit: number,
): Promise<{ readonly count: number; readonly nextIn?: number; readonly lanes: readonly Lane[]; readonly limitChecks: ReadonlySet<LimitKeyId> }> {
  const answer = await PROMOTE.query<PromoteRow>(db, { now: db.now(), limit, from: watermarks.scheduled.value });
  const next = answer.find((row) => row.next !== null)?.next ?? undefined;
  return {
    count: answer.reduce((sum, { jobs }) => sum + jobs, 0),
    lanes: answer.filter(({ jobs }) => jobs > 0).map(({ queue, priority, tenant, task }) => ({ queue, priority, tenant, task })),
    limitChecks: new Set(answer.flatMap((row) => row.limit_key ?? [])),
    ...(next === undefined ? {} : { nextIn: next }),
  };
}
