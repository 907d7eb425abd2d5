import { failure } from "../../core/failure.js";
import type { JobId } from "../../core/id.js";
import type { Intent, JobOptions, State } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { applies, type Verb } from "../../core/lifecycle.js";
import { withoutTimers } from "../../core/timer.js";
import type { Scope } from "../port.js";
import type { Change, RedriveOptions } from "../port-jobs.js";
import { plainArray } from "./arrays.js";
import { count } from "./counts.js";
import { type Db, NOW, statement } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import type { Facts } from "./facts.js";
import { takeOutOfHistory } from "./history.js";
import { mark, type PendingJob, put, take } from "./pending.js";
import { find } from "./read.js";
import { release } from "./release.js";
import { readSpan } from "./span.js";
import { saveTickets, vacate } from "./tickets.js";
import { readInside } from "./wall.js";

/** What a verb did, and the lanes that have work because of it. */
export interface Controlled {
  readonly change: Change;
  readonly readied?: readonly Lane[];
  readonly finished?: JobId;
  readonly dueIn?: number;
}

const SET_INTENT = statement(
  "set_intent",
  `insert into pawl.intent as i (job, kind, reason, asked_at) values ($2::uuid, $3, $4, ${NOW})
   on conflict (job) do update set kind = excluded.kind, reason = excluded.reason where i.kind <> 'cancel'`,
);
const FORGET_INTENT = statement("forget_intent", "delete from pawl.intent where job = $1::uuid and ($2::text is null or kind = $2) returning kind");
const FORGET_TIES = statement("forget_ties", "delete from pawl.dependency where child = $1::uuid");

/** Between looking and taking, a job may be promoted or claimed: then look again. */
export const MOST_LOOKS = 5;

/**
 * One verb on one job: found under the scope, refused where the lifecycle says so, carried out on a waiting job by
 * `onPending`, otherwise by `otherwise` (running, blocked by choice, finished).
 */
async function control(
  db: Db,
  scope: Scope,
  id: JobId,
  verb: Verb,
  act: (tx: Transaction, facts: Facts) => Promise<Controlled | "look again">,
): Promise<Controlled> {
  return db.transaction(async (tx) => {
    for (let looks = 1; ; looks++) {
      const facts = await readInside(db, tx, scope, (on) => find(on, scope, id));
      if (facts === undefined) return { change: { kind: "unknown" } };
      if (!applies(verb, facts.state)) return { change: { kind: "refused", state: facts.state } };
      const done = await act(tx, facts);
      if (done !== "look again") return done;
      if (looks === MOST_LOOKS) return { change: { kind: "refused", state: facts.state } };
    }
  });
}

/** Takes the job from where it was seen. One that has moved on is left alone: put back, it would not be where it was. */
async function takeOne(tx: Transaction, { id, state }: Facts): Promise<PendingJob | undefined> {
  const [job] = await take(tx, [id], state as PendingJob["state"]);
  return job;
}

export function cancel(db: Db, scope: Scope, id: JobId, reason: string): Promise<Controlled> {
  return control(db, scope, id, "cancel", async (tx, facts) => {
    if (facts.state === "running") return ask(db, tx, id, "cancel", reason, "running");
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    const readied = await end(db, tx, job, "cancelled", reason);
    return { change: { kind: "changed", from: job.state, to: "cancelled" }, readied, finished: id };
  });
}

/** A waiting job ends without an attempt: cancelled here, or replaced by one with its key. */
export async function end(db: Db, tx: Transaction, job: PendingJob, state: "cancelled", reason: string): Promise<readonly Lane[]> {
  await tx.query(FORGET_TIES, [job.id]);
  await tx.query(FORGET_INTENT, [job.id, null]);
  await vacate(db, tx, [job.id], { finished: true });
  await mark(db, tx, [{ id: job.id, outcome: "cancelled", next: state, spent: job.spent, crashes: job.crashes, failure: failure("error", reason) }]);
  await count(tx, [{ lane: job.lane, from: job.state, to: state }]);
  return release(db, tx, [{ id: job.id, state }]);
}

async function ask(db: Db, tx: Transaction, id: JobId, intent: Intent, reason: string, state: State): Promise<Controlled> {
  await tx.query(SET_INTENT, [db.now(), id, intent, reason]);
  return { change: { kind: "changed", from: state, to: state } };
}

export function pause(db: Db, scope: Scope, id: JobId): Promise<Controlled> {
  return control(db, scope, id, "pause", async (tx, facts) => {
    if (facts.state === "running" || facts.state === "blocked") return ask(db, tx, id, "pause", "paused", facts.state);
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    await vacate(db, tx, [id], { finished: false });
    await put(db, tx, [{ ...job, to: "parked" }]);
    await count(tx, [{ lane: job.lane, from: job.state, to: "parked" }]);
    return { change: { kind: "changed", from: job.state, to: "parked" } };
  });
}

export function resume(db: Db, scope: Scope, id: JobId): Promise<Controlled> {
  return control(db, scope, id, "resume", async (tx, facts) => {
    if (facts.state !== "parked") {
      await tx.query(FORGET_INTENT, [id, "pause"]);
      return { change: { kind: "changed", from: facts.state, to: facts.state } };
    }
    // It waits at a gate, where nobody paused it.
    if (facts.parkedAt !== undefined) return { change: { kind: "changed", from: "parked", to: "parked" } };
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    const { now } = await readSpan(db, tx);
    const to = job.runAt !== undefined && job.runAt > now ? "scheduled" : "ready";
    return wait(db, tx, job, facts, to, job.runAt ?? now, now);
  });
}

export function retry(db: Db, scope: Scope, id: JobId): Promise<Controlled> {
  return control(db, scope, id, "retry", async (tx, facts) => {
    const job = await takeOne(tx, facts);
    if (job === undefined) return "look again";
    return wait(db, tx, job, facts, "ready", 0, 0);
  });
}

async function wait(
  db: Db,
  tx: Transaction,
  job: PendingJob,
  { options }: Facts,
  to: "ready" | "scheduled",
  runAt: number,
  now: number,
): Promise<Controlled> {
  await put(db, tx, [{ id: job.id, lane: job.lane, to, spent: job.spent, crashes: job.crashes, ...(to === "scheduled" ? { runAt } : {}) }]);
  await count(tx, [{ lane: job.lane, from: job.state, to }]);
  const change: Change = { kind: "changed", from: job.state, to: placeFor(to, options) };
  return to === "ready" ? { change, readied: [job.lane] } : { change, dueIn: runAt - now };
}

/** One under limits lines up first. */
function placeFor(to: "ready" | "scheduled", { limits }: JobOptions): State {
  return to === "ready" && limits !== undefined ? "parked" : to;
}

const RAISE = statement("raise_dead", "delete from pawl.dead where id = $1::uuid returning id");
/** The one change ever made to a job's facts, and only to those of a dead one. */
const EDIT = ["job", "job_kept"].map((table) =>
  statement(`edit_${table}`, `update pawl.${table} set input = $2::json, options = $3::json where id = $1::uuid`),
);
const FORGET_TIMERS = statement("forget_timers", "delete from pawl.timer where job = $1::uuid");

export function redrive(db: Db, scope: Scope, id: JobId, how: RedriveOptions): Promise<Controlled> {
  return control(db, scope, id, "redrive", async (tx, facts) => {
    if ((await tx.query(RAISE, [id])).length === 0) return "look again";
    const timed = facts.options.expire !== undefined || facts.options.deadline !== undefined;
    if (how.input !== undefined || timed)
      for (const edit of EDIT) await tx.query(edit, [id, how.input ?? facts.input, JSON.stringify(withoutTimers(facts.options))]);
    await tx.query(FORGET_TIMERS, [id]);
    // A settlement that killed it may have passed by what was asked of it.
    await tx.query(FORGET_INTENT, [id, null]);
    const { now } = await readSpan(db, tx);
    const delay = how.delay ?? 0;
    const to = delay > 0 ? "scheduled" : "ready";
    if (facts.options.limits !== undefined) await saveTickets(db, tx, [{ id, tenant: facts.lane.tenant, limits: facts.options.limits }]);
    await mark(db, tx, [{ id, outcome: "redriven", next: to, spent: 0, crashes: 0, ...(how.input === undefined ? {} : { output: facts.input }) }]);
    await put(db, tx, [{ id, lane: facts.lane, to, spent: 0, crashes: 0, ...(delay > 0 ? { runAt: now + delay } : {}) }]);
    await count(tx, [{ lane: facts.lane, from: "dead", to }]);
    const change: Change = { kind: "changed", from: "dead", to: placeFor(to, facts.options) };
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
  ["key", "job"],
  ["slot", "job"],
  ["ticket", "job"],
  ["dead", "id"],
];
const DROP = ROWS_OF.map(([table, column]) => statement(`drop_${table}`, `delete from pawl.${table} where ${column} = any($1::uuid[])`));
const DROP_FACTS = ["job", "job_kept"].map((table) =>
  statement(`drop_${table}`, `delete from pawl.${table} where id = any($1::uuid[]) returning id`),
);

/** Answers those that were there: two may drop the same job, and only one of them has. */
export async function dropJobs(tx: Transaction, ids: readonly JobId[]): Promise<ReadonlySet<JobId>> {
  if (ids.length === 0) return new Set();
  await takeOutOfHistory(tx, ids, { keep: false });
  const gone = new Set<JobId>();
  for (const one of DROP_FACTS) for (const row of await tx.query<{ id: JobId }>(one, [plainArray(ids)])) gone.add(row.id);
  for (const one of DROP) await tx.query(one, [plainArray([...gone])]);
  return gone;
}

export function drop(db: Db, scope: Scope, id: JobId): Promise<Controlled> {
  return control(db, scope, id, "drop", async (tx, facts) => {
    if (facts.state === "dead" && (await tx.query(RAISE, [id])).length === 0) return "look again";
    if ((await dropJobs(tx, [id])).size === 0) return "look again";
    // A job that waits for one that is gone is judged as if it had been cancelled.
    const readied = await release(db, tx, [{ id, state: "cancelled" }]);
    await count(tx, [{ lane: facts.lane, from: facts.state, to: undefined }]);
    return { change: { kind: "changed", from: facts.state, to: "gone" }, readied };
  });
}
