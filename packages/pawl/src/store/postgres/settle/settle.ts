import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { WorkerRef } from "../../../core/jobs/lease.js";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import type { StoreTransaction } from "../../port/index.js";
import type { Settled, Settlement } from "../../port/settle/leases.js";
import type { WorkerIds } from "../claim/worker-ids.js";
import { type Db, insideTransaction, type StoreDb, type WriteTransaction } from "../connection/db.js";
import { sqlFile } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import { settleInSteps, settlementKey } from "./settle-in-steps.js";
import { hasIndex, type IndexedSettlement, planSettlement, type Run, type SettlePlan, settleParameters } from "./settle-plan.js";

const SETTLE = sqlFile("settle/settle.sql", { hot: "settle", without: "limited" });
const SETTLE_LIMITED = sqlFile("settle/settle.sql", { hot: "settle" });
const CLASSIFY_SETTLED = sqlFile("settle/classify-settled.sql");

/** The answers in order, and the lanes of dependents that became ready. */
export interface SettleReport extends PassedSlots {
  readonly answers: readonly Settled[];
  readonly readied: readonly Lane[];
}

/** What became of the slots that were given up. */
export interface PassedSlots {
  /** lanes of the jobs that slots were passed on to */
  readonly admittedLanes: readonly Lane[];
  /** limit keys, all of which are there, at which others may pass */
  readonly freedLimitKeys: ReadonlySet<LimitKeyId>;
}

export interface SettleDeps {
  readonly db: StoreDb;
  readonly workers: WorkerIds;
}

/** What became of a batch: the keys of those that are not settled, nor ever will be. */
interface SettleOutcome {
  readonly stale: ReadonlySet<string>;
  readonly readied: readonly Lane[];
}

const ALL_SETTLED: SettleOutcome = { stale: new Set(), readied: [] };
const NO_SLOTS: PassedSlots = { admittedLanes: [], freedLimitKeys: new Set() };

/** How often a batch is made again because somebody wrote to its leases meanwhile. */
const MAX_TRIES = 5;

export async function settle(
  { db, workers }: SettleDeps,
  ref: WorkerRef,
  settlements: readonly Settlement[],
  tx?: StoreTransaction,
): Promise<SettleReport> {
  if (settlements.length === 0) return { answers: [], readied: [], ...NO_SLOTS };
  const worker = await workers.id(ref);
  const { stale, readied, ...slots } = await (tx === undefined
    ? settleAll(db, worker, settlements)
    : settleInside(db, insideTransaction(tx), worker, firstOfEach(settlements)));
  return {
    answers: settlements.map((item) => (stale.size > 0 && stale.has(settlementKey(item)) ? "stale" : "settled")),
    readied,
    ...NO_SLOTS,
    ...slots,
  };
}

/** By the one statement what it takes; what it leaves alone, by several. */
async function settleAll(db: StoreDb, worker: number, settlements: readonly Settlement[]): Promise<SettleOutcome & PassedSlots> {
  let quick: readonly Settlement[] = settlements;
  const slow: Settlement[] = [];
  if (!settlements.every(isQuick)) {
    const items = firstOfEach(settlements);
    quick = items.filter(isQuick);
    slow.push(...items.filter((item) => !isQuick(item)));
  }
  const admittedLanes: Lane[] = [];
  const freedLimitKeys = new Set<LimitKeyId>();
  for (let tries = 1; quick.length > 0; tries++) {
    const { retry, apart, ...slots } = await settleQuickly(db, worker, quick as readonly IndexedSettlement[]);
    admittedLanes.push(...slots.admittedLanes);
    for (const limitKey of slots.freedLimitKeys) freedLimitKeys.add(limitKey);
    slow.push(...apart, ...(tries < MAX_TRIES ? [] : retry));
    quick = tries < MAX_TRIES ? retry : [];
  }
  const outcome = slow.length === 0 ? ALL_SETTLED : await db.transaction((own) => settleSlowly(db, own, worker, firstOfEach(slow)));
  return { ...outcome, admittedLanes, freedLimitKeys };
}

/**
 * One under limits that goes back to its lane lines up first, a key may be told to rest, and what a job died of may be a line
 * of its own: none of that is for the hot exit.
 */
function isQuick(item: Settlement): item is IndexedSettlement {
  const { limited, patch } = item;
  return hasIndex(item) && patch.pauses === undefined && patch.diedOf === undefined && !(limited === true && patch.next === "ready");
}

/** Of two settlements of one attempt in one batch the first counts, and both are answered by what became of it. */
function firstOfEach(settlements: readonly Settlement[]): readonly Settlement[] {
  const first = new Map<string, Settlement>();
  for (const item of settlements) {
    const key = settlementKey(item);
    if (!first.has(key)) first.set(key, item);
  }
  return [...first.values()];
}

/** The last row has the remainder. Of jobs under limits, the first has the others. */
interface SettleRow {
  /** if it left something alone */
  readonly remainder: string | null;
  /** what was freed for others to pass */
  readonly limit_keys: string | null;
  /** lanes of the jobs that slots were passed on to */
  readonly admitted_lanes: string | null;
}

interface Remainder {
  /** numbers of runs, from 1 */
  readonly settled: readonly number[];
  readonly needSteps: readonly JobId[];
  /** leases that somebody wrote to after the statement's snapshot */
  readonly changed: readonly LeaseId[];
}

/** What is to be asked again, and what must be settled in several statements. */
interface UnsettledItems {
  readonly retry: readonly IndexedSettlement[];
  readonly apart: readonly IndexedSettlement[];
}

async function settleQuickly(db: Db, worker: number, items: readonly IndexedSettlement[]): Promise<UnsettledItems & PassedSlots> {
  const plan = planSettlement(items);
  const statement = items.some((item) => item.limited === true) ? SETTLE_LIMITED : SETTLE;
  const rows = await statement.query<SettleRow>(db, settleParameters(plan, db.now(), worker));
  const { remainder } = rows[rows.length - 1] as SettleRow;
  const [{ admitted_lanes, limit_keys }] = rows as [SettleRow];
  const left = remainder === null ? { retry: [], apart: [] } : leftOf(plan, JSON.parse(remainder) as Remainder);
  if (admitted_lanes === null && limit_keys === null) return { ...left, ...NO_SLOTS };
  return {
    ...left,
    admittedLanes: JSON.parse(admitted_lanes ?? "[]") as Lane[],
    freedLimitKeys: new Set(JSON.parse(limit_keys ?? "[]") as LimitKeyId[]),
  };
}

/** A job that something was asked of is settled apart, and its neighbours again. Of other runs, all are settled apart. */
function leftOf({ leases, runs }: SettlePlan, remainder: Remainder): UnsettledItems {
  const settled = new Set(remainder.settled);
  const changed = new Set(remainder.changed);
  const needSteps = new Set(remainder.needSteps);
  const retry: IndexedSettlement[] = [];
  const apart: IndexedSettlement[] = [];
  for (const { id, from, to } of leases) {
    for (let number = from; number <= to; number++) {
      const { items } = runs[number - 1] as Run;
      if (settled.has(number)) continue;
      if (changed.has(id)) retry.push(...items);
      else if (!items.some(({ job }) => needSteps.has(job))) apart.push(...items);
      else for (const item of items) (needSteps.has(item.job) ? apart : retry).push(item);
    }
  }
  return { retry, apart };
}

/**
 * What was settled before is stale here: an earlier transaction of the same attempt did it, whose commit was not answered,
 * and this one's work would be done a second time.
 */
async function settleInside(db: Db, tx: WriteTransaction, worker: number, items: readonly Settlement[]): Promise<SettleOutcome> {
  const { unknown, repeated, readied } = await settleInSteps(db, tx, worker, items);
  return { stale: new Set([...unknown, ...repeated].map(settlementKey)), readied };
}

async function settleSlowly(db: Db, on: WriteTransaction, worker: number, items: readonly Settlement[]): Promise<SettleOutcome> {
  const { unknown, readied } = await settleInSteps(db, on, worker, items);
  return { stale: await staleOf(on, worker, unknown), readied };
}

/** Which of them are not on record from before: their leases are gone. */
async function staleOf(on: Queryable, worker: number, items: readonly Settlement[]): Promise<ReadonlySet<string>> {
  if (items.length === 0) return new Set();
  const settlement = { lease: items.map((item) => item.lease), job: items.map((item) => item.job) };
  const rows = await CLASSIFY_SETTLED.query<{ known: boolean }>(on, { worker, settlement });
  return new Set(items.filter((_, index) => rows[index]?.known !== true).map(settlementKey));
}
