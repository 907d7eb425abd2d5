import { type DeathPolicy, doomedBy, releaseOf } from "../../core/dependency.js";
import type { JobId } from "../../core/id.js";
import type { State } from "../../core/job.js";
import { compareText } from "../../core/lane.js";
import { plainArray } from "./arrays.js";
import { count, type Move } from "./counts.js";
import { type Db, statement } from "./db.js";
import { die } from "./die.js";
import type { Queryable } from "./drivers/driver.js";
import { type PendingJob, type Placement, put, take } from "./pending.js";
import { readSpan } from "./span.js";

export interface Ended {
  readonly id: JobId;
  readonly state: State;
}

const DEPENDENTS = statement(
  "dependents",
  "select parent, child, on_death from pawl.dependency where parent = any($1::uuid[]) order by child, parent",
);
/** Two parents may end at once: each locks the child first and then counts what is left, so one of them sees zero. */
const LOCK_CHILDREN = statement("lock_children", "select id from pawl.blocked where id = any($1::uuid[]) order by id for update");
const SATISFY = statement(
  "satisfy",
  "delete from pawl.dependency d using unnest($1::uuid[], $2::uuid[]) as g(parent, child) where d.parent = g.parent and d.child = g.child",
);
const STILL_WAITING = statement("still_waiting", "select distinct child from pawl.dependency where child = any($1::uuid[])");
const PAUSED = statement("pause_intents", "delete from pawl.intent where job = any($1::uuid[]) and kind = 'pause' returning job");

/** Releases what waited for jobs that just ended, and what waited for the ones doomed by that, in the caller's transaction. */
export async function release(db: Db, on: Queryable, ended: readonly Ended[]): Promise<readonly PendingJob["lane"][]> {
  const readied: PendingJob["lane"][] = [];
  let wave = ended;
  while (wave.length > 0) {
    const states = new Map(wave.map((job) => [job.id, job.state]));
    const seen = await on.query<{ parent: JobId; child: JobId; on_death: DeathPolicy }>(DEPENDENTS, [plainArray([...states.keys()])]);
    if (seen.length === 0) return readied;
    const locked = await on.query<{ id: JobId }>(LOCK_CHILDREN, [plainArray([...new Set(seen.map((tie) => tie.child))])]);
    // A child that is blocked no more was released, cancelled or doomed by somebody else meanwhile.
    const blocked = new Set(locked.map((row) => row.id));
    const ties = seen.filter((tie) => blocked.has(tie.child));
    const satisfied = ties.filter((tie) => releaseOf(states.get(tie.parent) as State, tie.on_death) === "satisfied");
    const doomed = new Map(
      ties.filter((tie) => releaseOf(states.get(tie.parent) as State, tie.on_death) === "doomed").map((tie) => [tie.child, tie.parent]),
    );
    await on.query(SATISFY, [plainArray(satisfied.map((tie) => tie.parent)), plainArray(satisfied.map((tie) => tie.child))]);
    const freed = await unblock(
      db,
      on,
      [...new Set(satisfied.map((tie) => tie.child))].filter((child) => !doomed.has(child)),
    );
    readied.push(...freed);
    wave = await doom(db, on, doomed);
  }
  return readied;
}

/** Those of the jobs that wait for nothing any more go where their time says. */
async function unblock(db: Db, on: Queryable, children: readonly JobId[]): Promise<readonly PendingJob["lane"][]> {
  if (children.length === 0) return [];
  const waiting = new Set((await on.query<{ child: JobId }>(STILL_WAITING, [plainArray(children)])).map((row) => row.child));
  const free = await take(
    on,
    children.filter((child) => !waiting.has(child)),
  );
  if (free.length === 0) return [];
  const paused = new Set((await on.query<{ job: JobId }>(PAUSED, [plainArray(free.map((job) => job.id))])).map((row) => row.job));
  const { now } = await readSpan(db, on);
  const placements = [...free]
    .sort((a, b) => compareText(a.id, b.id))
    .map((job): Placement => {
      const later = job.runAt !== undefined && job.runAt > now;
      const to = paused.has(job.id) ? "parked" : later ? "scheduled" : "ready";
      return { id: job.id, lane: job.lane, to, spent: job.spent, crashes: job.crashes, ...(later ? { runAt: job.runAt } : {}) };
    });
  await put(db, on, placements);
  await count(
    on,
    placements.map((job): Move => ({ lane: job.lane, from: "blocked", to: job.to })),
  );
  return placements.filter((job) => job.to === "ready").map((job) => job.lane);
}

async function doom(db: Db, on: Queryable, doomed: ReadonlyMap<JobId, JobId>): Promise<readonly Ended[]> {
  const victims = await take(on, [...doomed.keys()]);
  await die(db, on, victims, ({ id }) => doomedBy(doomed.get(id) as JobId));
  return victims.map(({ id }) => ({ id, state: "dead" as const }));
}
