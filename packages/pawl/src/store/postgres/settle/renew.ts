import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { Intent } from "../../../core/jobs/job.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, statement } from "../connection/db.js";
import { RENEW } from "./renew-statement.js";

export async function renew(db: Db, worker: number, leases: readonly LeaseId[], duration: number): Promise<{ readonly held: readonly LeaseId[] }> {
  if (leases.length === 0) return { held: [] };
  const rows = await RENEW.query<{ id: LeaseId }>(db, { now: db.now(), worker, duration, leases });
  return { held: rows.map((row) => row.id) };
}

/** A lease lists the jobs settled under it too, until it ends: they may be somebody else's by now. */
const INTENTS = statement(
  "lease_intents",
  `select i.job, i.kind from pawl.lease l cross join lateral unnest(l.jobs) with ordinality as u(job, index) join pawl.intent i on i.job = u.job
   where l.id = any($2::bigint[]) and l.worker = $1 and not u.index::int <@ l.settled`,
);

export async function intents(
  db: Db,
  worker: number,
  leases: readonly LeaseId[],
): Promise<readonly { readonly job: JobId; readonly intent: Intent }[]> {
  if (leases.length === 0) return [];
  const rows = await db.query<{ job: JobId; kind: Intent }>(INTENTS, [worker, plainArray(leases)]);
  return rows.map((row) => ({ job: row.job, intent: row.kind }));
}
