import { type LimitState, roomOf, spent, withinLimits } from "../../core/lane-limit.js";
import { type PolicyRef, policyKey, refsOf } from "../../core/policy.js";
import type { Claimed, ClaimRequest, LimitedClaim, SuspectRequest } from "../port-leases.js";
import { plainArray, textArray } from "./arrays.js";
import { type Claiming, claim, claimSuspect } from "./claim.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import { type LimitRow, limitStateOf } from "./lane-limit-row.js";
import type { Workers } from "./workers.js";

/**
 * Claims of lanes under limits. A transaction of several statements: the limits are locked, always in the same order;
 * what is in use of them is read afterwards, under a new snapshot that sees what the holders of the locks before did;
 * then jobs are claimed within that, and take their slots and tokens. Slots are rows that go in the transaction that
 * takes the job out of `running`, so a crash cannot leak one.
 */

const COLUMNS = "l.kind, l.name, l.concurrency, l.rate_limit, l.rate_per, l.rate_burst, l.tat";
const LOCK = statement(
  "lock_limits",
  `select ${COLUMNS}, ${ms(NOW)} as now from pawl.lane_limit l
   where (l.kind, l.name) in (select * from unnest($2::text[], $3::text[])) order by l.kind, l.name for update`,
);
/** Those that the suspects asked for are under. */
const LOCK_OF_SUSPECTS = statement(
  "lock_limits_of_suspects",
  `select ${COLUMNS}, ${ms(NOW)} as now from pawl.lane_limit l
   where exists (
     select from pawl.suspect u where u.task = any($2::text[]) and ($3::text[] is null or u.queue = any($3::text[]))
       and ((l.kind = 'queue' and l.name = u.queue) or (l.kind = 'task' and l.name = u.task) or (l.kind = 'tenant' and l.name = u.tenant))
   ) order by l.kind, l.name for update`,
);
const COUNT = statement(
  "count_lane_slots",
  `select l.no::int, (select count(*)::int from pawl.slot s where s.kind = l.kind and s.key = l.name) as used
   from unnest($1::text[], $2::text[]) with ordinality as l(kind, name, no)`,
);
const TAKE = statement("take_lane_slots", `insert into pawl.slot (job, kind, key) select * from unnest($1::uuid[], $2::text[], $3::text[])`);
const SPEND = statement(
  "spend_tokens",
  `update pawl.lane_limit l set tat = s.tat from unnest($1::text[], $2::text[], $3::float8[]) as s(kind, name, tat) where l.kind = s.kind and l.name = s.name`,
);

interface LockedRow extends LimitRow {
  readonly now: number;
}

interface Locked {
  readonly limits: readonly LimitState[];
  readonly now: number;
}

export async function claimLimited(claiming: Claiming, request: ClaimRequest): Promise<LimitedClaim> {
  const { db, workers } = claiming;
  // Before the transaction: there may be one connection only.
  await workers.id(request.worker);
  return db.transaction(async (tx) => {
    const refs = [...new Map(request.quotas.flatMap(({ lane }) => refsOf(lane)).map((ref) => [policyKey(ref), ref])).values()];
    const locked = await standing(tx, await tx.query<LockedRow>(LOCK, [db.now(), ...namesOf(refs)]));
    const { quotas, reached } = withinLimits(request.quotas, locked.limits, locked.now);
    const claimed = await claim({ ...claiming, db: inside(db, tx) }, { ...request, quotas }, true);
    if (claimed === undefined) return { claimed, reached };
    await take(tx, locked, claimed);
    return { claimed: counted(claimed), reached };
  });
}

export async function claimLimitedSuspect(db: Db, workers: Workers, request: SuspectRequest): Promise<Claimed | undefined> {
  await workers.id(request.worker);
  return db.transaction(async (tx) => {
    const queues = request.queues === undefined ? null : textArray(request.queues);
    const locked = await standing(tx, await tx.query<LockedRow>(LOCK_OF_SUSPECTS, [db.now(), textArray(request.tasks), queues]));
    const open = locked.limits.filter((limit) => roomOf(limit, locked.now) > 0);
    if (open.length === 0) return undefined;
    const claimed = await claimSuspect(inside(db, tx), workers, request, open);
    if (claimed === undefined) return undefined;
    await take(tx, locked, claimed);
    return counted(claimed);
  });
}

async function standing(tx: Transaction, rows: readonly LockedRow[]): Promise<Locked> {
  if (rows.length === 0) return { limits: [], now: 0 };
  const used = new Map((await tx.query<{ no: number; used: number }>(COUNT, namesOf(rows))).map((row) => [row.no, row.used]));
  return { limits: rows.map((row, index) => limitStateOf(row, used.get(index + 1) ?? 0)), now: rows[0]?.now as number };
}

async function take(tx: Transaction, { limits, now }: Locked, { jobs }: Claimed): Promise<void> {
  const slots: { readonly job: string; readonly limit: LimitState }[] = [];
  const known = new Map(limits.map((limit) => [policyKey(limit), limit]));
  const taken = new Map<LimitState, number>();
  for (const { id, lane } of jobs) {
    for (const ref of refsOf(lane)) {
      const limit = known.get(policyKey(ref));
      if (limit === undefined) continue;
      if (limit.concurrency !== undefined) slots.push({ job: id, limit });
      taken.set(limit, (taken.get(limit) ?? 0) + 1);
    }
  }
  if (slots.length > 0) await tx.query(TAKE, [plainArray(slots.map(({ job }) => job)), ...namesOf(slots.map(({ limit }) => limit))]);
  const spending = [...taken].flatMap(([limit, count]) => (limit.rate === undefined ? [] : [{ ...limit, tat: spent(limit, now, count) }]));
  if (spending.length > 0) await tx.query(SPEND, [...namesOf(spending), plainArray(spending.map(({ tat }) => tat))]);
}

/** Whoever settles them says so, and their slots are looked for. */
function counted(claimed: Claimed): Claimed {
  return { ...claimed, jobs: claimed.jobs.map((job) => ({ ...job, limited: true })) };
}

function inside(db: Db, tx: Transaction): Db {
  return { ...db, query: (asked, values) => tx.query(asked, values) };
}

function namesOf(refs: readonly PolicyRef[]): readonly string[] {
  return [textArray(refs.map(({ kind }) => kind)), textArray(refs.map(({ name }) => name))];
}
