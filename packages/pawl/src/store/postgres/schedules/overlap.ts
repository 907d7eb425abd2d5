import type { JobId } from "../../../core/jobs/id.js";
import type { NewJob } from "../../../core/jobs/job.js";
import type { PlannedFire } from "../../../core/schedules/due-ticks.js";
import { plainArray } from "../connection/arrays.js";
import { stateCode } from "../connection/codes.js";
import { type Db, NOW, statement, type WriteTransaction } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";
import { endWaiting } from "../jobs/control.js";
import { takeWaiting } from "../jobs/waiting-jobs.js";

/** What a tick does about the jobs of earlier ticks that are unfinished. */

/** (The limit tells the planner that there is one row per id.) */
const UNFINISHED = statement(
  "unfinished_jobs",
  `select g.id from unnest($1::uuid[]) as g(id)
   cross join lateral (select from pawl.any_job j where j.id = g.id limit 1) j
   left join lateral (select a.next from pawl.any_attempt a where a.job = g.id order by a.lease desc limit 1) a on true
   where coalesce(a.next, ${stateCode("ready")}) not in (${stateCode("succeeded")}, ${stateCode("cancelled")})
     and not exists (select from pawl.dead d where d.id = g.id)`,
);

export async function unfinishedOf(on: Queryable, ids: readonly JobId[]): Promise<ReadonlySet<JobId>> {
  if (ids.length === 0) return new Set();
  return new Set((await on.query<{ id: JobId }>(UNFINISHED, [plainArray(ids)])).map(({ id }) => id));
}

const ASK = statement(
  "ask_cancel",
  `insert into pawl.intent as i (job, kind, reason, requested_at) select g.id, 'cancel', $3, ${NOW} from unnest($2::uuid[]) as g(id)
   on conflict (job) do update set kind = excluded.kind, reason = excluded.reason where i.kind <> 'cancel'`,
);
const REPLACED = "the next tick of its schedule came";

/** It runs after what is unfinished, however that ends; if it was told to, it has it end now. */
export async function withOverlap(
  db: Db,
  tx: WriteTransaction,
  overlap: PlannedFire["overlap"],
  open: readonly JobId[],
  job: NewJob,
): Promise<NewJob> {
  if (overlap === undefined || open.length === 0) return job;
  if (overlap === "wait") return { ...job, dependsOn: { parents: open, onDependencyDeath: "run" } };
  const waiting = await takeWaiting(tx, open);
  for (const one of waiting) await endWaiting(db, tx, one, "cancelled", REPLACED);
  const ended = new Set(waiting.map(({ id }) => id));
  const parents = open.filter((id) => !ended.has(id));
  if (parents.length === 0) return job;
  await tx.query(ASK, [db.now(), plainArray(parents), REPLACED]);
  return { ...job, dependsOn: { parents, onDependencyDeath: "run" } };
}
