import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import type { Db, WriteTransaction } from "../connection/db.js";
import { enqueuePlain } from "./enqueue.js";
import { enqueueChecked } from "./enqueue-checked.js";

/** Whether a job can meet a conflict, or has more to be stored than itself. */
export function needsChecks({ idempotencyKey, unique, dependsOn, options }: NewJob): boolean {
  return idempotencyKey !== undefined || unique !== undefined || dependsOn !== undefined || options?.limits !== undefined;
}

/**
 * Stores a batch in which some jobs are guarded. Where limits are all that those have, the others are stored as ever. (Jobs under
 * limits become ready when they are let in, so no order between the two is lost.)
 */
export async function enqueueMixed(
  db: Db,
  tx: WriteTransaction,
  jobs: readonly NewJob[],
  perRow: number,
): Promise<{ answers: readonly Enqueued[]; now: number }> {
  const plain = jobs.filter((job) => !needsChecks(job));
  const onlyLimited = jobs.every(
    ({ idempotencyKey, unique, dependsOn }) => idempotencyKey === undefined && unique === undefined && dependsOn === undefined,
  );
  if (plain.length === 0 || !onlyLimited) return enqueueChecked(db, tx, jobs);
  const limited = jobs.filter(needsChecks);
  const stored = await enqueuePlain(db, tx, plain, perRow);
  const lined = await enqueueChecked(db, tx, limited);
  const answers = new Map<NewJob, Enqueued>();
  plain.forEach((job, index) => void answers.set(job, stored.answers[index] as Enqueued));
  limited.forEach((job, index) => void answers.set(job, lined.answers[index] as Enqueued));
  return { answers: jobs.map((job) => answers.get(job) as Enqueued), now: stored.now };
}
