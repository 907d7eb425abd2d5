import type { JobId, LeaseId } from "../../core/id.js";
import { isFinished } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { WorkerRef } from "../../core/lease.js";
import { isSuspect } from "../../core/outcome.js";
import type { ForeignTransaction, Settled, Settlement } from "../port.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import { outcomeCode, stateCode } from "./codes.js";
import { type Db, foreignDb, NOW, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { LanesTable } from "./lanes-table.js";
import { settleGuarded } from "./settle-guarded.js";
import type { Workers } from "./workers.js";

/**
 * The hot exit: one statement that locks the leases in order, checks that each job is in its lease, appends the
 * attempts (the insert is the acknowledgement), lowers `open` by the rows really inserted, and moves the jobs on.
 *
 * - `guard`: where something was asked of a job, or jobs wait for one that ends, it does nothing and says so;
 *   `settle-guarded.ts` then does the same with those looked after. Both are rare. What came after the snapshot it
 *   cannot see: intents are left to `carryOut`; for the rest the lease is marked as `watched`, which `own` does see.
 * - `own` returns the lease as it is after the lock; `open` is taken from there, never from the snapshot.
 * - attempts of jobs below the floor go to attempt_kept, unless the old partition has them already.
 * - the rows of a batch are matched by IN inside CASE, which Postgres must do by hashing: it believes that an array
 *   parameter has ten elements, and would join two such sets of five hundred by a nested loop.
 */
const IS_SETTLED = "case when (f.job, f.lease) in (select job, lease from settled) then true else false end";
const LANE = "($3::text[])[f.lane] as queue, ($4::int2[])[f.lane] as band, ($5::text[])[f.lane] as tenant, ($6::text[])[f.lane] as task";
const SETTLE = statement(
  "settle",
  `
  with given as materialized (
    select g.*, to_timestamp(g.started / 1000) as started_at, to_timestamp(g.finished / 1000) as finished_at
    from unnest($7::bigint[], $8::uuid[], $9::int[], $10::int2[], $11::int2[], $12::int2[], $13::int2[], $14::float8[], $15::float8[], $16::float8[], $17::bool[], $18::text[], $19::text[], $20::text[], $21::text[])
      as g(lease, job, lane, outcome, next, spent, crashes, started, finished, delay, suspect, output, failure, kind, name)
  ),
  guard as materialized (
    select exists (select from pawl.dependency where parent = any($22::uuid[])) or exists (select from pawl.intent where job = any($8::uuid[])) as raised
  ),
  own as materialized (
    select id, open, watched, jobs from pawl.lease where id = any($23::bigint[]) and worker = $2 order by id for update
  ),
  aside as materialized (select raised or exists (select from own where watched) as raised from guard),
  fit as materialized (
    select * from given g where not (select raised from aside)
      and case when (g.lease, g.job) in (select own.id, u.job from own cross join lateral unnest(own.jobs) as u(job)) then true else false end
  ),
  fresh as (
    insert into pawl.attempt (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
    select lease, started_at, finished_at, job, $2, outcome, next, spent, crashes, output::json, failure::json from fit where job >= (select floor from pawl.span)
    on conflict do nothing returning job, lease
  ),
  fresh_kept as (
    insert into pawl.attempt_kept (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
    select lease, started_at, finished_at, job, $2, outcome, next, spent, crashes, output::json, failure::json from fit f
    where job < (select floor from pawl.span) and not exists (select from pawl.attempt a where a.job = f.job and a.lease = f.lease)
    on conflict do nothing returning job, lease
  ),
  settled as materialized (select job, lease from fresh union all select job, lease from fresh_kept),
  done as materialized (select lease, count(*)::int as n from settled group by lease),
  closed as (delete from pawl.lease l using own o join done d on d.lease = o.id where l.id = o.id and o.open <= d.n),
  lowered as (update pawl.lease l set open = o.open - d.n from own o join done d on d.lease = o.id where l.id = o.id and o.open > d.n),
  moved as materialized (
    select f.*, ${LANE} from fit f where f.next <> ${stateCode("succeeded")} and f.next <> ${stateCode("cancelled")} and ${IS_SETTLED}
  ),
  r as (insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
    select job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("ready")} and not suspect),
  u as (insert into pawl.suspect (id, band, spent, crashes, queue, tenant, task)
    select job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("ready")} and suspect),
  s as (insert into pawl.scheduled (run_at, id, band, spent, crashes, queue, tenant, task)
    select ${NOW} + delay * interval '1 millisecond', job, band, spent, crashes, queue, tenant, task from moved where next = ${stateCode("scheduled")}),
  d as (insert into pawl.dead (died_at, id, band, queue, tenant, task, kind, name)
    select ${NOW}, job, band, queue, tenant, task, kind, name from moved where next = ${stateCode("dead")}),
  counted as (
    insert into pawl.delta (queue, task, running, succeeded, ready, scheduled, dead, cancelled)
    select ($3::text[])[f.lane], ($6::text[])[f.lane], -count(*), count(*) filter (where f.next = ${stateCode("succeeded")}), count(*) filter (where f.next = ${stateCode("ready")}),
      count(*) filter (where f.next = ${stateCode("scheduled")}), count(*) filter (where f.next = ${stateCode("dead")}), count(*) filter (where f.next = ${stateCode("cancelled")})
    from fit f where ${IS_SETTLED} group by f.lane
  )
  select (select raised from aside) as raised, (select count(*)::int from settled) as settled`,
);

const CLASSIFY = statement(
  "classify_settled",
  `select exists (select from pawl.any_attempt a where a.job = g.job and a.lease = g.lease and a.worker = $1 and a.outcome <> ${outcomeCode("crashed")}) as known
   from unnest($2::bigint[], $3::uuid[]) with ordinality as g(lease, job, ord) order by g.ord`,
);

/** The answers in order, and the lanes of dependents that became ready. */
export interface SettleReport {
  readonly answers: readonly Settled[];
  readonly readied: readonly Lane[];
}

export async function settle(db: Db, workers: Workers, ref: WorkerRef, given: readonly Settlement[], tx?: ForeignTransaction): Promise<SettleReport> {
  if (given.length === 0) return { answers: [], readied: [] };
  // Of two settlements of one job in one batch the first counts: set last to first, so that it is the one that stays.
  const first = new Map([...given].reverse().map((item) => [`${item.lease}:${item.job}`, item]));
  const settlements = first.size === given.length ? given : [...first.values()];
  const report = await settleDistinct(db, await workers.id(ref), settlements, tx);
  if (settlements === given) return report;
  const { answers, readied } = report;
  const byJob = new Map(settlements.map((item, index) => [`${item.lease}:${item.job}`, answers[index] as Settled]));
  return { answers: given.map((item) => byJob.get(`${item.lease}:${item.job}`) as Settled), readied };
}

async function settleDistinct(db: Db, worker: number, settlements: readonly Settlement[], tx?: ForeignTransaction): Promise<SettleReport> {
  if (tx !== undefined) {
    const on = foreignDb(db, tx);
    const readied = await settleGuarded(db, on, worker, settlements);
    return { answers: await classify(on, worker, settlements), readied };
  }
  const [answer] = await db.query<{ raised: boolean; settled: number }>(SETTLE, [db.now(), worker, ...parameters(settlements)]);
  if (answer?.raised) {
    return db.transaction(async (own) => {
      const readied = await settleGuarded(db, own, worker, settlements);
      return { answers: await classify(own, worker, settlements), readied };
    });
  }
  if (answer?.settled === settlements.length) return { answers: settlements.map(() => "settled"), readied: [] };
  return { answers: await classify(db, worker, settlements), readied: [] };
}

/** Which of them are on record, now or from before. What the reaper recorded in their place makes them stale. */
async function classify(on: Queryable, worker: number, settlements: readonly Settlement[]): Promise<readonly Settled[]> {
  const rows = await on.query<{ known: boolean }>(CLASSIFY, [
    worker,
    plainArray(settlements.map((item) => item.lease)),
    plainArray(settlements.map((item) => item.job)),
  ]);
  return rows.map((row) => (row.known ? "settled" : "stale"));
}

function parameters(settlements: readonly Settlement[]): string[] {
  const lanes = new LanesTable();
  const leases = new Set<LeaseId>();
  const ends: JobId[] = [];
  const columns: (string | number | boolean | undefined)[][] = Array.from({ length: 11 }, () => new Array(settlements.length));
  const [lease, job, lane, outcome, next, spent, crashes, started, finished, delay, suspect] = columns as Required<typeof columns> & { length: 11 };
  let details = false;
  settlements.forEach((item, i) => {
    const { patch } = item;
    leases.add(item.lease);
    if (isFinished(patch.next)) ends.push(item.job);
    (lease as unknown[])[i] = item.lease;
    (job as unknown[])[i] = item.job;
    (lane as unknown[])[i] = lanes.number(item.lane);
    (outcome as unknown[])[i] = outcomeCode(patch.outcome);
    (next as unknown[])[i] = stateCode(patch.next);
    (spent as unknown[])[i] = patch.spent;
    (crashes as unknown[])[i] = patch.crashes;
    (started as unknown[])[i] = item.startedAt;
    (finished as unknown[])[i] = item.finishedAt;
    (delay as unknown[])[i] = patch.delay;
    (suspect as unknown[])[i] = isSuspect(patch.crashes);
    details ||= patch.output !== undefined || patch.failure !== undefined;
  });
  const texts = details
    ? [
        textArray(settlements.map(({ patch }) => patch.output)),
        textArray(settlements.map(({ patch }) => (patch.failure === undefined ? undefined : JSON.stringify(patch.failure)))),
        textArray(settlements.map(({ patch }) => patch.failure?.kind ?? "error")),
        textArray(settlements.map(({ patch }) => patch.failure?.name ?? "error")),
      ]
    : [ALL_NULL, ALL_NULL, ALL_NULL, ALL_NULL];
  return [...lanes.parameters(), ...columns.map((column) => plainArray(column)), ...texts, plainArray(ends), plainArray([...leases])];
}
