import type { JobId, LeaseId } from "../../core/id.js";
import { type Asked, isFinished } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { gateKey } from "../../core/limit.js";
import { type Patch, withIntent } from "../../core/outcome.js";
import type { Settlement } from "../port-leases.js";
import { plainArray, textArray } from "./arrays.js";
import { settlementKey } from "./bundles.js";
import { outcomeCode, stateCode } from "./codes.js";
import { count } from "./counts.js";
import { type Db, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { markDead, type Placement, put } from "./pending.js";
import { isRecorded } from "./recorded.js";
import { release } from "./release.js";
import { readSpan } from "./span.js";
import { pauseGates, vacate } from "./tickets.js";

const LOCK_LEASES = statement(
  "lock_leases",
  "select id::text, array_to_string(jobs, ',') as jobs from pawl.lease where id = any($1::bigint[]) and worker = $2 order by id for update",
);
const SETTLED_BEFORE = statement(
  "settled_before",
  `select g.job, g.lease::text from unnest($1::bigint[], $2::uuid[]) as g(lease, job) where ${isRecorded("g.job", "g.lease")}`,
);
const INTENTS = statement(
  "intents_of",
  "select job, kind as intent, coalesce(reason, 'cancelled') as reason from pawl.intent where job = any($1::uuid[])",
);
const FORGET_INTENTS = statement("forget_intents", "delete from pawl.intent where job = any($1::uuid[])");

/**
 * Settles with everything that was asked of the jobs and everyone who waits for them looked after, in the caller's
 * transaction: a handler's own, the one of a raised guard, or the reaper's.
 */
export async function settleGuarded(db: Db, on: Queryable, worker: number, settlements: readonly Settlement[]): Promise<Applied> {
  const leases = [...new Set(settlements.map((item) => item.lease))];
  const own = await on.query<{ id: LeaseId; jobs: string }>(LOCK_LEASES, [plainArray(leases), worker]);
  const held = new Map(own.map((row) => [row.id, new Set(row.jobs.split(","))]));
  const mine = settlements.filter((item) => held.get(item.lease)?.has(item.job));
  return applyPatches(db, on, worker, mine);
}

export interface Applied {
  /** what was settled here, and not before */
  readonly fresh: readonly Settlement[];
  /** the lanes of dependents that became ready */
  readonly readied: readonly Lane[];
}

/** Applies patches to jobs whose leases are locked here. Jobs settled before under the same lease stay as they are. */
export async function applyPatches(db: Db, on: Queryable, worker: number, settlements: readonly Settlement[]): Promise<Applied> {
  if (settlements.length === 0) return { fresh: [], readied: [] };
  const before = await on.query<{ job: JobId; lease: LeaseId }>(SETTLED_BEFORE, [
    plainArray(settlements.map((item) => item.lease)),
    plainArray(settlements.map((item) => item.job)),
  ]);
  const known = new Set(before.map(settlementKey));
  const fresh = settlements.filter((item) => !known.has(settlementKey(item)));
  if (fresh.length === 0) return { fresh, readied: [] };
  const asked = new Map((await on.query<Asked & { job: JobId }>(INTENTS, [plainArray(fresh.map((item) => item.job))])).map((row) => [row.job, row]));
  const decided = fresh.map((item) => ({ ...item, patch: withIntent(item.patch, asked.get(item.job)) }));
  await append(on, worker, decided);
  await leaveGates(db, on, decided);
  await place(db, on, decided);
  const carriedOut = decided.filter((item) => asked.has(item.job) && (isFinished(item.patch.next) || item.patch.next === "parked"));
  if (carriedOut.length > 0) await on.query(FORGET_INTENTS, [plainArray(carriedOut.map((item) => item.job))]);
  await count(
    on,
    decided.map((item) => ({ lane: item.lane, from: "running" as const, to: item.patch.next })),
  );
  const readied = await release(
    db,
    on,
    decided.filter((item) => isFinished(item.patch.next)).map((item) => ({ id: item.job, state: item.patch.next })),
  );
  return { fresh, readied };
}

/** What they hold is free, and a key that was told to rest is at rest, before those that stay line up again. */
async function leaveGates(db: Db, on: Queryable, decided: readonly Settlement[]): Promise<void> {
  const limited = decided.filter((item) => item.limited === true);
  const over = limited.filter((item) => isFinished(item.patch.next));
  await vacate(
    db,
    on,
    over.map((item) => item.job),
    { finished: true },
  );
  await vacate(
    db,
    on,
    limited.filter((item) => !isFinished(item.patch.next)).map((item) => item.job),
    { finished: false },
  );
  await pauseGates(
    db,
    on,
    decided.flatMap(({ lane, patch }) => (patch.pauses === undefined ? [] : [{ gate: gateKey(lane.tenant, patch.pauses), for: patch.pauses.for }])),
  );
}

const APPEND = statement(
  "append_attempts",
  `
  with given as materialized (
    select * from unnest($2::bigint[], $3::uuid[], $4::int2[], $5::int2[], $6::int2[], $7::int2[], $8::float8[], $9::float8[], $10::text[], $11::text[])
      as g(lease, job, outcome, next, spent, crashes, started, finished, output, failure)
  ),
  a as (insert into pawl.attempt (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
    select lease, to_timestamp(started / 1000), to_timestamp(finished / 1000), job, $1, outcome, next, spent, crashes, output::json, failure::json
    from given where job >= (select floor from pawl.span)),
  k as (insert into pawl.attempt_kept (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
    select lease, to_timestamp(started / 1000), to_timestamp(finished / 1000), job, $1, outcome, next, spent, crashes, output::json, failure::json
    from given where job < (select floor from pawl.span)),
  done as materialized (select lease, count(*)::int as n from given group by lease),
  closed as (delete from pawl.lease l using done d where l.id = d.lease and l.open <= d.n),
  lowered as (
    update pawl.lease l set open = l.open - d.n, settled = case when l.settled is not null then l.settled + (
      select range_agg(int4range(u.place::int, u.place::int, '[]')) from unnest(l.jobs) with ordinality as u(job, place)
      where case when (l.id, u.job) in (select lease, job from given) then true else false end
    ) end
    from done d where l.id = d.lease and l.open > d.n
  )
  select 1`,
);

/** The leases are locked by this transaction's earlier statement, so this one's snapshot has their true `open`. */
async function append(on: Queryable, worker: number, decided: readonly Settlement[]): Promise<void> {
  const column = (value: (item: Settlement) => string | number | undefined): string => plainArray(decided.map(value));
  await on.query(APPEND, [
    worker,
    column((item) => item.lease),
    column((item) => item.job),
    column((item) => outcomeCode(item.patch.outcome)),
    column((item) => stateCode(item.patch.next)),
    column((item) => item.patch.spent),
    column((item) => item.patch.crashes),
    column((item) => item.startedAt),
    column((item) => item.finishedAt),
    textArray(decided.map((item) => item.patch.output)),
    textArray(decided.map((item) => (item.patch.failure === undefined ? undefined : JSON.stringify(item.patch.failure)))),
  ]);
}

async function place(db: Db, on: Queryable, decided: readonly Settlement[]): Promise<void> {
  const staying = decided.filter(({ patch }) => patch.next !== "succeeded" && patch.next !== "cancelled");
  if (staying.length === 0) return;
  const { now } = await readSpan(db, on);
  const placements = staying.map((item): Placement => placement(item, item.patch, now));
  await put(db, on, placements);
  await markDead(
    db,
    on,
    placements.filter((_, index) => staying[index]?.patch.diedOf !== undefined),
  );
}

function placement(item: Settlement, patch: Patch, now: number): Placement {
  return {
    id: item.job,
    lane: item.lane,
    to: patch.next as Placement["to"],
    spent: patch.spent,
    crashes: patch.crashes,
    ...(patch.delay === undefined ? {} : { runAt: now + patch.delay }),
    ...killer(patch),
  };
}

function killer({ failure, diedOf = failure }: Patch): Pick<Placement, "failure"> {
  return diedOf === undefined ? {} : { failure: diedOf };
}
