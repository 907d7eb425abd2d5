import { type DeathPolicy, dependencyMeaning, failureOfParent } from "../../../core/jobs/dependency.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { JobState } from "../../../core/jobs/job.js";
import { compareText } from "../../../core/jobs/lane.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, statement, type WriteTransaction } from "../connection/db.js";
import { type CountedMove, count } from "../jobs/counters.js";
import { type JobMove, putWaiting, takeWaiting, type WaitingJob } from "../jobs/waiting-jobs.js";
import { readPartitionRange } from "../schema/partition-range.js";
import { killJobs } from "./kill-jobs.js";

export interface Ended {
  readonly id: JobId;
  readonly state: JobState;
}

const DEPENDENTS = statement(
  "dependents",
  "select parent, child, on_dependency_death from pawl.dependency where parent = any($1::uuid[]) order by child, parent",
);
/** Two parents may end at once: each locks the child first and then counts what is left, so one of them sees zero. */
const LOCK_CHILDREN = statement(
  "lock_children",
  `select id from pawl.blocked where id = any($1::uuid[]) order by id  -- guard: child-is-blocked
  for update  -- guard: child-locked`,
);
const SATISFY = statement(
  "satisfy",
  "delete from pawl.dependency d using unnest($1::uuid[], $2::uuid[]) as g(parent, child) where d.parent = g.parent and d.child = g.child",
);
const STILL_WAITING = statement("still_waiting", "select distinct child from pawl.dependency where child = any($1::uuid[])");
const PAUSED = statement("pause_intents", "delete from pawl.intent where job = any($1::uuid[]) and kind = 'pause' returning job");

/** Releases what waited for jobs that just ended, and what waited for the ones dying by that, in the caller's transaction. */
export async function releaseDependents(db: Db, on: WriteTransaction, ended: readonly Ended[]): Promise<readonly WaitingJob["lane"][]> {
  const readied: WaitingJob["lane"][] = [];
  let wave = ended;
  while (wave.length > 0) {
    const states = new Map(wave.map((job) => [job.id, job.state]));
    const seen = await on.query<{ parent: JobId; child: JobId; on_dependency_death: DeathPolicy }>(DEPENDENTS, [plainArray([...states.keys()])]);
    if (seen.length === 0) return readied;
    const locked = await on.query<{ id: JobId }>(LOCK_CHILDREN, [plainArray([...new Set(seen.map((tie) => tie.child))])]);
    // A child that is blocked no more was released, cancelled or dying by somebody else meanwhile.
    const blocked = new Set(locked.map((row) => row.id));
    const ties = seen.filter((tie) => blocked.has(tie.child));
    const satisfied = ties.filter((tie) => dependencyMeaning(states.get(tie.parent) as JobState, tie.on_dependency_death) === "satisfied");
    const dying = new Map(
      ties
        .filter((tie) => dependencyMeaning(states.get(tie.parent) as JobState, tie.on_dependency_death) === "dying")
        .map((tie) => [tie.child, tie.parent]),
    );
    await on.query(SATISFY, [plainArray(satisfied.map((tie) => tie.parent)), plainArray(satisfied.map((tie) => tie.child))]);
    const freed = await unblock(
      db,
      on,
      [...new Set(satisfied.map((tie) => tie.child))].filter((child) => !dying.has(child)),
    );
    readied.push(...freed);
    wave = await killDependents(db, on, dying);
  }
  return readied;
}

/** Those of the jobs that wait for nothing any more go where their time says. */
async function unblock(db: Db, on: WriteTransaction, children: readonly JobId[]): Promise<readonly WaitingJob["lane"][]> {
  if (children.length === 0) return [];
  const waiting = new Set((await on.query<{ child: JobId }>(STILL_WAITING, [plainArray(children)])).map((row) => row.child));
  const free = await takeWaiting(
    on,
    children.filter((child) => !waiting.has(child)),
  );
  if (free.length === 0) return [];
  const paused = new Set((await on.query<{ job: JobId }>(PAUSED, [plainArray(free.map((job) => job.id))])).map((row) => row.job));
  const { now } = await readPartitionRange(db, on);
  const moves = [...free]
    .sort((a, b) => compareText(a.id, b.id))
    .map((job): JobMove => {
      const later = job.runAt !== undefined && job.runAt > now;
      const to = paused.has(job.id) ? "parked" : later ? "scheduled" : "ready";
      return { id: job.id, lane: job.lane, to, attempts: job.attempts, crashes: job.crashes, ...(later ? { runAt: job.runAt } : {}) };
    });
  await putWaiting(db, on, moves);
  await count(
    on,
    moves.map((job): CountedMove => ({ lane: job.lane, from: "blocked", to: job.to })),
  );
  return moves.filter((job) => job.to === "ready").map((job) => job.lane);
}

async function killDependents(db: Db, on: WriteTransaction, dying: ReadonlyMap<JobId, JobId>): Promise<readonly Ended[]> {
  const victims = await takeWaiting(on, [...dying.keys()]);
  await killJobs(db, on, victims, ({ id }) => failureOfParent(dying.get(id) as JobId));
  return victims.map(({ id }) => ({ id, state: "dead" as const }));
}
