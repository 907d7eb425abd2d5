import { type LimitState, roomOf, spent, withinLimits } from "../../../core/limits/lane-limit.js";
import { type PolicyRef, policyKey, refsOf } from "../../../core/sharing/policy.js";
import type { Claimed, ClaimRequest, LimitedClaim, SuspectRequest } from "../../port/settle/leases.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { type LaneLimitRow, limitStateOf } from "../limits/lane-limit-row.js";
import { type ClaimDeps, claim, claimSuspect } from "./claim.js";
import type { WorkerIds } from "./worker-ids.js";

/**
 * Claims of lanes under limits. A transaction of several statements: the limits are locked, always in the same order;
 * what is in use of them is read afterwards, under a new snapshot that sees what the holders of the locks before did;
 * then jobs are claimed within that, and take their slots and tokens. Slots are rows that go in the transaction that
 * takes the job out of `running`, so a crash cannot leak one.
 */

const COLUMNS = "l.kind, l.name, l.concurrency, l.rate_limit, l.rate_per, l.rate_burst, l.tat";
const LOCK_LIMITS = statement(
  "lock_limits",
  `select ${COLUMNS}, ${ms(NOW)} as now from pawl.lane_limit l
   where (l.kind, l.name) in (select * from unnest($2::text[], $3::text[]))  -- stop: lock-limits-snapshot
   order by l.kind, l.name
   for update  -- guard: lane-limit-locked`,
);
/** Those that the suspects asked for are under. */
const LOCK_FOR_SUSPECTS = statement(
  "lock_limits_of_suspects",
  `select ${COLUMNS}, ${ms(NOW)} as now from pawl.lane_limit l
   where exists (
     select from pawl.suspect u where u.task = any($2::text[]) and ($3::text[] is null or u.queue = any($3::text[]))
       and ((l.kind = 'queue' and l.name = u.queue) or (l.kind = 'task' and l.name = u.task) or (l.kind = 'tenant' and l.name = u.tenant))
   ) order by l.kind, l.name for update`,
);
const COUNT_SLOTS = statement(
  "count_lane_slots",
  `select l.no::int, (select count(*)::int from pawl.slot s where s.kind = l.kind and s.key = l.name) as used
   from unnest($1::text[], $2::text[]) with ordinality as l(kind, name, no)`,
);
const TAKE_SLOTS = statement("take_lane_slots", `insert into pawl.slot (job, kind, key) select * from unnest($1::uuid[], $2::text[], $3::text[])`);
const SPEND_TOKENS = statement(
  "spend_tokens",
  `update pawl.lane_limit l set tat = s.tat from unnest($1::text[], $2::text[], $3::float8[]) as s(kind, name, tat) where l.kind = s.kind and l.name = s.name`,
);

interface LockedLimitRow extends LaneLimitRow {
  readonly now: number;
}

interface Locked {
  readonly limits: readonly LimitState[];
  readonly now: number;
}

export async function claimLimited(deps: ClaimDeps, request: ClaimRequest): Promise<LimitedClaim> {
  const { db, workers } = deps;
  // Before the transaction: there may be one connection only.
  await workers.id(request.worker);
  return db.transaction(async (tx) => {
    const refs = [...new Map(request.quotas.flatMap(({ lane }) => refsOf(lane)).map((ref) => [policyKey(ref), ref])).values()];
    const locked = await withUsage(tx, await tx.query<LockedLimitRow>(LOCK_LIMITS, [db.now(), ...namesOf(refs)]));
    const { quotas, reached } = withinLimits(request.quotas, locked.limits, locked.now);
    const claimed = await claim({ ...deps, db: inTransaction(db, tx) }, { ...request, quotas }, true);
    if (claimed === undefined) return { claimed, reached };
    await takeSlots(tx, locked, claimed);
    return { claimed: asLimited(claimed), reached };
  });
}

export async function claimLimitedSuspect(db: Db, workers: WorkerIds, request: SuspectRequest): Promise<Claimed | undefined> {
  await workers.id(request.worker);
  return db.transaction(async (tx) => {
    const queues = request.queues === undefined ? null : textArray(request.queues);
    const locked = await withUsage(tx, await tx.query<LockedLimitRow>(LOCK_FOR_SUSPECTS, [db.now(), textArray(request.tasks), queues]));
    const open = locked.limits.filter((limit) => roomOf(limit, locked.now) > 0);
    if (open.length === 0) return undefined;
    const claimed = await claimSuspect(inTransaction(db, tx), workers, request, open);
    if (claimed === undefined) return undefined;
    await takeSlots(tx, locked, claimed);
    return asLimited(claimed);
  });
}

async function withUsage(tx: DriverTransaction, rows: readonly LockedLimitRow[]): Promise<Locked> {
  if (rows.length === 0) return { limits: [], now: 0 };
  const used = new Map((await tx.query<{ no: number; used: number }>(COUNT_SLOTS, namesOf(rows))).map((row) => [row.no, row.used]));
  return { limits: rows.map((row, index) => limitStateOf(row, used.get(index + 1) ?? 0)), now: rows[0]?.now as number };
}

async function takeSlots(tx: DriverTransaction, { limits, now }: Locked, { jobs }: Claimed): Promise<void> {
  const slots: { readonly job: string; readonly limit: LimitState }[] = [];
  const byRef = new Map(limits.map((limit) => [policyKey(limit), limit]));
  const taken = new Map<LimitState, number>();
  for (const { id, lane } of jobs) {
    for (const ref of refsOf(lane)) {
      const limit = byRef.get(policyKey(ref));
      if (limit === undefined) continue;
      if (limit.concurrency !== undefined) slots.push({ job: id, limit });
      taken.set(limit, (taken.get(limit) ?? 0) + 1);
    }
  }
  if (slots.length > 0) await tx.query(TAKE_SLOTS, [plainArray(slots.map(({ job }) => job)), ...namesOf(slots.map(({ limit }) => limit))]);
  const spending = [...taken].flatMap(([limit, count]) => (limit.rate === undefined ? [] : [{ ...limit, tat: spent(limit, now, count) }]));
  if (spending.length > 0) await tx.query(SPEND_TOKENS, [...namesOf(spending), plainArray(spending.map(({ tat }) => tat))]);
}

/** Whoever settles them says so, and their slots are looked for. */
function asLimited(claimed: Claimed): Claimed {
  return { ...claimed, jobs: claimed.jobs.map((job) => ({ ...job, limited: true })) };
}

function inTransaction(db: Db, tx: DriverTransaction): Db {
  return { ...db, query: (sql, values) => tx.query(sql, values) };
}

function namesOf(refs: readonly PolicyRef[]): readonly string[] {
  return [textArray(refs.map(({ kind }) => kind)), textArray(refs.map(({ name }) => name))];
}
