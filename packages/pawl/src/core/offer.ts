import { bandParts, defaultWeight } from "./band.js";
import { divide } from "./divide.js";
import type { Priority } from "./job.js";
import type { Lane } from "./lane.js";
import type { BandRules } from "./policy.js";
import type { Share } from "./share.js";

/** How many jobs of one lane a claim may take. */
export interface Quota {
  readonly lane: Lane;
  readonly quota: number;
}

/** What a lane may not exceed in this worker. */
export type LaneCap = (lane: Lane) => number;

/** A lane with work, and how much of it may be taken here. */
export interface OpenLane {
  readonly lane: Lane;
  readonly room: number;
}

export interface OpenTenant {
  readonly share: Share;
  /** whose turn it is first */
  readonly lanes: readonly OpenLane[];
}

export interface OpenBand {
  readonly band: Priority;
  readonly share: Share;
  readonly tenants: readonly OpenTenant[];
  /** more have work than are here: each has its turn to be looked at, and must not be passed over then */
  readonly some?: boolean;
}

/** Queues that share their bands by the same rules: one with rules of its own, or all the others together. */
export interface OpenQueues {
  readonly share: Share;
  readonly rules: BandRules;
  readonly bands: readonly OpenBand[];
  /** lanes whose heads have waited too long, the longest first */
  readonly overdue: readonly (OpenLane & { readonly share: Share })[];
}

/** The least that a tenant is asked for where many have more: quick jobs are cheaper by the dozen. The others wait for the next claim. */
export interface Portion {
  readonly jobs: number;
  /** ms of slots that one for every tenant may take in all: who has longer jobs gets fewer */
  readonly within: number;
}

const NO_PORTION: Portion = { jobs: 0, within: 0 };
/** No fewer tenants have a part of what a band gets, or a few would hold all that a worker has in hand. */
const LEAST_TENANTS = 15;

export interface Offered extends Quota {
  /** who is charged */
  readonly share: Share;
}

/**
 * Divides a claim among lanes with work: queues with rules of their own beside the others, bands by weight, inside a
 * band tenants by weight, inside a tenant its lanes in turn, so that fifty tasks buy no bigger share than one. Whoever
 * has had least of the worker's time comes first, up to what all can have. What a lane has no room for goes to others,
 * so quotas add up to `size` whenever there is room. First in the answer is who is furthest behind. That one gets a
 * whole portion, even if others get none this time: they are further behind the next time.
 */
export function offer(root: Share, queues: readonly OpenQueues[], size: number, now: number, portion: Portion = NO_PORTION): readonly Offered[] {
  const given = new Map<Lane, Offered>();
  let left = size;
  const give = ({ lane, room }: OpenLane, share: Share, count: number) => {
    const before = given.get(lane)?.quota ?? 0;
    const quota = Math.min(before + count, room, before + left);
    if (quota <= before) return;
    left -= quota - before;
    given.set(lane, { lane, quota, share });
  };
  for (const { overdue } of queues) for (const one of overdue) give(one, one.share, 1);
  if (left > 0) {
    const weighed = queues.map((one) => {
      one.share.weight = one.bands.reduce((sum, { band }) => sum + defaultWeight(band), 0) || 1;
      return { ...one, bands: one.bands.map((band) => ({ ...band, room: roomOfAll(band.tenants) })) };
    });
    for (const [one, count] of shared(root, weighed, (all) => sumOf(all.bands), left, now)) offerBands(one, count, { size, now, portion, give });
  }
  return [...given.values()];
}

/** What goes with one offer on its way down. */
interface Round {
  readonly size: number;
  readonly now: number;
  readonly portion: Portion;
  readonly give: (lane: OpenLane, share: Share, count: number) => void;
}
type RoomyBand = OpenBand & { readonly room: number };

function offerBands({ share, rules, bands }: { share: Share; rules: BandRules; bands: readonly RoomyBand[] }, count: number, round: Round): void {
  if (rules.strict) {
    let left = count;
    for (const band of [...bands].sort((a, b) => b.band - a.band)) {
      const part = Math.min(left, band.room);
      left -= part;
      if (part > 0) offerTenants(band, part, round);
    }
    return;
  }
  const parts = bandParts(
    bands.map(({ band }) => band),
    rules,
  );
  bands.forEach((band, index) => {
    band.share.weight = parts[index] as number;
  });
  for (const [band, part] of shared(share, bands, ({ room }) => room, count, round.now)) offerTenants(band, part, round);
}

function offerTenants({ share, tenants, some = false }: OpenBand, count: number, { size, now, portion, give }: Round): void {
  const jobs = some ? 0 : Math.min(portion.jobs, count / LEAST_TENANTS);
  const within = (portion.within * count) / size / tenants.length;
  // Whose jobs nobody has seen yet may have long ones.
  const least = ({ share: { took, cost, weight } }: OpenTenant) =>
    took === undefined ? 0 : Math.floor(Math.min(jobs * Math.min(1, weight), within / cost));
  for (const [tenant, part] of shared(share, tenants, ({ lanes }) => roomOf(lanes), count, now, least)) {
    const { lanes } = tenant;
    if (lanes.length === 1) {
      give(lanes[0] as OpenLane, tenant.share, part);
      continue;
    }
    const each = divide(
      lanes.map(({ room }) => ({ due: 0, each: 1, room })),
      part,
    );
    lanes.forEach((lane, index) => {
      give(lane, tenant.share, each[index] as number);
    });
  }
}

/** Those that get some, with how many, the one furthest behind first: each no less than `least`, even if the last ones then get none. */
function shared<T extends { readonly share: Share }>(
  parent: Share,
  all: readonly T[],
  room: (one: T) => number,
  count: number,
  now: number,
  least: (one: T) => number = () => 0,
): readonly (readonly [T, number])[] {
  const shares = all.map(({ share }) => share);
  parent.level(shares, now);
  const parts = all.map((one) => ({ one, due: one.share.due(now), each: one.share.cost / one.share.weight, room: room(one) }));
  if (parts.length > 1) parts.sort((a, b) => a.due - b.due);
  const counts = divide(parts, count);
  let left = count;
  return parts.flatMap(({ one, room: most }, index) => {
    const given = Math.min(left, most, Math.max(least(one), counts[index] as number));
    left -= given;
    return given > 0 ? [[one, given] as const] : [];
  });
}

function roomOfAll(tenants: readonly OpenTenant[]): number {
  let room = 0;
  for (const { lanes } of tenants) room += roomOf(lanes);
  return room;
}

function roomOf(lanes: readonly OpenLane[]): number {
  let room = 0;
  for (const lane of lanes) room += lane.room;
  return room;
}

function sumOf(bands: readonly RoomyBand[]): number {
  let room = 0;
  for (const band of bands) room += band.room;
  return room;
}
