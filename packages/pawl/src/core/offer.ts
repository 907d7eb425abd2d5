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

/** An irrational step: turns fall evenly between 0 and 1, in step with nothing that repeats. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/**
 * Divides a claim among the live lanes: bands by weight, inside a band tenants alike, inside a tenant its lanes alike,
 * so that fifty tasks buy no bigger share than one. What a cap keeps from one lane goes to the others, so quotas add
 * up to `size` whenever the caps let them.
 *
 * `turn` says where the rings start; the caller moves it on with each claim, so that nobody is first, or left out, for
 * ever: a share too small for one claim is served every so many turns.
 */
export function offer(lanes: readonly Lane[], size: number, turn: number, cap: LaneCap): readonly Quota[] {
  if (size <= 0) return [];
  const quotas = new Map<Lane, number>();
  const give = (lane: Lane, share: number) => {
    const quota = Math.min(share, cap(lane) - (quotas.get(lane) ?? 0));
    if (quota > 0) quotas.set(lane, (quotas.get(lane) ?? 0) + quota);
  };
  for (const { band, share } of bandShares(lanes, size, turn)) {
    const tenants = [...groupBy(band, (lane) => lane.tenant).values()];
    // A tenant's lanes move on when the ring of tenants has gone round, or some would always meet the same turn.
    const lap = Math.floor(turn / tenants.length);
    split(share, tenants, turn, (own, part) => split(part, own, lap, give));
  }
  giveRest(lanes, size, turn, cap, quotas, give);
  return [...quotas].map(([lane, quota]) => ({ lane, quota }));
}

/** Most urgent first. Shares add up to `size`; the fractions lost in one turn are made up for in others. */
function bandShares(lanes: readonly Lane[], size: number, turn: number): readonly { readonly band: readonly Lane[]; readonly share: number }[] {
  const bands = [...groupBy(lanes, (lane) => lane.band)].sort(([a], [b]) => b - a);
  const total = bands.reduce((sum, [band]) => sum + weightOf(band), 0);
  const phase = (turn * GOLDEN) % 1;
  let weight = 0;
  let given = 0;
  return bands.map(([, band], n) => {
    weight += weightOf((band[0] as Lane).band);
    // The last one is exact, whatever rounding did to the sum of weights.
    const upTo = n === bands.length - 1 ? size : Math.min(size, Math.floor((size * weight) / total + phase));
    const share = upTo - given;
    given = upTo;
    return { band, share };
  });
}

/** What caps left over, to the lanes that can still take it. Every round fills a lane to its cap, or is the last. */
function giveRest(
  lanes: readonly Lane[],
  size: number,
  turn: number,
  cap: LaneCap,
  quotas: ReadonlyMap<Lane, number>,
  give: (lane: Lane, share: number) => void,
): void {
  const given = () => [...quotas.values()].reduce((sum, quota) => sum + quota, 0);
  let rest = size - given();
  while (rest > 0) {
    const open = lanes.filter((lane) => cap(lane) > (quotas.get(lane) ?? 0));
    if (open.length === 0) return;
    split(rest, open, turn, give);
    rest = size - given();
  }
}

/** Alike, and what does not divide goes to the first ones in turn. */
function split<T>(share: number, items: readonly T[], turn: number, give: (item: T, share: number) => void): void {
  const each = Math.floor(share / items.length);
  const extra = share % items.length;
  for (const [rank, item] of inTurn(items, turn).entries()) {
    const part = rank < extra ? each + 1 : each;
    if (part === 0) return;
    give(item, part);
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
