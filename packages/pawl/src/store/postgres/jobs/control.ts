import { failure } from "../../../core/jobs/failure.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { Intent, JobOptions, JobState } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { applies, type Verb } from "../../../core/jobs/lifecycle.js";
import { withoutTimers } from "../../../core/jobs/timer.js";
import type { Scope } from "../../port/index.js";
import type { JobChangeResult, RedriveOptions } from "../../port/jobs/jobs.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, NOW, type StoreDb, statement, type WriteTransaction } from "../connection/db.js";
import { readInside } from "../connection/tenant-role.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { releaseSlots, saveJobLimits } from "../limits/job-limits.js";
import { readPartitionRange } from "../schema/partition-range.js";
import { takeOutOfHistory } from "../settle/history.js";
import { releaseDependents } from "../settle/release-dependents.js";
import { count } from "./counters.js";
import type { Facts } from "./job-state.js";
import { find } from "./read.js";
import { addHistory, putWaiting, takeWaiting, type WaitingJob } from "./waiting-jobs.js";

/** What a verb did, and the lanes that have work because of it. */
export interface ControlReport {
  readonly change: JobChangeResult;
  readonly readied?: readonly Lane[];
  readonly finished?: JobId;
  readonly dueIn?: number;
}

const SET_INTENT = statement(
  "set_intent",
  `insert into pawl.intent as i (job, kind, reason, requested_at) values ($2::uuid, $3, $4, ${NOW})
   on conflict (job) do update set kind = excluded.kind, reason = excluded.reason where i.kind <> 'cancel'`,
);
const FORGET_INTENT = statement("forget_intent", "delete from pawl.intent where job = $1::uuid and ($2::text is null or kind = $2) returning kind");
const FORGET_TIES = statement("forget_ties", "delete from pawl.dependency where child = $1::uuid");

/** Between looking and taking, a job may be promoted or claimed: then look again. */
export const MAX_TRIES = 5;

/**
 * One verb on one job: found under the scope, refused where the lifecycle says so, carried out on a waiting job by
 * `onPending`, otherwise by `otherwise` (running, blocked by choice, finished).
 */
async function control(
  db: StoreDb,
  scope: Scope,
  id: JobId,
  verb: Verb,
  act: (tx: WriteTransaction, facts: Facts) => Promise<ControlReport | "look again">,
): Promise<ControlReport> {
  return db.transaction(async (tx) => {
    for (let tries = 1; ; tries++) {
      const facts = await readInside(db, tx, scope, (on) => find(on, scope, id));
      if (facts === undefined) return { change: { kind: "unknown" } };
      if (!applies(verb, facts.state)) return { change: { kind: "refused", state: facts.state } };
      const done = await act(tx, facts);
      if (done !== "look again") return done;
      if (tries === MAX_TRIES) return { change: { kind: "refused", state: facts.state } };
    }
  });
}

/** Takes the job from where it was seen. One that has moved on is left alone: put back, it would not be where it was. */
async function takeOne(tx: WriteTransaction, { id, state }: Facts): Promise<WaitingJob | undefined> {
  const [job] = await takeWaiting(tx, [id], state as WaitingJob["state"]);
  return job;
}

export function cancel(db: StoreDb, scope: Scope, id: JobId, reason: string): Promise<ControlReport> {
  return control(db, scope, id, "cancel", async (tx, facts) => {
    if (facts.state === "running") return requestIntent(db, tx, id, "cancel", reason, "running");
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    const readied = await endWaiting(db, tx, job, "cancelled", reason);
    return { change: { kind: "changed", from: job.state, to: "cancelled" }, readied, finished: id };
  });
}

/** A waiting job ends without an attempt: cancelled here, or replaced by one with its key. */
export async function endWaiting(db: Db, tx: WriteTransaction, job: WaitingJob, state: "cancelled", reason: string): Promise<readonly Lane[]> {
  await tx.query(FORGET_TIES, [job.id]);
  await tx.query(FORGET_INTENT, [job.id, null]);
  await releaseSlots(db, tx, [job.id], { finished: true });
  await addHistory(db, tx, [
    { id: job.id, outcome: "cancelled", next: state, attempts: job.attempts, crashes: job.crashes, failure: failure("error", reason) },
  ]);
  await count(tx, [{ lane: job.lane, from: job.state, to: state }]);
  return releaseDependents(db, tx, [{ id: job.id, state }]);
}

async function requestIntent(db: Db, tx: WriteTransaction, id: JobId, intent: Intent, reason: string, state: JobState): Promise<ControlReport> {
  await tx.query(SET_INTENT, [db.now(), id, intent, reason]);
  return { change: { kind: "changed", from: state, to: state } };
}

export function pause(db: StoreDb, scope: Scope, id: JobId, reason = "paused"): Promise<ControlReport> {
  return control(db, scope, id, "pause", async (tx, facts) => {
    if (facts.state === "running" || facts.state === "blocked") return requestIntent(db, tx, id, "pause", reason, facts.state);
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    await releaseSlots(db, tx, [id], { finished: false });
    await putWaiting(db, tx, [{ ...job, to: "parked" }]);
    await count(tx, [{ lane: job.lane, from: job.state, to: "parked" }]);
    return { change: { kind: "changed", from: job.state, to: "parked" } };
  });
}

export function resume(db: StoreDb, scope: Scope, id: JobId): Promise<ControlReport> {
  return control(db, scope, id, "resume", async (tx, facts) => {
    if (facts.state !== "parked") {
      await tx.query(FORGET_INTENT, [id, "pause"]);
      return { change: { kind: "changed", from: facts.state, to: facts.state } };
    }
    // It waits at a limit key, where nobody paused it.
    if (facts.limitKey !== undefined) return { change: { kind: "changed", from: "parked", to: "parked" } };
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    const { now } = await readPartitionRange(db, tx);
    const to = job.runAt !== undefined && job.runAt > now ? "scheduled" : "ready";
    return makeWait(db, tx, job, facts, to, job.runAt ?? now, now);
  });
}

export function promoteJob(db: StoreDb, scope: Scope, id: JobId): Promise<ControlReport> {
  return control(db, scope, id, "promote", async (tx, facts) => {
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    return makeWait(db, tx, job, facts, "ready", 0, 0);
  });
}

async function makeWait(
  db: Db,
  tx: WriteTransaction,
  job: WaitingJob,
  { options }: Facts,
  to: "ready" | "scheduled",
  runAt: number,
  now: number,
): Promise<ControlReport> {
  await putWaiting(db, tx, [
    { id: job.id, lane: job.lane, to, attempts: job.attempts, crashes: job.crashes, ...(to === "scheduled" ? { runAt } : {}) },
  ]);
  await count(tx, [{ lane: job.lane, from: job.state, to }]);
  const change: JobChangeResult = { kind: "changed", from: job.state, to: stateFor(to, options) };
  return to === "ready" ? { change, readied: [job.lane] } : { change, dueIn: runAt - now };
}

/** One under limits lines up first. */
function stateFor(to: "ready" | "scheduled", { limits }: JobOptions): JobState {
  return to === "ready" && limits !== undefined ? "parked" : to;
}

const REVIVE_DEAD = statement("raise_dead", `delete from pawl.dead where id = $1::uuid returning id  -- guard: dead-was-deleted`);
/** The one change ever made to a job's facts, and only to those of a dead one. */
const EDIT = ["job", "job_kept"].map((table) =>
  statement(`edit_${table}`, `update pawl.${table} set input = $2::json, options = $3::json where id = $1::uuid`),
);
const FORGET_TIMERS = statement("forget_timers", "delete from pawl.timer where job = $1::uuid");

export function redrive(db: StoreDb, scope: Scope, id: JobId, how: RedriveOptions): Promise<ControlReport> {
  return control(db, scope, id, "redrive", async (tx, facts) => {
    if ((await tx.query(REVIVE_DEAD, [id])).length === 0) return "look again";
    const timed = facts.options.startWithin !== undefined || facts.options.finishWithin !== undefined;
    if (how.input !== undefined || timed)
      for (const edit of EDIT) await tx.query(edit, [id, how.input ?? facts.input, JSON.stringify(withoutTimers(facts.options))]);
    await tx.query(FORGET_TIMERS, [id]);
    // A settlement that killed it may have passed by what was asked of it.
    await tx.query(FORGET_INTENT, [id, null]);
    const { now } = await readPartitionRange(db, tx);
    const delay = how.delay ?? 0;
    const to = delay > 0 ? "scheduled" : "ready";
    if (facts.options.limits !== undefined) await saveJobLimits(db, tx, [{ id, tenant: facts.lane.tenant, limits: facts.options.limits }]);
    await addHistory(db, tx, [
      {
        id,
        outcome: "redriven",
        next: to,
        attempts: 0,
        crashes: 0,
        ...(how.input === undefined ? {} : { output: facts.input }),
        ...(how.reason === undefined ? {} : { failure: failure("error", how.reason) }),
      },
    ]);
    await putWaiting(db, tx, [{ id, lane: facts.lane, to, attempts: 0, crashes: 0, ...(delay > 0 ? { runAt: now + delay } : {}) }]);
    await count(tx, [{ lane: facts.lane, from: "dead", to }]);
    const change: JobChangeResult = { kind: "changed", from: "dead", to: stateFor(to, facts.options) };
    return to === "ready" ? { change, readied: [facts.lane] } : { change, dueIn: delay };
  });
}

const ROWS_OF: readonly [table: string, column: string][] = [
  ["history_kept", "first"],
  ["log", "job"],
  ["log_kept", "job"],
  ["effect", "job"],
  ["timer", "job"],
  ["intent", "job"],
  ["unique_key", "job"],
  ["slot", "job"],
  ["job_limits", "job"],
  ["dead", "id"],
];
const DELETE_ROWS = ROWS_OF.map(([table, column]) => statement(`drop_${table}`, `delete from pawl.${table} where ${column} = any($1::uuid[])`));
const DROP_FACTS = ["job", "job_kept"].map((table) =>
  statement(`drop_${table}`, `delete from pawl.${table} where id = any($1::uuid[]) returning id  -- guard: facts-were-deleted`),
);

/** Answers those that were there: two may drop the same job, and only one of them has. */
export async function deleteJobs(tx: DriverTransaction, ids: readonly JobId[]): Promise<ReadonlySet<JobId>> {
  if (ids.length === 0) return new Set();
  await takeOutOfHistory(tx, ids, { keep: false });
  const gone = new Set<JobId>();
  for (const one of DROP_FACTS) for (const row of await tx.query<{ id: JobId }>(one, [plainArray(ids)])) gone.add(row.id);
  for (const one of DELETE_ROWS) await tx.query(one, [plainArray([...gone])]);
  return gone;
}

export function deleteJob(db: StoreDb, scope: Scope, id: JobId): Promise<ControlReport> {
  return control(db, scope, id, "delete", async (tx, facts) => {
    if (facts.state === "dead" && (await tx.query(REVIVE_DEAD, [id])).length === 0) return "look again";
    if ((await deleteJobs(tx, [id])).size === 0) return "look again";
    // A job that waits for one that is gone is judged as if it had been cancelled.
    const readied = await releaseDependents(db, tx, [{ id, state: "cancelled" }]);
    await count(tx, [{ lane: facts.lane, from: facts.state, to: undefined }]);
    return { change: { kind: "changed", from: facts.state, to: "deleted" }, readied };
  });
}
