import type { Priority } from "./job.js";
import type { Lane } from "./lane.js";

/** How many jobs of one lane a claim may take. */
export interface Quota {
  readonly lane: Lane;
  readonly quota: number;
}

/** What a lane may not exceed in this worker: its free slots for that queue and task. */
export type LaneCap = (lane: Lane) => number;

/** Each band's share of a contended claim. The lowest keeps about 1 % under a flood of everything above it. */
const BAND_WEIGHTS: readonly number[] = [1, 1.5, 2, 3, 5, 8, 13, 20, 30, 45];

/**
 * Divides a claim among the live lanes: bands by weight, inside a band tenants in turn, inside a tenant its lanes in
 * turn, so that fifty tasks buy no bigger share than one. Quotas add up to at least `size` whenever the caps let
 * them: a lane with little work leaves the rest to the others, so quotas overbook and the claim's total limit rules.
 *
 * `turn` says where the rings start; the caller moves it on with each claim, so that nobody is first for ever.
 */
export function offer(lanes: readonly Lane[], size: number, turn: number, cap: LaneCap): readonly Quota[] {
  if (size <= 0 || lanes.length === 0) return [];
  const bands = groupBy(lanes, (lane) => lane.band);
  const total = [...bands.keys()].reduce<number>((sum, band) => sum + weightOf(band), 0);
  const quotas: Quota[] = [];
  for (const band of inTurn([...bands.keys()].sort((a, b) => b - a), 0)) {
    const share = Math.max(1, Math.ceil((size * weightOf(band)) / total));
    offerBand(bands.get(band) as Lane[], share, turn, cap, quotas);
  }
  return quotas;
}

function offerBand(lanes: readonly Lane[], share: number, turn: number, cap: LaneCap, quotas: Quota[]): void {
  const tenants = [...groupBy(lanes, (lane) => lane.tenant).values()];
  const perTenant = Math.max(1, Math.ceil(share / tenants.length));
  let left = share;
  for (const own of inTurn(tenants, turn)) {
    if (left <= 0) return;
    const perLane = Math.max(1, Math.ceil(perTenant / own.length));
    let tenantLeft = perTenant;
    for (const lane of inTurn(own, turn)) {
      const quota = Math.min(perLane, tenantLeft, left, cap(lane));
      if (quota <= 0) continue;
      quotas.push({ lane, quota });
      tenantLeft -= quota;
      left -= quota;
      if (tenantLeft <= 0) break;
    }
  }
}

function weightOf(band: Priority): number {
  return BAND_WEIGHTS[band] as number;
}

function inTurn<T>(items: readonly T[], turn: number): readonly T[] {
  if (items.length < 2) return items;
  const start = turn % items.length;
  return start === 0 ? items : [...items.slice(start), ...items.slice(0, start)];
}

function groupBy<T, K>(items: readonly T[], key: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group === undefined) groups.set(key(item), [item]);
    else group.push(item);
  }
  return groups;
}

