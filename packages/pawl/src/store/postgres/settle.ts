import type { Lane } from "../../core/lane.js";
import type { WorkerRef } from "../../core/lease.js";
import type { GateKey } from "../../core/limit.js";
import type { ForeignTransaction } from "../port.js";
import type { Settled, Settlement } from "../port-leases.js";
import { plainArray } from "./arrays.js";
import { type Bundle, type HeldLeases, type Sorted, settlementKey } from "./bundles.js";
import { outcomeCode, stateCode } from "./codes.js";
import { type Db, foreignDb, hotStatement, NOW, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { bundledParameters, SETTLE_BUNDLED } from "./settle-bundled.js";
import { settleGuarded } from "./settle-guarded.js";
import { settleParameters } from "./settle-parameters.js";
import { isUnfit, UNFIT } from "./unfit.js";
import type { Workers } from "./workers.js";

/**
 * The hot exit: one statement that locks the leases in order, checks that each job is in its lease, appends the
 * attempts (the insert is the acknowledgement), lowers `open`, and moves the jobs on. It settles all of a batch or
 * nothing, so that nothing has to be derived from what it really settled. It settles nothing and
 * - says so, where something was asked of a job or jobs wait for one (`guard`). What came after the snapshot it cannot
 *   see: intents are left to `carryOut`; for the rest the lease is marked as `watched`, which `own` does see;
 * - fails, where one of them does not fit (stale, or its partition is going) or was settled before.
 * Both are rare, and `settle-guarded.ts` then does the same in several statements.
 *
 * - `own` returns the lease as it is after the lock; `open` is taken from there, never from the snapshot.
 * - leases are sent once, and referred to by number; times as microseconds since the first of them. That is less to
 *   send and to parse.
 * - what jobs under limits hold is freed only where one of them says that it holds something (`leaving`).
 * - what most settlements have in common is left out (`usual`): unnest pads short arrays with nulls.
 * - the rows of a batch are matched by IN inside CASE, which Postgres must do by hashing: it believes that an array
 *   parameter has ten elements, and would join two such sets of five hundred by a nested loop.
 * - the failure is a cast that cannot succeed: SQL has no other word for it. It depends on a count, or the planner
 *   would try it beforehand.
 */
const SETTLE = hotStatement(
  "settle",
  "settle",
  `
  with guard as materialized (
    select exists (select from pawl.dependency where parent = any($6::uuid[])) or exists (select from pawl.intent where job = any($6::uuid[])) as raised
  ),
  own as materialized (
    select id, open, watched, settled, jobs from pawl.lease where id = any($3::bigint[]) and worker = $2 order by id for update
  ),
  aside as materialized (select raised or exists (select from own where watched) as raised from guard),
  free as materialized (select own.*, c.done from own join unnest($3::bigint[], $4::int[]) as c(id, done) on c.id = own.id where not (select raised from aside)),
  fresh as (
    insert into pawl.attempt (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
    select ($3::bigint[])[g.lease], to_timestamp($37 + g.started / 1e6), to_timestamp($37 + g.finished / 1e6), g.job, $2,
      coalesce(g.outcome, ${outcomeCode("succeeded")}), coalesce(g.next, ${stateCode("succeeded")}), coalesce(g.spent, 1), coalesce(g.crashes, 0), g.output::json, g.failure::json
    from unnest($5::int[], $6::uuid[], $7::bigint[], $8::bigint[], $9::int2[], $10::int2[], $11::int2[], $12::int2[], $13::text[], $14::text[])
      as g(lease, job, started, finished, outcome, next, spent, crashes, output, failure)
    where g.job >= (select floor from pawl.span)
      and case when (($3::bigint[])[g.lease], g.job) in (
        select o.id, u.job from free o cross join lateral unnest(o.jobs) with ordinality as u(job, place) where o.settled is null or not u.place::int <@ o.settled
      ) then true else false end
    returning 1
  ),
  closed as (delete from pawl.lease l using free o where l.id = o.id and o.open <= o.done),
  lowered as (
    update pawl.lease l set open = o.open - o.done, settled = case when o.settled is not null then o.settled + (
      select range_agg(int4range(u.place::int, u.place::int, '[]')) from unnest(o.jobs) with ordinality as u(job, place)
      where case when u.job in (select unnest($6::uuid[])) then true else false end
    ) end
    from free o where l.id = o.id and o.open > o.done
  ),
  moved as materialized (
    select m.*, ($15::text[])[m.lane] as queue, ($16::int2[])[m.lane] as band, ($17::text[])[m.lane] as tenant, ($18::text[])[m.lane] as task
    from unnest($19::uuid[], $20::int[], $21::int2[], $22::int2[], $23::int2[], $24::float8[], $25::bool[], $26::text[], $27::text[])
      as m(job, lane, next, spent, crashes, delay, suspect, kind, name)
    where not (select raised from aside)
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
    select * from unnest($28::text[], $29::text[], $30::int[], $31::int[], $32::int[], $33::int[], $34::int[], $35::int[]) where not (select raised from aside)
  ),
  leaving as materialized (select case when $38::bool and not raised then $6::uuid[] else '{}' end as jobs from aside),
  freed as (
    delete from pawl.slot s where s.job = any((select jobs from leaving)::uuid[])
      and (s.kind <> 'serial' or s.job not in (select job from moved where next = ${stateCode("scheduled")})) returning s.kind, s.key
  ),
  torn as (delete from pawl.ticket t where t.job = any((select jobs from leaving)::uuid[]) and t.job not in (select job from moved where next = ${stateCode("scheduled")})),
  gates as materialized (select distinct key from freed where kind in ('key', 'serial', 'rate')),
  knocked as (insert into pawl.knock (at, key) select ${NOW}, key from gates)
  select (select json_agg(key) from gates)::text as gates, raised, case when raised then true when (select count(*) from fresh) = $36 then true
    else ('${UNFIT}: only ' || (select count(*) from fresh) || ' of ' || $36 || ' fit')::bool end as settled from aside`,
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

/** One under limits that goes back to its lane lines up first, and a key may be told to rest: neither is for the hot exit. */
function isPlain({ limited, patch }: Settlement): boolean {
  return patch.pauses === undefined && !(limited === true && patch.next === "ready");
}

export interface Settling {
  readonly db: Db;
  readonly workers: Workers;
  readonly held: HeldLeases;
}

export async function settle(on: Settling, ref: WorkerRef, given: readonly Settlement[], tx?: ForeignTransaction): Promise<SettleReport> {
  if (given.length === 0) return { answers: [], readied: [] };
  const worker = await on.workers.id(ref);
  if (tx !== undefined) return firstOfEach(given, (settlements) => settleInside(on, tx, worker, settlements));
  const sorted = on.held.sort(given);
  if (sorted !== undefined) return settleSorted(on, worker, given, sorted);
  return firstOfEach(given, (settlements) => settleSorted(on, worker, settlements, on.held.sort(settlements) as Sorted));
}

/** Of two settlements of one attempt in one batch the first counts, and both are answered by what became of it. */
async function firstOfEach(
  given: readonly Settlement[],
  settle: (settlements: readonly Settlement[]) => Promise<SettleReport>,
): Promise<SettleReport> {
  const first = new Map<string, Settlement>();
  for (const item of given) if (!first.has(settlementKey(item))) first.set(settlementKey(item), item);
  const { answers, readied } = await settle([...first.values()]);
  const byKey = new Map([...first.keys()].map((key, index) => [key, answers[index] as Settled]));
  return { answers: given.map((item) => byKey.get(settlementKey(item)) as Settled), readied };
}

async function settleInside(
  { db, held }: Settling,
  tx: ForeignTransaction,
  worker: number,
  settlements: readonly Settlement[],
): Promise<SettleReport> {
  const report = await settleSlowly(db, foreignDb(db, tx), worker, settlements);
  // If it is rolled back, what is left of these leases is settled row by row.
  held.settled({ bundles: [], rest: settlements });
  return report;
}

/** The quick ways settle all they are given or nothing; then it is done one by one. */
async function settleSorted({ db, held }: Settling, worker: number, settlements: readonly Settlement[], sorted: Sorted): Promise<SettleReport> {
  const { bundles, rest } = sorted;
  const slow = [
    bundles.length === 0 || (await settleBundles(db, worker, bundles)) ? [] : bundles.flatMap((bundle) => bundle.settlements),
    rest.length === 0 || (await settleAll(db, worker, rest)) ? [] : rest,
  ];
  const reports: (SettleReport & { readonly settlements: readonly Settlement[] })[] = [];
  for (const some of slow) {
    if (some.length > 0) reports.push({ settlements: some, ...(await db.transaction((own) => settleSlowly(db, own, worker, some))) });
  }
  held.settled(sorted);
  return inOrder(settlements, reports);
}

async function settleSlowly(db: Db, on: Queryable, worker: number, settlements: readonly Settlement[]): Promise<SettleReport> {
  const readied = await settleGuarded(db, on, worker, settlements);
  return { answers: await classify(on, worker, settlements), readied };
}

/** Those that no report is about are settled. */
function inOrder(
  settlements: readonly Settlement[],
  reports: readonly (SettleReport & { readonly settlements: readonly Settlement[] })[],
): SettleReport {
  if (reports.length === 0) return { answers: new Array<Settled>(settlements.length).fill("settled"), readied: [] };
  const answers = new Map(reports.flatMap((report) => report.settlements.map((item, index) => [item, report.answers[index] as Settled])));
  return { answers: settlements.map((item) => answers.get(item) ?? "settled"), readied: reports.flatMap(({ readied }) => readied) };
}

interface Fit {
  readonly raised: boolean;
  /** what was freed for others to pass */
  readonly gates?: string | null;
}

async function settleAll(db: Db, worker: number, settlements: readonly Settlement[]): Promise<boolean> {
  if (!settlements.every(isPlain)) return false;
  const fit = await fitting(db.query<Fit>(SETTLE, [db.now(), worker, ...settleParameters(settlements)]));
  if (fit?.gates) await db.onKnock?.(new Set(JSON.parse(fit.gates) as GateKey[]), { made: true });
  return fit !== undefined;
}

async function settleBundles(db: Db, worker: number, bundles: readonly Bundle[]): Promise<boolean> {
  const parameters = bundledParameters(bundles);
  return parameters !== undefined && (await fitting(db.query<Fit>(SETTLE_BUNDLED, [worker, ...parameters]))) !== undefined;
}

async function fitting(sent: Promise<readonly Fit[]>): Promise<Fit | undefined> {
  try {
    const [answer] = await sent;
    return answer?.raised === false ? answer : undefined;
  } catch (error) {
    if (isUnfit(error)) return undefined;
    throw error;
  }
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
