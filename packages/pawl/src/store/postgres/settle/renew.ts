import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { Intent } from "../../../core/jobs/job.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, NOW, statement } from "../connection/db.js";

/** Also used by the renewal thread, which has no `Db`. Never shortens a lease: answers may overtake each other. */
export const RENEW = statement(
  "renew",
  `update pawl.lease set until = greatest(until, ${NOW} + $3 * interval '1 millisecond')
   where id in (select id from pawl.lease where id = any($4::bigint[]) and worker = $2 order by id for update) returning id::text`,
);

export async function renew(db: Db, worker: number, leases: readonly LeaseId[], duration: number): Promise<{ readonly held: readonly LeaseId[] }> {
  if (leases.length === 0) return { held: [] };
  const rows = await db.query<{ id: LeaseId }>(RENEW, [db.now(), worker, duration, plainArray(leases)]);
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
