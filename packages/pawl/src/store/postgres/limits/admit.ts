import type { JobId } from "../../../core/jobs/id.js";
import { compareText, type Lane } from "../../../core/jobs/lane.js";
import { type AdmissionRound, admitFromQueue, type LimitKeyState, type QueuedJob, slotsLeft, updateClosed } from "../../../core/limits/admission.js";
import {
  type JobLimit,
  type LimitKeyId,
  type LimitRequirement,
  rankOf,
  requirementsOf,
  SERIAL_HOLDER_RANK,
} from "../../../core/limits/limit-rule.js";
import type { Db } from "../connection/db.js";
import { sqlFile, sqlText } from "../connection/sql-statement.js";
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

const HEADS_OF_LIMIT_QUEUES = sqlFile("limits/heads-of-limit-queues.sql");

type HeadRow = Lane & { id: JobId; limits: string; keeps_turn: boolean; first: boolean; rank: number; seq: number };
type QueueHeadRow = { limit_key: LimitKeyId; waiting: number } & (HeadRow | { id: null });

async function readHeads(tx: DriverTransaction, limitKeys: ReadonlyMap<LimitKeyId, LimitKeyState>): Promise<ReadonlyMap<LimitKeyId, QueueHeads>> {
  const rooms = [...limitKeys]
    .map(([key, limitKey]) => [key, limitKey.rule.serial === true ? 1 : slotsLeft(limitKey, MAX_HEADS)] as const)
    .filter(([, room]) => room > 0);
  if (rooms.length === 0) return new Map();
  const rows = await HEADS_OF_LIMIT_QUEUES.query<QueueHeadRow>(tx, {
    limit: { key: rooms.map(([key]) => key), room: rooms.map(([, room]) => room) },
  });
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

const ADMIT = sqlFile("limits/admit.sql");

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
  const rows = await ADMIT.query<Lane & { readonly admitted_section: boolean }>(tx, {
    admitted: { id: admitted.map(({ job }) => job.id), waited: admitted.map(({ waited }) => waited) },
    slot: { kind: slots.map(({ kind }) => kind), key: slots.map(({ limitKey }) => limitKey), job: slots.map(({ job }) => job) },
    waiting: {
      id: waiting.map(({ job }) => job.id),
      limitKey: waiting.map(({ at }) => at.limitKey),
      rank: waiting.map(({ job, at, hasSerialSlot }) => rankAt(at, job, hasSerialSlot)),
      reason: waiting.map(({ reason }) => reason),
    },
    changed: {
      key: changed.map(([key]) => key),
      fullAt: changed.map(([, limitKey]) => limitKey.fullAt),
      closed: changed.map(([, limitKey]) => limitKey.closed),
    },
    limitCheck: limitChecksAt(later),
  });
  return { count: admitted.length, lanes: rows.map(laneOf), admittedLanes: rows.filter((row) => row.admitted_section).map(laneOf) };
}

const LIMIT_CHECK_AGAIN = sqlText(
  "limit_check_again",
  `insert into pawl.limit_check (at, key)
   select to_timestamp(g.at / 1000), g.key from unnest(:limit_check.at::float8[], :limit_check.key::text[]) as g(at, key)`,
);

async function addLimitChecks(tx: DriverTransaction, later: ReadonlyMap<LimitKeyId, number>): Promise<void> {
  if (later.size === 0) return;
  await LIMIT_CHECK_AGAIN.query(tx, { limitCheck: limitChecksAt(later) });
}

function limitChecksAt(later: ReadonlyMap<LimitKeyId, number>): { readonly at: readonly number[]; readonly key: readonly LimitKeyId[] } {
  return { at: [...later.values()], key: [...later.keys()] };
}
