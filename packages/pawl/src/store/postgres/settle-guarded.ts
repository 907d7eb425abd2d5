import type { JobId, LeaseId } from "../../core/id.js";
import { type Asked, isFinished } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { gateKey } from "../../core/limit.js";
import { type Patch, withIntent } from "../../core/outcome.js";
import type { Settlement } from "../port-leases.js";
import { plainArray, textArray } from "./arrays.js";
import { outcomeCode, stateCode } from "./codes.js";
import { count } from "./counts.js";
import { type Db, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { APPEND_SINGLES } from "./history.js";
import { markDead, type Placement, put } from "./pending.js";
import { release } from "./release.js";
import { SettledPlaces } from "./settled-places.js";
import { readSpan } from "./span.js";
import { pauseGates, vacate } from "./tickets.js";

const LOCK_LEASES = statement(
  "lock_leases",
  "select id::text, array_to_string(jobs, ',') as jobs, settled::text from pawl.lease where id = any($1::bigint[]) and worker = $2 order by id for update",
);
const INTENTS = statement(
  "intents_of",
  "select job, kind as intent, coalesce(reason, 'cancelled') as reason from pawl.intent where job = any($1::uuid[])",
);
const FORGET_INTENTS = statement("forget_intents", "delete from pawl.intent where job = any($1::uuid[])");

/** What stands for an attempt among all others. */
export function settlementKey({ lease, job }: Pick<Settlement, "lease" | "job">): string {
  return `${lease}:${job}`;
}

/** A settlement of a job that is in its lease, at this place from 1, and is not settled. */
export type Unsettled = Settlement & { readonly place: number };

export interface GuardedReport {
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
export async function settleGuarded(db: Db, on: Queryable, worker: number, settlements: readonly Settlement[]): Promise<GuardedReport> {
  const leases = [...new Set(settlements.map((item) => item.lease))];
  const own = await on.query<{ id: LeaseId; jobs: string; settled: string }>(LOCK_LEASES, [plainArray(leases), worker]);
  const held = new Map(own.map(({ id, jobs, settled }) => [id, { places: placesOf(jobs), settled: new SettledPlaces(settled) }]));
  const unknown: Settlement[] = [];
  const repeated: Settlement[] = [];
  const unsettled: Unsettled[] = [];
  for (const item of settlements) {
    const lease = held.get(item.lease);
    const place = lease?.places.get(item.job);
    if (lease === undefined || place === undefined) unknown.push(item);
    else if (lease.settled.has(place)) repeated.push(item);
    else unsettled.push({ ...item, place });
  }
  return { unknown, repeated, readied: await applyPatches(db, on, worker, unsettled) };
}

function placesOf(jobs: string): ReadonlyMap<string, number> {
  return new Map(jobs.split(",").map((job, index) => [job, index + 1]));
}

/** Applies patches to jobs whose leases are locked here. Answers with the lanes of dependents that became ready. */
export async function applyPatches(db: Db, on: Queryable, worker: number, fresh: readonly Unsettled[]): Promise<readonly Lane[]> {
  if (fresh.length === 0) return [];
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
  return release(
    db,
    on,
    decided.filter((item) => isFinished(item.patch.next)).map((item) => ({ id: item.job, state: item.patch.next })),
  );
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
    select $1::int as worker, g.lease, g.job, g.place, g.outcome, g.next, g.spent, g.crashes, to_timestamp(g.started / 1000) as since, to_timestamp(g.finished / 1000) as ended,
      g.output, g.failure
    from unnest($2::bigint[], $3::uuid[], $4::int[], $5::int2[], $6::int2[], $7::int2[], $8::int2[], $9::float8[], $10::float8[], $11::text[], $12::text[])
      as g(lease, job, place, outcome, next, spent, crashes, started, finished, output, failure)
  ),
  ${APPEND_SINGLES},
  done as materialized (select lease, count(*)::int as n, range_agg(int4range(place, place, '[]')) as places from given group by lease),
  closed as (delete from pawl.lease l using done d where l.id = d.lease and l.open <= d.n),
  lowered as (update pawl.lease l set open = l.open - d.n, settled = l.settled + d.places from done d where l.id = d.lease and l.open > d.n)
  select 1`,
);

/** The leases are locked by this transaction's earlier statement, so this one's snapshot has their true `open`. */
async function append(on: Queryable, worker: number, decided: readonly Unsettled[]): Promise<void> {
  const column = (value: (item: Unsettled) => string | number | undefined): string => plainArray(decided.map(value));
  await on.query(APPEND, [
    worker,
    column((item) => item.lease),
    column((item) => item.job),
    column((item) => item.place),
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
