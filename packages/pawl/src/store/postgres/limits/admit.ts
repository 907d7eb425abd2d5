import type { JobId } from "../../../core/jobs/id.js";
import { compareText, type Lane } from "../../../core/jobs/lane.js";
import { SUSPECT_FROM } from "../../../core/jobs/outcome.js";
import { type AdmissionRound, admitFromQueue, type LimitKeyState, type QueuedJob, slotsLeft, updateClosed } from "../../../core/limits/admission.js";
import {
  type JobLimit,
  type LimitKeyId,
  type LimitRequirement,
  rankOf,
  requirementsOf,
  SERIAL_HOLDER_RANK,
} from "../../../core/limits/limit-rule.js";
import { ADMITTED_SECTION_START } from "../claim/lane-starts.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, statement } from "../connection/db.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { laneOf } from "../jobs/waiting-jobs.js";
import { takeLimitChecks } from "./limit-keys.js";

/** The most of a limit queue that one round looks at, the most limit keys that one transaction locks, and the most rounds of a call. */
const MAX_HEADS = 100;
const MAX_LIMIT_KEYS = 50;
const MAX_ROUNDS = 20;
/** ms after which a limit queue is looked at again whose head is in somebody's hands */
const SOON_MS = 20;
/** The same of one that holds up nobody: whoever has it most often takes it away for good, but may let go of it as well (as a settlement that fails). */
const LATER_MS = 1_000;

export interface AdmittedReport {
  readonly count: number;
  readonly lanes: readonly Lane[];
  /** lanes that have jobs in the admitted section now, which waited */
  readonly admittedLanes: readonly Lane[];
  /** ms until one of the limit keys is to be looked at again, by what was seen there */
  readonly nextIn?: number;
}

/** Lets in who can pass these limit keys, until nobody can. `made`: they are known to be there, as somebody held a slot of each. */
export async function admit(db: Db, limitKeys: readonly LimitKeyId[], { made = false }: { readonly made?: boolean } = {}): Promise<AdmittedReport> {
  const lanes: Lane[] = [];
  const admittedLanes: Lane[] = [];
  let count = 0;
  let nextIn = Number.POSITIVE_INFINITY;
  const sorted = [...new Set(limitKeys)].sort(compareText);
  for (let first = 0; first < sorted.length; first += MAX_LIMIT_KEYS) {
    let some = sorted.slice(first, first + MAX_LIMIT_KEYS);
    for (let [rounds, make] = [1, !made]; some.length > 0; rounds++) {
      const how = { make, mayRepeat: rounds < MAX_ROUNDS };
      const locked = some;
      const round = await db.transaction((tx) => admitRound(db, tx, locked, how));
      make = round.unmade === true;
      lanes.push(...round.lanes);
      admittedLanes.push(...round.admittedLanes);
      count += round.count;
      nextIn = Math.min(nextIn, round.nextIn ?? nextIn);
      some = [...round.again].sort(compareText);
    }
  }
  return { count, lanes, admittedLanes, ...(Number.isFinite(nextIn) ? { nextIn } : {}) };
}

interface RoundReport extends AdmittedReport {
  /** to be locked and looked at once more */
  readonly again: readonly LimitKeyId[];
  /** some of them are not there */
  readonly unmade?: true;
}

/**
 * One transaction: locks the limit keys, in order, and reads in statements of their own how they stand, since only those see
 * what was written before the locks were had. Slots of a limit key are only ever added under its lock, so none is exceeded.
 */
async function admitRound(
  db: Db,
  tx: DriverTransaction,
  keys: readonly LimitKeyId[],
  { make, mayRepeat }: { readonly make: boolean; readonly mayRepeat: boolean },
): Promise<RoundReport> {
  const lockedKeys = await takeLimitChecks(db, tx, keys, make);
  if (lockedKeys === undefined) return { ...NOBODY, again: keys, unmade: true };
  const { limitKeys, now } = lockedKeys;
  const before = new Map([...limitKeys].map(([key, { fullAt, closed }]) => [key, { fullAt, closed }]));
  const limitQueues = await readHeads(tx, limitKeys);
  const strange = [...limitQueues.values()].flatMap(({ heads }) =>
    heads.flatMap(({ requirements }) => requirements.flatMap(({ limitKey }) => (limitKeys.has(limitKey) ? [] : [limitKey]))),
  );
  // A head has limit keys that are not locked: they must be had in order, so all of it begins anew.
  if (strange.length > 0 && mayRepeat) {
    await addLimitChecks(tx, new Map(keys.map((key) => [key, now])));
    return { ...NOBODY, again: [...new Set([...keys, ...strange])], unmade: true };
  }
  for (const [key, limitKey] of limitKeys) if (!limitQueues.has(key)) updateClosed(limitKey);
  const rounds: AdmissionRound<QueueHead>[] = [];
  const later = new Map<LimitKeyId, number>();
  const again: LimitKeyId[] = [];
  for (const [key, { heads, wanted, overtaken, passedBy }] of limitQueues) {
    const known = heads.filter(({ requirements }) => requirements.every(({ limitKey }) => limitKeys.has(limitKey)));
    if (overtaken || known.length < heads.length) {
      later.set(key, now + SOON_MS);
      continue;
    }
    if (joinedBefore(rounds, key, heads)) {
      if (mayRepeat) again.push(key);
      else later.set(key, now);
      continue;
    }
    const round = admitFromQueue(key, heads, limitKeys, now);
    rounds.push(round);
    if (!round.closed && heads.length < wanted) updateClosed(limitKeys.get(key) as LimitKeyState);
    if (!round.closed && passedBy) later.set(key, now + LATER_MS);
    if (round.closed || heads.length < wanted || slotsLeft(limitKeys.get(key) as LimitKeyState, MAX_HEADS) === 0) continue;
    if (mayRepeat) again.push(key);
    else later.set(key, now);
  }
  const changed = [...limitKeys].filter(([key, { fullAt, closed }]) => fullAt !== before.get(key)?.fullAt || closed !== before.get(key)?.closed);
  const done = await apply(tx, rounds, changed, later);
  return { ...done, again, ...(later.size === 0 ? {} : { nextIn: Math.min(...later.values()) - now }) };
}

/** Somebody came from another limit queue in this round and stands before those that were read: the limit queue is to be read again. */
function joinedBefore(rounds: readonly AdmissionRound<QueueHead>[], key: LimitKeyId, heads: readonly QueuedJob<QueueHead>[]): boolean {
  const last = heads.at(-1)?.job;
  if (last === undefined) return false;
  const before = (rank: number, { seq }: QueueHead) => rank < last.rank || (rank === last.rank && seq < last.seq);
  return rounds.some(({ waiting }) =>
    waiting.some(({ job, at, hasSerialSlot }) => at.limitKey === key && before(rankAt(at, job, hasSerialSlot), job)),
  );
}

function rankAt({ rule }: LimitRequirement, { lane }: QueueHead, hasSerialSlot: boolean): number {
  return hasSerialSlot ? SERIAL_HOLDER_RANK : rankOf(rule, lane.priority);
}

interface QueueHead {
  readonly id: JobId;
  readonly lane: Lane;
  /** where it stands in its limit queue; its seq is the same in the queue of another limit key */
  readonly rank: number;
  readonly seq: number;
}
interface QueueHeads {
  readonly heads: readonly QueuedJob<QueueHead>[];
  readonly wanted: number;
  /** the first of a serial limit queue is in somebody's hands: whoever comes next must not pass it by */
  readonly overtaken: boolean;
  /** some were in somebody's hands, who may yet let go of them */
  readonly passedBy: boolean;
}

/**
 * In order, as many as could pass. What somebody is about to cancel or pause is passed by; where that leaves room, how many
 * there are in all is told in a row of its own, without a head. They are counted in order, too, which only the index has:
 * where nearly all wait at one limit key, another's limit queue of nobody would be looked for in the whole table.
 */
const HEADS = statement(
  "heads_of_limit_queues",
  `
  with head as materialized (
    select k.key as limit_key, p.*, p.seq = f.seq as first from unnest($1::text[], $2::int[]) as k(key, room)
    cross join lateral (select f.seq from pawl.parked f where f.limit_key = k.key order by f.rank, f.seq limit 1) f
    cross join lateral (
      select p.id, p.queue, p.priority, p.tenant, p.task, p.rank, p.seq from pawl.parked p where p.limit_key = k.key order by p.rank, p.seq limit k.room for update skip locked
    ) p
  )
  select h.limit_key, 0 as waiting, h.id, h.queue, h.priority, h.tenant, h.task, t.limits::text,
    t.serial and exists (select from pawl.slot s where s.kind = 'serial' and s.job = h.id) as keeps_turn, h.first, h.rank, h.seq::float8 as seq
  from head h cross join lateral (select t.limits, t.serial from pawl.job_limits t where t.job = h.id limit 1) t
  union all
  select k.key, (select count(*)::int from (select from pawl.parked p where p.limit_key = k.key order by p.rank, p.seq limit k.room) p), null, null, null, null, null, null, null, null, null, null
  from unnest($1::text[], $2::int[]) as k(key, room) where (select count(*) from head h where h.limit_key = k.key) < k.room
  order by rank, seq`,
);

type HeadRow = Lane & { id: JobId; limits: string; keeps_turn: boolean; first: boolean; rank: number; seq: number };
type QueueHeadRow = { limit_key: LimitKeyId; waiting: number } & (HeadRow | { id: null });

async function readHeads(tx: DriverTransaction, limitKeys: ReadonlyMap<LimitKeyId, LimitKeyState>): Promise<ReadonlyMap<LimitKeyId, QueueHeads>> {
  const rooms = [...limitKeys]
    .map(([key, limitKey]) => [key, limitKey.rule.serial === true ? 1 : slotsLeft(limitKey, MAX_HEADS)] as const)
    .filter(([, room]) => room > 0);
  if (rooms.length === 0) return new Map();
  const rows = await tx.query<QueueHeadRow>(HEADS, [textArray(rooms.map(([key]) => key)), plainArray(rooms.map(([, room]) => room))]);
  const limitQueues = new Map<LimitKeyId, { waiting: number; readonly heads: HeadRow[] }>();
  for (const row of rows) {
    const limitQueue = limitQueues.get(row.limit_key) ?? { waiting: 0, heads: [] };
    limitQueues.set(row.limit_key, limitQueue);
    if (row.id === null) limitQueue.waiting = row.waiting;
    else limitQueue.heads.push(row);
  }
  return new Map(
    rooms.flatMap(([key, wanted]) => {
      const limitQueue = limitQueues.get(key);
      if (limitQueue === undefined || (limitQueue.waiting === 0 && limitQueue.heads.length === 0)) return [];
      const { waiting, heads } = limitQueue;
      const overtaken = limitKeys.get(key)?.rule.serial === true && heads[0]?.first !== true;
      return [[key, { wanted, heads: heads.map(queuedJob), overtaken, passedBy: heads.length < waiting }]];
    }),
  );
}

function queuedJob(row: HeadRow): QueuedJob<QueueHead> {
  return {
    job: { id: row.id, lane: laneOf(row), rank: row.rank, seq: row.seq },
    requirements: requirementsOf(row.tenant, JSON.parse(row.limits) as JobLimit[]),
    holdsSerialSlot: row.keeps_turn,
  };
}

const NOBODY: AdmittedReport = { count: 0, lanes: [], admittedLanes: [] };

/** ready.seq is drawn after the delete, which has given the transaction its id (see SafeSequence). Those that waited go to the admitted section. */
const APPLY = statement(
  "admit",
  `
  with admitted as (
    delete from pawl.parked p using unnest($1::uuid[], $13::bool[]) with ordinality as g(id, waited, ord) where p.id = g.id
    returning p.id, p.priority, p.attempts, p.crashes, p.queue, p.tenant, p.task, g.ord, g.waited and p.crashes < ${SUSPECT_FROM} as admitted_section
  ),
  sorted as materialized (select * from admitted order by ord),
  r as (insert into pawl.ready (seq, id, priority, attempts, crashes, queue, tenant, task)
    select nextval('pawl.ready_seq') + case when admitted_section then ${ADMITTED_SECTION_START} else 0 end, id, priority, attempts, crashes, queue, tenant, task
    from sorted where crashes < ${SUSPECT_FROM}),
  u as (insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task)
    select id, priority, attempts, crashes, queue, tenant, task from sorted where crashes >= ${SUSPECT_FROM}),
  held as (insert into pawl.slot (kind, key, job) select * from unnest($2::text[], $3::text[], $4::uuid[]) on conflict do nothing),
  moved as (
    update pawl.parked p set limit_key = m.limit_key, rank = m.rank, reason = m.reason
    from unnest($5::uuid[], $6::text[], $7::int2[], $8::text[]) as m(id, limit_key, rank, reason)
    where p.id = m.id and (p.limit_key, p.rank, p.reason) is distinct from (m.limit_key, m.rank, m.reason)
  ),
  left_as as (update pawl.limit_key g set full_at = to_timestamp(b.full_at / 1000), closed = b.closed
    from unnest($9::text[], $10::float8[], $14::bool[]) as b(key, full_at, closed) where g.key = b.key),
  counted as (insert into pawl.counter_delta (queue, task, parked, ready) select queue, task, -count(*), count(*) from admitted group by queue, task),
  limit_checks as (insert into pawl.limit_check (at, key) select to_timestamp(k.at / 1000), k.key from unnest($11::float8[], $12::text[]) as k(at, key))
  select queue, priority, tenant, task, bool_or(admitted_section) as admitted_section from admitted group by queue, priority, tenant, task`,
);

async function apply(
  tx: DriverTransaction,
  rounds: readonly AdmissionRound<QueueHead>[],
  changed: readonly (readonly [LimitKeyId, LimitKeyState])[],
  later: Map<LimitKeyId, number>,
): Promise<AdmittedReport> {
  const admitted = rounds.flatMap((round) => round.admitted.map((one) => ({ ...one, waited: round.waited })));
  const waiting = rounds.flatMap((round) => round.waiting);
  for (const { limitChecks } of rounds) for (const [key, at] of limitChecks) later.set(key, Math.min(at, later.get(key) ?? at));
  if (admitted.length === 0 && waiting.length === 0 && changed.length === 0) {
    await addLimitChecks(tx, later);
    return NOBODY;
  }
  const slots = [...admitted, ...waiting].flatMap(({ job, slots: taken }) => taken.map((slot) => ({ ...slot, job: job.id })));
  const rows = await tx.query<Lane & { readonly admitted_section: boolean }>(APPLY, [
    plainArray(admitted.map(({ job }) => job.id)),
    textArray(slots.map(({ kind }) => kind)),
    textArray(slots.map(({ limitKey }) => limitKey)),
    plainArray(slots.map(({ job }) => job)),
    plainArray(waiting.map(({ job }) => job.id)),
    textArray(waiting.map(({ at }) => at.limitKey)),
    plainArray(waiting.map(({ job, at, hasSerialSlot }) => rankAt(at, job, hasSerialSlot))),
    textArray(waiting.map(({ reason }) => reason)),
    textArray(changed.map(([key]) => key)),
    plainArray(changed.map(([, limitKey]) => limitKey.fullAt)),
    ...limitChecksAt(later),
    plainArray(admitted.map(({ waited }) => waited)),
    plainArray(changed.map(([, limitKey]) => limitKey.closed)),
  ]);
  return { count: admitted.length, lanes: rows.map(laneOf), admittedLanes: rows.filter((row) => row.admitted_section).map(laneOf) };
}

const LIMIT_CHECK_AGAIN = statement(
  "limit_check_again",
  "insert into pawl.limit_check (at, key) select to_timestamp(g.at / 1000), g.key from unnest($1::float8[], $2::text[]) as g(at, key)",
);

async function addLimitChecks(tx: DriverTransaction, later: ReadonlyMap<LimitKeyId, number>): Promise<void> {
  if (later.size === 0) return;
  await tx.query(LIMIT_CHECK_AGAIN, limitChecksAt(later));
}

function limitChecksAt(later: ReadonlyMap<LimitKeyId, number>): readonly string[] {
  return [plainArray([...later.values()]), textArray([...later.keys()])];
}
