import type { ParkReason } from "../../core/jobs/job.js";
import type { PolicyRef } from "../../core/sharing/policy.js";
import { checkName } from "../../core/values/name.js";
import { checkArray, checkKeys, checkObject, invalid } from "../../core/values/option.js";
import type { Store } from "../../store/port/index.js";
import { type LongestWait, MAX_COUNTED } from "../../store/port/observe/explain.js";
import type { CountRow } from "../../store/port/settle/records.js";

/** What waits: how much, for what, how long, and of whom. Reading it scans nothing that grows with the work. */
export interface Backlog {
  /** by queue and task */
  readonly rows: readonly CountRow[];
  /** the longest wait of each queue and priority with ready jobs */
  readonly waits: readonly LongestWait[];
  /** exact up to 10,000 parked jobs; beyond that, what some 10,000 of them tell */
  readonly parked: Readonly<Record<ParkReason, number>>;
  /** jobs of these tenants that are ready or parked at a limit; counted up to some 10,000 each */
  readonly tenants: Readonly<Record<string, number>>;
  /** whose jobs wait because all of it is paused */
  readonly paused: readonly PolicyRef[];
}

export interface BacklogOptions {
  /** whose depth to count besides, 100 at most */
  readonly tenants?: readonly string[];
}

const KEYS: ReadonlySet<string> = new Set(["tenants"] satisfies readonly (keyof BacklogOptions)[]);
const MAX_TENANTS = 100;
/** Lanes that are looked at for the longest wait. */
const MAX_LANES = 1_000;
const NO_PARKED_JOBS: Readonly<Record<ParkReason, number>> = { paused: 0, concurrency: 0, serial: 0, rate: 0, key_paused: 0 };

export async function backlogOf(store: Store, of: BacklogOptions = {}): Promise<Backlog> {
  checkKeys(checkObject("of", of), KEYS, "of.");
  const names = checkArray("of.tenants", of.tenants ?? []).map((name) => checkName("tenant", name));
  if (names.length > MAX_TENANTS) throw invalid("of.tenants", `${names.length} are more than ${MAX_TENANTS}`);
  const [rows, waits, tenants, paused] = await Promise.all([
    store.records.counts(),
    store.explain.waits(MAX_LANES),
    names.length === 0 ? [] : store.explain.depths([...new Set(names)]),
    store.lanes.paused(),
  ]);
  const total = rows.reduce((sum, { counts }) => sum + counts.parked, 0);
  const parked = total === 0 ? [] : await store.explain.parked();
  const counted = parked.reduce((sum, { count }) => sum + count, 0);
  // More than was looked at: what was seen stands for all.
  const scale = counted >= MAX_COUNTED && total > counted ? total / counted : 1;
  return {
    rows,
    waits,
    parked: { ...NO_PARKED_JOBS, ...Object.fromEntries(parked.map(({ reason, count }) => [reason, Math.round(count * scale)])) },
    tenants: Object.fromEntries(tenants.map(({ tenant, depth }) => [tenant, depth])),
    paused,
  };
}
