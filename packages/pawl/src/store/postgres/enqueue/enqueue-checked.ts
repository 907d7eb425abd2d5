import { jobId } from "../../../core/jobs/id.js";
import { type Enqueued, isSameRequest, type NewJob } from "../../../core/jobs/job.js";
import type { Db, WriteTransaction } from "../connection/db.js";
import { type LimitedJob, saveJobLimits } from "../limits/job-limits.js";
import { clampDue, type PartitionRange, readPartitionRange } from "../schema/partition-range.js";
import { type Candidate, requestKey, uniqueKey } from "./candidate.js";
import { dueTime } from "./enqueue.js";
import { lockIdempotencyKeys, saveIdempotencyKeys } from "./idempotency-keys.js";
import { readParents, storeJobs, storeStates } from "./store-jobs.js";
import { checkUniqueKeys } from "./unique-keys.js";

/**
 * Stores a batch in which some jobs have an idempotency key, a key, parents or limits, in the caller's transaction, as if they had
 * come one by one: jobs that share a key or an idempotency key are handled in rounds, each seeing the one before.
 */
export async function enqueueChecked(db: Db, tx: WriteTransaction, jobs: readonly NewJob[]): Promise<{ answers: readonly Enqueued[]; now: number }> {
  const range = await readPartitionRange(db, tx);
  const answers = new Map<NewJob, Enqueued>();
  for (const round of rounds(jobs)) {
    const candidates = round.map((job): Candidate => {
      const due = dueTime(job, range.now);
      return { job, due, id: jobId(clampDue(due, range), job.idSuffix) };
    });
    await enqueueRound(db, tx, candidates, range, answers);
  }
  return { answers: jobs.map((job) => answers.get(job) as Enqueued), now: range.now };
}

function rounds(jobs: readonly NewJob[]): readonly (readonly NewJob[])[] {
  const seen = new Map<string, number>();
  const result: NewJob[][] = [];
  for (const job of jobs) {
    const names = [
      job.idempotencyKey === undefined ? undefined : `r${requestKey(job)}`,
      job.unique === undefined ? undefined : `k${uniqueKey(job)}`,
    ].filter((name) => name !== undefined);
    const round = Math.max(0, ...names.map((name) => seen.get(name) ?? 0));
    for (const name of names) seen.set(name, round + 1);
    result[round] = [...(result[round] ?? []), job];
  }
  return result;
}

async function enqueueRound(
  db: Db,
  tx: WriteTransaction,
  candidates: readonly Candidate[],
  range: PartitionRange,
  answers: Map<NewJob, Enqueued>,
): Promise<void> {
  const repeated = await lockIdempotencyKeys(tx, candidates, range);
  for (const { job } of candidates) {
    const first = repeated.get(requestKey(job));
    if (job.idempotencyKey === undefined || first === undefined) continue;
    const same = isSameRequest(job.idempotencyKey, first.digest);
    answers.set(job, same ? { kind: "existing", id: first.job } : { kind: "idempotencyKeyReused", first: first.job });
  }
  const parents = await readParents(tx, candidates);
  for (const { job } of open(candidates, answers)) {
    const unknownParent = job.dependsOn?.parents.find((parent) => parents.get(parent)?.lane.tenant !== job.lane.tenant);
    if (unknownParent !== undefined) answers.set(job, { kind: "dependencyUnknown", parent: unknownParent });
  }
  const redated = await checkUniqueKeys(db, tx, open(candidates, answers), range, answers);
  const created = candidates
    .filter(({ job }) => !answers.has(job) || answers.get(job)?.kind === "created")
    .map((candidate) => redated.get(candidate.job) ?? candidate);
  for (const { job, id } of created) if (!answers.has(job)) answers.set(job, { kind: "created", id });
  await saveIdempotencyKeys(tx, candidates, answers);
  await storeJobs(tx, created, range);
  await saveJobLimits(db, tx, created.flatMap(limited));
  await storeStates(db, tx, created, parents, range);
}

function limited({ job, id }: Candidate): readonly LimitedJob[] {
  const limits = job.options?.limits;
  return limits === undefined ? [] : [{ id, tenant: job.lane.tenant, limits }];
}

function open(candidates: readonly Candidate[], answers: ReadonlyMap<NewJob, Enqueued>): readonly Candidate[] {
  return candidates.filter(({ job }) => !answers.has(job));
}
