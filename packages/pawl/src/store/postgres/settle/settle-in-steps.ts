import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import { isFinished, type RequestedIntent } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { type Patch, withIntent } from "../../../core/jobs/outcome.js";
import { limitKeyId } from "../../../core/limits/limit-rule.js";
import type { Settlement } from "../../port/settle/leases.js";
import { plainArray } from "../connection/arrays.js";
import { outcomeCode, stateCode } from "../connection/codes.js";
import { type Db, statement, type WriteTransaction } from "../connection/db.js";
import { sqlFile } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import { count } from "../jobs/counters.js";
import { addDeath, type JobMove, putWaiting } from "../jobs/waiting-jobs.js";
import { pauseLimitKeys, releaseSlots } from "../limits/job-limits.js";
import { readPartitionRange } from "../schema/partition-range.js";
import { releaseDependents } from "./release-dependents.js";
import { SettledIndexes } from "./settled-indexes.js";

const LOCK_LEASES = statement(
  "lock_leases",
  `select id::text, array_to_string(jobs, ',') as jobs, settled::text from pawl.lease where id = any($1::bigint[]) and worker = $2 order by id
   for update  -- guard: leases-locked-for-steps`,
);
const INTENTS = statement(
  "intents_of",
  `select job, kind as intent, coalesce(reason, 'cancelled') as reason from pawl.intent
   where job = any($1::uuid[])  -- guard: intents-are-read`,
);
const FORGET_INTENTS = statement("forget_intents", "delete from pawl.intent where job = any($1::uuid[])");

const APPEND_ATTEMPTS = sqlFile("settle/append-attempts.sql");

/** What stands for an attempt among all others. */
export function settlementKey({ lease, job }: Pick<Settlement, "lease" | "job">): string {
  return `${lease}:${job}`;
}

/** A settlement of a job that is in its lease, at this index from 1, and is not settled. */
export type Unsettled = Settlement & { readonly index: number };

export interface StepsReport {
  /** settlements of leases that are not there, or do not have the job */
  readonly unknown: readonly Settlement[];
  /** settlements of jobs that were settled before */
  readonly repeated: readonly Settlement[];
  /** the lanes of dependents that became ready */
  readonly readied: readonly Lane[];
}

/**
 * Settles with everything that was asked of the jobs and everyone who waits for them looked after, in the caller's
 * transaction: a handler's own, or the one for what the one statement left alone. A job settled before stays as it is.
 */
export async function settleInSteps(db: Db, on: WriteTransaction, worker: number, settlements: readonly Settlement[]): Promise<StepsReport> {
  const leases = [...new Set(settlements.map((item) => item.lease))];
  const rows = await on.query<{ id: LeaseId; jobs: string; settled: string }>(LOCK_LEASES, [plainArray(leases), worker]);
  const lockedLeases = new Map(rows.map(({ id, jobs, settled }) => [id, { indexes: indexesOf(jobs), settled: new SettledIndexes(settled) }]));
  const unknown: Settlement[] = [];
  const repeated: Settlement[] = [];
  const unsettled: Unsettled[] = [];
  for (const item of settlements) {
    const lease = lockedLeases.get(item.lease);
    const index = lease?.indexes.get(item.job);
    if (lease === undefined || index === undefined) unknown.push(item);
    else if (lease.settled.has(index)) repeated.push(item);
    else unsettled.push({ ...item, index });
  }
  return { unknown, repeated, readied: await applyPatches(db, on, worker, unsettled) };
}

function indexesOf(jobs: string): ReadonlyMap<string, number> {
  return new Map(jobs.split(",").map((job, index) => [job, index + 1]));
}

/** Applies patches to jobs whose leases are locked here. Answers with the lanes of dependents that became ready. */
export async function applyPatches(db: Db, on: WriteTransaction, worker: number, fresh: readonly Unsettled[]): Promise<readonly Lane[]> {
  if (fresh.length === 0) return [];
  const intents = new Map(
    (await on.query<RequestedIntent & { job: JobId }>(INTENTS, [plainArray(fresh.map((item) => item.job))])).map((row) => [row.job, row]),
  );
  const decided = fresh.map((item) => ({ ...item, patch: withIntent(item.patch, intents.get(item.job)) }));
  await append(on, worker, decided);
  await leaveLimitKeys(db, on, decided);
  await moveUnfinished(db, on, decided);
  const carriedOut = decided.filter((item) => intents.has(item.job) && (isFinished(item.patch.next) || item.patch.next === "parked"));
  if (carriedOut.length > 0) await on.query(FORGET_INTENTS, [plainArray(carriedOut.map((item) => item.job))]);
  await count(
    on,
    decided.map((item) => ({ lane: item.lane, from: "running" as const, to: item.patch.next })),
  );
  return releaseDependents(
    db,
    on,
    decided.filter((item) => isFinished(item.patch.next)).map((item) => ({ id: item.job, state: item.patch.next })),
  );
}

/** What they hold is free, and a key that was told to rest is at rest, before those that stay line up again. */
async function leaveLimitKeys(db: Db, on: WriteTransaction, decided: readonly Settlement[]): Promise<void> {
  const limited = decided.filter((item) => item.limited === true);
  const over = limited.filter((item) => isFinished(item.patch.next));
  await releaseSlots(
    db,
    on,
    over.map((item) => item.job),
    { finished: true },
  );
  await releaseSlots(
    db,
    on,
    limited.filter((item) => !isFinished(item.patch.next)).map((item) => item.job),
    { finished: false },
  );
  await pauseLimitKeys(
    db,
    on,
    decided.flatMap(({ lane, patch }) =>
      patch.pauses === undefined ? [] : [{ limitKey: limitKeyId(lane.tenant, patch.pauses), for: patch.pauses.for }],
    ),
  );
}

/** The leases are locked by this transaction's earlier statement, so this one's snapshot has their true `unsettled`. */
async function append(on: Queryable, worker: number, decided: readonly Unsettled[]): Promise<void> {
  const column = <T>(value: (item: Unsettled) => T): readonly T[] => decided.map(value);
  await APPEND_ATTEMPTS.query(on, {
    worker,
    attempt: {
      lease: column((item) => item.lease),
      job: column((item) => item.job),
      index: column((item) => item.index),
      outcome: column((item) => outcomeCode(item.patch.outcome)),
      next: column((item) => stateCode(item.patch.next)),
      attempts: column((item) => item.patch.attempts),
      crashes: column((item) => item.patch.crashes),
      started: column((item) => item.startedAt),
      finished: column((item) => item.finishedAt),
      output: column((item) => item.patch.output),
      failure: column(({ patch }) => (patch.failure === undefined ? undefined : JSON.stringify(patch.failure))),
    },
  });
}

async function moveUnfinished(db: Db, on: WriteTransaction, decided: readonly Settlement[]): Promise<void> {
  const staying = decided.filter(({ patch }) => patch.next !== "succeeded" && patch.next !== "cancelled");
  if (staying.length === 0) return;
  const { now } = await readPartitionRange(db, on);
  const moves = staying.map((item): JobMove => moveOf(item, item.patch, now));
  await putWaiting(db, on, moves);
  await addDeath(
    db,
    on,
    moves.filter((_, index) => staying[index]?.patch.diedOf !== undefined),
  );
}

function moveOf(item: Settlement, patch: Patch, now: number): JobMove {
  return {
    id: item.job,
    lane: item.lane,
    to: patch.next as JobMove["to"],
    attempts: patch.attempts,
    crashes: patch.crashes,
    ...(patch.delay === undefined ? {} : { runAt: now + patch.delay }),
    ...causeOfDeath(patch),
  };
}

function causeOfDeath({ failure, diedOf = failure }: Patch): Pick<JobMove, "failure"> {
  return diedOf === undefined ? {} : { failure: diedOf };
}
