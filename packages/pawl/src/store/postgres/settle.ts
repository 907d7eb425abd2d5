import type { JobId, LeaseId } from "../../core/id.js";
import type { Lane } from "../../core/lane.js";
import type { WorkerRef } from "../../core/lease.js";
import type { GateKey } from "../../core/limit.js";
import type { ForeignTransaction } from "../port.js";
import type { Settled, Settlement } from "../port-leases.js";
import { plainArray } from "./arrays.js";
import { type Db, foreignDb } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { settleGuarded, settlementKey } from "./settle-guarded.js";
import { isPlaced, type Placed, planSettlement, type SettlePlan, settleParameters } from "./settle-plan.js";
import { CLASSIFY, SETTLE, SETTLE_LIMITED } from "./settle-statements.js";
import type { Workers } from "./workers.js";

/** The answers in order, and the lanes of dependents that became ready. */
export interface SettleReport {
  readonly answers: readonly Settled[];
  readonly readied: readonly Lane[];
}

export interface Settling {
  readonly db: Db;
  readonly workers: Workers;
}

/** What became of a batch: the keys of those that are not settled, nor ever will be. */
interface Outcome {
  readonly stale: ReadonlySet<string>;
  readonly readied: readonly Lane[];
}

const ALL_SETTLED: Outcome = { stale: new Set(), readied: [] };

/** How often a batch is made again because somebody wrote to its leases meanwhile. */
const MOST_TRIES = 5;

export async function settle(
  { db, workers }: Settling,
  ref: WorkerRef,
  given: readonly Settlement[],
  tx?: ForeignTransaction,
): Promise<SettleReport> {
  if (given.length === 0) return { answers: [], readied: [] };
  const worker = await workers.id(ref);
  const { stale, readied } = await (tx === undefined
    ? settleAll(db, worker, given)
    : settleInside(db, foreignDb(db, tx), worker, firstOfEach(given)));
  return { answers: given.map((item) => (stale.size > 0 && stale.has(settlementKey(item)) ? "stale" : "settled")), readied };
}

/** By the one statement what it takes; what it leaves alone, by several. */
async function settleAll(db: Db, worker: number, given: readonly Settlement[]): Promise<Outcome> {
  let quick: readonly Settlement[] = given;
  const slow: Settlement[] = [];
  if (!given.every(isQuick)) {
    const items = firstOfEach(given);
    quick = items.filter(isQuick);
    slow.push(...items.filter((item) => !isQuick(item)));
  }
  for (let tries = 1; quick.length > 0; tries++) {
    const { again, apart } = await settleQuickly(db, worker, quick as readonly Placed[]);
    slow.push(...apart, ...(tries < MOST_TRIES ? [] : again));
    quick = tries < MOST_TRIES ? again : [];
  }
  if (slow.length === 0) return ALL_SETTLED;
  return db.transaction((own) => settleSlowly(db, own, worker, firstOfEach(slow)));
}

/**
 * One under limits that goes back to its lane lines up first, a key may be told to rest, and what a job died of may be a line
 * of its own: none of that is for the hot exit.
 */
function isQuick(item: Settlement): item is Placed {
  const { limited, patch } = item;
  return isPlaced(item) && patch.pauses === undefined && patch.diedOf === undefined && !(limited === true && patch.next === "ready");
}

/** Of two settlements of one attempt in one batch the first counts, and both are answered by what became of it. */
function firstOfEach(given: readonly Settlement[]): readonly Settlement[] {
  const first = new Map<string, Settlement>();
  for (const item of given) {
    const key = settlementKey(item);
    if (!first.has(key)) first.set(key, item);
  }
  return [...first.values()];
}

interface SettleRow {
  /** if it left something alone */
  readonly rest: string | null;
  /** what was freed for others to pass */
  readonly gates?: string | null;
  /** lanes of those to whom it was handed over */
  readonly fronts?: string | null;
}

interface Rest {
  /** numbers of runs, from 1 */
  readonly settled: readonly number[];
  readonly asked: readonly JobId[];
  /** leases that somebody wrote to after the statement's snapshot */
  readonly changed: readonly LeaseId[];
}

/** What is to be asked again, and what must be settled in several statements. */
interface Left {
  readonly again: readonly Placed[];
  readonly apart: readonly Placed[];
}

async function settleQuickly(db: Db, worker: number, items: readonly Placed[]): Promise<Left> {
  const plan = planSettlement(items);
  const asked = items.some((item) => item.limited === true) ? SETTLE_LIMITED : SETTLE;
  const [row] = (await db.query<SettleRow>(asked.statement, asked.values(settleParameters(plan, db.now(), worker)))) as [SettleRow];
  if (row.fronts) db.onFronts?.(JSON.parse(row.fronts) as Lane[]);
  if (row.gates) await db.onKnock?.(new Set(JSON.parse(row.gates) as GateKey[]), { made: true });
  return row.rest === null ? { again: [], apart: [] } : leftOf(plan, JSON.parse(row.rest) as Rest);
}

/** A job that something was asked of is settled apart, and its neighbours again. Of other runs, all are settled apart. */
function leftOf({ leases, runs }: SettlePlan, rest: Rest): Left {
  const settled = new Set(rest.settled);
  const changed = new Set(rest.changed);
  const asked = new Set(rest.asked);
  const again: Placed[] = [];
  const apart: Placed[] = [];
  for (const { id, from, to } of leases) {
    for (let number = from; number <= to; number++) {
      const run = runs[number - 1] as readonly Placed[];
      if (settled.has(number)) continue;
      if (changed.has(id)) again.push(...run);
      else if (!run.some(({ job }) => asked.has(job))) apart.push(...run);
      else for (const item of run) (asked.has(item.job) ? apart : again).push(item);
    }
  }
  return { again, apart };
}

/**
 * What was settled before is stale here: an earlier transaction of the same attempt did it, whose commit was not answered,
 * and this one's work would be done a second time.
 */
async function settleInside(db: Db, tx: Queryable, worker: number, items: readonly Settlement[]): Promise<Outcome> {
  const { unknown, repeated, readied } = await settleGuarded(db, tx, worker, items);
  return { stale: new Set([...unknown, ...repeated].map(settlementKey)), readied };
}

async function settleSlowly(db: Db, on: Queryable, worker: number, items: readonly Settlement[]): Promise<Outcome> {
  const { unknown, readied } = await settleGuarded(db, on, worker, items);
  return { stale: await staleOf(on, worker, unknown), readied };
}

/** Which of them are not on record from before: their leases are gone. */
async function staleOf(on: Queryable, worker: number, items: readonly Settlement[]): Promise<ReadonlySet<string>> {
  if (items.length === 0) return new Set();
  const rows = await on.query<{ known: boolean }>(CLASSIFY, [
    worker,
    plainArray(items.map((item) => item.lease)),
    plainArray(items.map((item) => item.job)),
  ]);
  return new Set(items.filter((_, index) => rows[index]?.known !== true).map(settlementKey));
}
