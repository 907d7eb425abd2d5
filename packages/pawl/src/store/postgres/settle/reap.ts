import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { JobOptions } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { attemptsSoFar, decide } from "../../../core/jobs/outcome.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { plainArray } from "../connection/arrays.js";
import { ms, type StoreDb, statement } from "../connection/db.js";
import { sqlFile, sqlText } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import { laneOf } from "../jobs/waiting-jobs.js";
import { applyPatches, type Unsettled } from "./settle-in-steps.js";
import { SettledIndexes } from "./settled-indexes.js";

const LOCK_EXPIRED = sqlFile("settle/lock-expired.sql");

/** In the order they were claimed in, whatever the plan: they become ready again in it. */
const UNSETTLED = sqlText(
  "unsettled",
  `
  select g.lease::text, g.index, g.job as id, j.queue, j.priority, j.tenant, j.task, j.options::text, ${ms("j.due_at")} as due_at,
    coalesce(a.attempts, 0) as attempts, coalesce(a.crashes, 0) as crashes
  from unnest(:unsettled.lease::bigint[], :unsettled.job::uuid[], :unsettled.index::int[]) with ordinality as g(lease, job, index, ord)
  cross join lateral (select * from pawl.any_job j where j.id = g.job limit 1) j
  left join lateral (select a.attempts, a.crashes from pawl.any_attempt a where a.job = g.job order by a.lease desc limit 1) a on true
  order by g.ord`,
);
const CLOSE = statement("close_leases", "delete from pawl.lease where id = any($1::bigint[])");

interface ExpiredLease {
  readonly id: LeaseId;
  readonly worker: number;
  readonly alone: boolean;
  readonly jobs: string;
  /** as it is after the lock: what was settled before it was had is there */
  readonly settled: string;
  readonly claimed_at: number;
  readonly now: number;
}
interface UnsettledRow extends Lane {
  readonly lease: LeaseId;
  readonly index: number;
  readonly id: JobId;
  readonly options: string | null;
  readonly due_at: number;
  readonly attempts: number;
  readonly crashes: number;
}

/** The unsettled jobs of expired leases are crashed: decided by the same `decide`, settled by the same patches. */
export function reap(
  db: StoreDb,
  watermarks: LowWatermarks,
  limit: number,
): Promise<{ readonly leases: number; readonly jobs: number; readonly lanes: readonly Lane[] }> {
  return db.transaction(async (tx) => {
    const expired = await LOCK_EXPIRED.query<ExpiredLease>(tx, { now: db.now(), limit, from: watermarks.lease.value });
    if (expired.length === 0) return { leases: 0, jobs: 0, lanes: [] };
    const unsettled = await readUnsettled(tx, expired);
    const byLease = new Map(expired.map((lease) => [lease.id, lease]));
    const byWorker = new Map<number, Unsettled[]>();
    for (const row of unsettled) {
      const lease = byLease.get(row.lease) as ExpiredLease;
      const settlements = byWorker.get(lease.worker) ?? [];
      settlements.push(crashed(row, lease));
      byWorker.set(lease.worker, settlements);
    }
    const released: Lane[] = [];
    for (const [worker, settlements] of byWorker) released.push(...(await applyPatches(db, tx, worker, settlements)));
    // Whatever is left of them holds nothing: all its jobs are settled, or their rows are gone.
    await tx.query(CLOSE, [plainArray(expired.map((lease) => lease.id))]);
    return { leases: expired.length, jobs: unsettled.length, lanes: [...unsettled.map(laneOf), ...released] };
  });
}

async function readUnsettled(on: Queryable, expired: readonly ExpiredLease[]): Promise<readonly UnsettledRow[]> {
  const leases: LeaseId[] = [];
  const jobs: string[] = [];
  const indexes: number[] = [];
  for (const lease of expired) {
    const settled = new SettledIndexes(lease.settled);
    lease.jobs.split(",").forEach((job, index) => {
      if (settled.has(index + 1)) return;
      leases.push(lease.id);
      jobs.push(job);
      indexes.push(index + 1);
    });
  }
  return UNSETTLED.query<UnsettledRow>(on, { unsettled: { lease: leases, job: jobs, index: indexes } });
}

function crashed(row: UnsettledRow, lease: ExpiredLease): Unsettled {
  const options: JobOptions = row.options === null ? {} : (JSON.parse(row.options) as JobOptions);
  const soFar = attemptsSoFar({ attempts: row.attempts, crashes: row.crashes, dueAt: row.due_at }, options, lease.now);
  const patch = decide(soFar, { kind: "crashed", alone: lease.alone }, 0, () => 0);
  return {
    lease: row.lease,
    index: row.index,
    job: row.id,
    lane: laneOf(row),
    patch,
    limited: true,
    startedAt: lease.claimed_at,
    finishedAt: lease.now,
  };
}
