import type { Failure } from "../../../core/jobs/failure.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { JobState } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { isSuspect } from "../../../core/jobs/outcome.js";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import { outcomeCode, stateCode } from "../connection/codes.js";
import type { Db, WriteTransaction } from "../connection/db.js";
import { LaneNumbers } from "../connection/lane-numbers.js";
import { sqlFile } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import { splitRows } from "../enqueue/ready-rows.js";

/**
 * The primitives of every change that is not on the hot path: take jobs out of the table they wait in, put them into
 * another, record in their history what a person or a duty did, and count it. Each is one statement over a batch.
 */
export interface WaitingJob {
  readonly id: JobId;
  readonly lane: Lane;
  readonly state: "blocked" | "scheduled" | "ready" | "parked";
  readonly attempts: number;
  readonly crashes: number;
  readonly runAt?: number;
}

type LaneColumns = { queue: string; priority: Lane["priority"]; tenant: string; task: string };
export function laneOf(row: LaneColumns): Lane {
  return { queue: row.queue, priority: row.priority, tenant: row.tenant, task: row.task };
}

const TAKE_WAITING = sqlFile("jobs/take-waiting.sql");

type TakenRow = LaneColumns & { state: WaitingJob["state"]; id: JobId; attempts: number; crashes: number; run_at: number | null };

/**
 * Takes the jobs out of wherever they wait, or out of where those of one state do. What is not answered does not wait there:
 * it has moved on, is running, finished or unknown.
 */
export async function takeWaiting(on: Queryable, ids: readonly JobId[], state?: WaitingJob["state"]): Promise<readonly WaitingJob[]> {
  if (ids.length === 0) return [];
  await splitRows(on, ids);
  const rows = await TAKE_WAITING.query<TakenRow>(on, { ids, state: state ?? null });
  return rows.map((row) => ({
    id: row.id,
    lane: laneOf(row),
    state: row.state,
    attempts: row.attempts,
    crashes: row.crashes,
    ...(row.run_at === null ? {} : { runAt: row.run_at }),
  }));
}

/** A job on its way into a waiting table. `runAt` in ms: for scheduled and blocked, and remembered by parked. */
export interface JobMove {
  readonly id: JobId;
  readonly lane: Lane;
  readonly to: WaitingJob["state"] | "dead";
  readonly attempts: number;
  readonly crashes: number;
  readonly runAt?: number;
  readonly failure?: Failure;
}

const PUT_WAITING = sqlFile("jobs/put-waiting.sql");

/** Those under limits that were to become ready line up instead: they are counted as parked, whatever the caller says. */
export async function putWaiting(db: Db, on: WriteTransaction, jobs: readonly JobMove[]): Promise<void> {
  if (jobs.length === 0) return;
  const lanes = new LaneNumbers();
  const numbers = jobs.map((job) => lanes.number(job.lane));
  const limitKeys = await PUT_WAITING.query<{ limit_key: LimitKeyId }>(on, {
    now: db.now(),
    lane: lanes.columns(),
    job: {
      id: jobs.map((job) => job.id),
      lane: numbers,
      state: jobs.map((job) => stateCode(job.to)),
      attempts: jobs.map((job) => job.attempts),
      crashes: jobs.map((job) => job.crashes),
      runAt: jobs.map((job) => job.runAt),
      suspect: jobs.map((job) => isSuspect(job.crashes)),
      kind: jobs.map((job) => job.failure?.kind ?? "error"),
      name: jobs.map((job) => job.failure?.name ?? "error"),
    },
  });
  for (const row of limitKeys) on.limitChecks.add(row.limit_key);
}

/** A line in a job's history that no worker wrote, under a fresh number of the same sequence as leases. */
export interface HistoryEntry {
  readonly id: JobId;
  readonly outcome: "cancelled" | "failed" | "redriven";
  readonly next: JobState;
  readonly attempts: number;
  readonly crashes: number;
  readonly failure?: Failure;
  /** encoded JSON kept with the entry */
  readonly output?: string;
}

const ADD_HISTORY = sqlFile("jobs/add-history.sql");

export async function addHistory(db: Db, on: Queryable, entries: readonly HistoryEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await ADD_HISTORY.query(on, {
    now: db.now(),
    entry: {
      job: entries.map((item) => item.id),
      outcome: entries.map((item) => outcomeCode(item.outcome)),
      next: entries.map((item) => stateCode(item.next)),
      attempts: entries.map((item) => item.attempts),
      crashes: entries.map((item) => item.crashes),
      failure: entries.map((item) => (item.failure === undefined ? undefined : JSON.stringify(item.failure))),
      output: entries.map((item) => item.output),
    },
  });
}

/** The same line for jobs that died while they waited: no attempt was made, and the failure says why. */
export function addDeath(db: Db, on: Queryable, dead: readonly JobMove[]): Promise<void> {
  return addHistory(
    db,
    on,
    dead.map(({ id, attempts, crashes, failure }) => ({
      id,
      outcome: "failed",
      next: "dead",
      attempts,
      crashes,
      ...(failure === undefined ? {} : { failure }),
    })),
  );
}
