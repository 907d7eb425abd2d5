import { jobId } from "../../core/id.js";
import { type Enqueued, isSameRequest, type NewJob } from "../../core/job.js";
import { type Candidate, requestKey, uniqueKey } from "./candidate.js";
import type { Db } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import { dueTime } from "./enqueue.js";
import { judgeKeys } from "./enqueue-keys.js";
import { placeJobs, readParents, storeJobs } from "./enqueue-places.js";
import { lockRequests, saveRequests } from "./enqueue-requests.js";
import { clampDue, readSpan, type Span } from "./span.js";
import { type Limited, saveTickets } from "./tickets.js";

/**
 * Stores a batch in which some jobs have a request id, a key, parents or limits, in the caller's transaction, as if they had
 * come one by one: jobs that share a key or a request id are handled in rounds, each seeing the one before.
 */
export async function enqueueGuarded(db: Db, tx: Transaction, jobs: readonly NewJob[]): Promise<{ answers: readonly Enqueued[]; now: number }> {
  const span = await readSpan(db, tx);
  const answers = new Map<NewJob, Enqueued>();
  for (const round of rounds(jobs)) {
    const candidates = round.map((job): Candidate => {
      const due = dueTime(job, span.now);
      return { job, due, id: jobId(clampDue(due, span), job.tail) };
    });
    await enqueueRound(db, tx, candidates, span, answers);
  }
  return { answers: jobs.map((job) => answers.get(job) as Enqueued), now: span.now };
}

function rounds(jobs: readonly NewJob[]): readonly (readonly NewJob[])[] {
  const seen = new Map<string, number>();
  const result: NewJob[][] = [];
  for (const job of jobs) {
    const names = [job.request === undefined ? undefined : `r${requestKey(job)}`, job.unique === undefined ? undefined : `k${uniqueKey(job)}`].filter(
      (name) => name !== undefined,
    );
    const round = Math.max(0, ...names.map((name) => seen.get(name) ?? 0));
    for (const name of names) seen.set(name, round + 1);
    result[round] = [...(result[round] ?? []), job];
  }
  return result;
}

async function enqueueRound(db: Db, tx: Transaction, candidates: readonly Candidate[], span: Span, answers: Map<NewJob, Enqueued>): Promise<void> {
  const repeated = await lockRequests(tx, candidates, span);
  for (const { job } of candidates) {
    const first = repeated.get(requestKey(job));
    if (job.request === undefined || first === undefined) continue;
    const same = isSameRequest(job.request, first.digest);
    answers.set(job, same ? { kind: "existing", id: first.job } : { kind: "requestReused", first: first.job });
  }
  const parents = await readParents(tx, candidates);
  for (const { job } of open(candidates, answers)) {
    const orphan = job.dependsOn?.parents.find((parent) => parents.get(parent)?.lane.tenant !== job.lane.tenant);
    if (orphan !== undefined) answers.set(job, { kind: "orphaned", parent: orphan });
  }
  const redated = await judgeKeys(db, tx, open(candidates, answers), span, answers);
  const created = candidates
    .filter(({ job }) => !answers.has(job) || answers.get(job)?.kind === "created")
    .map((candidate) => redated.get(candidate.job) ?? candidate);
  for (const { job, id } of created) if (!answers.has(job)) answers.set(job, { kind: "created", id });
  await saveRequests(tx, candidates, answers);
  await storeJobs(tx, created, span);
  await saveTickets(db, tx, created.flatMap(limited));
  await placeJobs(db, tx, created, parents, span);
}

function limited({ job, id }: Candidate): readonly Limited[] {
  const limits = job.options?.limits;
  return limits === undefined ? [] : [{ id, tenant: job.lane.tenant, limits }];
}

function open(candidates: readonly Candidate[], answers: ReadonlyMap<NewJob, Enqueued>): readonly Candidate[] {
  return candidates.filter(({ job }) => !answers.has(job));
}
