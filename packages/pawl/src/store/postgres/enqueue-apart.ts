import type { Enqueued, NewJob } from "../../core/job.js";
import type { Db } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import { enqueuePlain } from "./enqueue.js";
import { enqueueGuarded } from "./enqueue-guarded.js";

/** Whether a job can meet a conflict, or has more to be stored than itself. */
export function isGuarded({ request, unique, dependsOn, options }: NewJob): boolean {
  return request !== undefined || unique !== undefined || dependsOn !== undefined || options?.limits !== undefined;
}

/**
 * Stores a batch in which some jobs are guarded. Where limits are all that those have, the others are stored as ever. (Jobs under
 * limits become ready when they are let in, so no order between the two is lost.)
 */
export async function enqueueApart(
  db: Db,
  tx: Transaction,
  jobs: readonly NewJob[],
  perRow: number,
): Promise<{ answers: readonly Enqueued[]; now: number }> {
  const plain = jobs.filter((job) => !isGuarded(job));
  const onlyLimited = jobs.every(({ request, unique, dependsOn }) => request === undefined && unique === undefined && dependsOn === undefined);
  if (plain.length === 0 || !onlyLimited) return enqueueGuarded(db, tx, jobs);
  const limited = jobs.filter(isGuarded);
  const stored = await enqueuePlain(db, tx, plain, perRow);
  const lined = await enqueueGuarded(db, tx, limited);
  const answers = new Map<NewJob, Enqueued>();
  plain.forEach((job, index) => void answers.set(job, stored.answers[index] as Enqueued));
  limited.forEach((job, index) => void answers.set(job, lined.answers[index] as Enqueued));
  return { answers: jobs.map((job) => answers.get(job) as Enqueued), now: stored.now };
}
