import type { ParkReason } from "../core/job.js";
import { checkName } from "../core/name.js";
import { checkArray, checkKeys, checkObject, invalid } from "../core/option.js";
import type { PolicyRef } from "../core/policy.js";
import type { Store } from "../store/port.js";
import { MOST_COUNTED, type Wait } from "../store/port-explain.js";
import type { CountRow } from "../store/port-records.js";

/** What waits: how much, for what, how long, and of whom. Reading it scans nothing that grows with the work. */
export interface Depths {
  /** by queue and task */
  readonly rows: readonly CountRow[];
  /** the longest wait of each queue and band with ready jobs */
  readonly waits: readonly Wait[];
  /** exact up to 10,000 parked jobs; beyond that, what some 10,000 of them tell */
  readonly parked: Readonly<Record<ParkReason, number>>;
  /** jobs of these tenants that are ready or parked at a limit; counted up to some 10,000 each */
  readonly tenants: Readonly<Record<string, number>>;
  /** whose jobs wait because all of it is paused */
  readonly paused: readonly PolicyRef[];
}

export interface DepthsOf {
  /** whose depth to count besides, 100 at most */
  readonly tenants?: readonly string[];
}

const KEYS: ReadonlySet<string> = new Set(["tenants"] satisfies readonly (keyof DepthsOf)[]);
const MOST_TENANTS = 100;
/** Lanes that are looked at for the longest wait. */
const MOST_LANES = 1_000;
const NOTHING: Readonly<Record<ParkReason, number>> = { paused: 0, concurrency: 0, serial: 0, rate: 0, key_paused: 0 };

export async function depthsOf(store: Store, of: DepthsOf = {}): Promise<Depths> {
  checkKeys(checkObject("of", of), KEYS, "of.");
  const names = checkArray("of.tenants", of.tenants ?? []).map((name) => checkName("tenant", name));
  if (names.length > MOST_TENANTS) throw invalid("of.tenants", `${names.length} are more than ${MOST_TENANTS}`);
  const [rows, waits, tenants, paused] = await Promise.all([
    store.records.counts(),
    store.explain.waits(MOST_LANES),
    names.length === 0 ? [] : store.explain.depths([...new Set(names)]),
    store.lanes.paused(),
  ]);
  const total = rows.reduce((sum, { counts }) => sum + counts.parked, 0);
  const parked = total === 0 ? [] : await store.explain.parked();
  const seen = parked.reduce((sum, { count }) => sum + count, 0);
  // More than was looked at: what was seen stands for all.
  const scale = seen >= MOST_COUNTED && total > seen ? total / seen : 1;
  return {
    rows,
    waits,
    parked: { ...NOTHING, ...Object.fromEntries(parked.map(({ reason, count }) => [reason, Math.round(count * scale)])) },
    tenants: Object.fromEntries(tenants.map(({ tenant, depth }) => [tenant, depth])),
    paused,
  };
}
