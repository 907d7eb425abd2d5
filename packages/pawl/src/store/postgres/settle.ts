import type { Lane } from "../../core/lane.js";
import type { WorkerRef } from "../../core/lease.js";
import type { GateKey } from "../../core/limit.js";
import type { ForeignTransaction } from "../port.js";
import type { Settled, Settlement } from "../port-leases.js";
import { plainArray } from "./arrays.js";
import { type Bundle, type HeldLeases, type Sorted, settlementKey } from "./bundles.js";
import { type Db, foreignDb } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { bundledParameters, SETTLE_BUNDLED } from "./settle-bundled.js";
import { settleGuarded } from "./settle-guarded.js";
import { settleParameters } from "./settle-parameters.js";
import { CLASSIFY, SETTLE, SETTLE_LIMITED } from "./settle-statements.js";
import { isUnfit } from "./unfit.js";
import type { Workers } from "./workers.js";

/** The answers in order, and the lanes of dependents that became ready. */
export interface SettleReport {
  readonly answers: readonly Settled[];
  readonly readied: readonly Lane[];
}

/**
 * One under limits that goes back to its lane lines up first, a key may be told to rest, and what a job died of may be a line
 * of its own: none of that is for the hot exit.
 */
function isPlain({ limited, patch }: Settlement): boolean {
  return patch.pauses === undefined && patch.diedOf === undefined && !(limited === true && patch.next === "ready");
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

/**
 * What was settled before is stale here: an earlier transaction of the same attempt did it, whose commit was not answered,
 * and this one's work would be done a second time.
 */
async function settleInside(
  { db, held }: Settling,
  tx: ForeignTransaction,
  worker: number,
  settlements: readonly Settlement[],
): Promise<SettleReport> {
  const { fresh, readied } = await settleGuarded(db, foreignDb(db, tx), worker, settlements);
  // If it is rolled back, what is left of these leases is settled row by row.
  held.settled({ bundles: [], rest: settlements });
  const applied = new Set(fresh);
  return { answers: settlements.map((item) => (applied.has(item) ? "settled" : "stale")), readied };
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
  const { readied } = await settleGuarded(db, on, worker, settlements);
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
  /** lanes of those to whom it was handed over */
  readonly fronts?: string | null;
}

async function settleAll(db: Db, worker: number, settlements: readonly Settlement[]): Promise<boolean> {
  if (!settlements.every(isPlain)) return false;
  const limited = settlements.some((item) => item.limited === true);
  const fit = await fitting(db.query<Fit>(limited ? SETTLE_LIMITED : SETTLE, [db.now(), worker, ...settleParameters(settlements)]));
  if (fit?.fronts) db.onFronts?.(JSON.parse(fit.fronts) as Lane[]);
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
