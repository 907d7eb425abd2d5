import type { Failure } from "../../../core/jobs/failure.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, statement, type WriteTransaction } from "../connection/db.js";
import { count } from "../jobs/counters.js";
import { addDeath, type JobMove, putWaiting, type WaitingJob } from "../jobs/waiting-jobs.js";
import { releaseSlots } from "../limits/job-limits.js";

const DELETE_DEPENDENCIES = statement("untie", "delete from pawl.dependency where child = any($1::uuid[])");
const DELETE_INTENTS = statement("unask", "delete from pawl.intent where job = any($1::uuid[])");

/** Jobs that waited and were taken out of where they did are dead, and wait for nothing and nobody any more. */
export async function killJobs(db: Db, on: WriteTransaction, victims: readonly WaitingJob[], why: (job: WaitingJob) => Failure): Promise<void> {
  if (victims.length === 0) return;
  const ids = victims.map(({ id }) => id);
  await on.query(DELETE_DEPENDENCIES, [plainArray(ids)]);
  await on.query(DELETE_INTENTS, [plainArray(ids)]);
  await releaseSlots(db, on, ids, { finished: true });
  const moves = victims.map((job): JobMove => {
    const { id, lane, attempts, crashes } = job;
    return { id, lane, to: "dead", attempts, crashes, failure: why(job) };
  });
  await putWaiting(db, on, moves);
  await addDeath(db, on, moves);
  await count(
    on,
    victims.map(({ lane, state }) => ({ lane, from: state, to: "dead" as const })),
  );
}
