import type { Priority } from "../jobs/job.js";
import type { Lane } from "../jobs/lane.js";
import { divide } from "./divide.js";
import type { Share } from "./fair-share.js";
import { LANES_PER_CLAIM, type LaneEntry, type LaneState, type PriorityLanes, type QueueGroup, type TenantLanes } from "./lane-state.js";
import type { PolicySet } from "./policy-set.js";
import { defaultWeight, priorityParts } from "./priority-weights.js";

/** How many jobs of a lane a planned claim takes at most. */
export interface PlannedQuota {
  readonly entry: LaneEntry;
  readonly lane: Lane;
  readonly quota: number;
}

/** A claim to divide. */
export interface ClaimSize {
  /** jobs */
  readonly limit: number;
  /** jobs of a lane that may be taken in this worker now; 0: it is passed over */
  readonly room: (entry: LaneEntry) => number;
  /** ms of slots that a minimum batch for every tenant may take in all: a tenant with longer jobs gets fewer */
  readonly timeAhead: number;
  /** monotonic ms */
  readonly now: number;
}

/** No fewer tenants have a part of what a priority gets, or a few would hold all that a worker has in hand. */
const MIN_TENANTS = 15;

/**
 * Divides a claim among lanes with work: queues with rules of their own beside the others, priorities by weight, inside a
 * priority tenants by weight, inside a tenant its lanes in turn, so that fifty tasks buy no bigger share than one. The one
 * that has had least of the worker's time comes first, up to what all can have. Jobs that a lane has no room for go to others,
 * so quotas add up to `limit` whenever there is room. The first quota is of the tenant that is furthest behind. It gets a
 * whole minimum batch, even if others get none this time: they are further behind the next time.
 *
 * Lanes whose heads have waited for longer than the aging of their queue come before all that, with one job each.
 */
export function divideClaim(lanes: LaneState, policies: PolicySet, size: ClaimSize): readonly PlannedQuota[] {
  const groups = openGroups(lanes, policies, size);
  const division: Division = { size, minimumBatch: lanes.minimumBatch, left: size.limit, quotas: [], overdue: new Map() };
  for (const { overdue } of groups) {
    for (const lane of overdue) {
      const quota = give(division, lane, 1);
      if (quota !== undefined) division.overdue.set(lane.entry, quota);
    }
  }
  if (division.left === 0) return division.quotas;
  for (const { share, priorities } of groups) share.weight = priorities.reduce((sum, { priority }) => sum + defaultWeight(priority), 0) || 1;
  for (const [group, count] of divideByShare(lanes.root, groups, division.left, size.now)) divideGroup(group, count, policies, division);
  return division.quotas;
}

/** A part of the tree of lanes, with the lanes that have room now. */
interface OpenPart {
  readonly share: Share;
  /** of all its lanes together */
  readonly room: number;
}
interface OpenLane {
  readonly entry: LaneEntry;
  readonly room: number;
}
interface OpenTenant extends OpenPart {
  readonly lanes: readonly OpenLane[];
}
interface OpenPriority extends OpenPart {
  readonly priority: Priority;
  readonly tenants: readonly OpenTenant[];
  /** more tenants have work than are here: each has its turn to be looked at, and must not be passed over then */
  readonly isPartial: boolean;
}
interface OpenGroup extends OpenPart {
  readonly queue: string;
  readonly priorities: readonly OpenPriority[];
  /** lanes whose heads have waited too long, the longest first */
  readonly overdue: readonly OpenLane[];
}

/** A claim while it is divided. */
interface Division {
  readonly size: ClaimSize;
  readonly minimumBatch: number;
  left: number;
  readonly quotas: GrowingQuota[];
  /** quotas of overdue lanes, which may get more when their turn comes */
  readonly overdue: Map<LaneEntry, GrowingQuota>;
}
type GrowingQuota = { -readonly [K in keyof PlannedQuota]: PlannedQuota[K] };

/** Of each priority the next tenants in turn that have room, and of each tenant the next lanes. */
function openGroups({ groups, maxLanes }: LaneState, policies: PolicySet, size: ClaimSize): readonly OpenGroup[] {
  const open: OpenGroup[] = [];
  for (const group of groups.values()) {
    const { queue, share } = group;
    const priorities: OpenPriority[] = [];
    for (const lanes of group.priorities.values()) {
      if (lanes.turns.size === 0) continue;
      const priority = openPriority(lanes, maxLanes, size);
      if (priority.room > 0) priorities.push(priority);
    }
    const { aging } = policies.rulesOf(queue);
    const overdue = aging === undefined ? [] : overdueLanes(group, size.now - aging, size);
    if (priorities.length > 0 || overdue.length > 0) open.push({ queue, share, room: roomOf(priorities), priorities, overdue });
  }
  return open;
}

function openPriority({ priority, share, turns }: PriorityLanes, maxLanes: number, size: ClaimSize): OpenPriority {
  const lanesOfEach = Math.max(1, Math.floor(maxLanes / turns.size));
  const tenants: OpenTenant[] = [];
  let last: TenantLanes | undefined;
  for (let offset = 0; offset < turns.size && tenants.length < maxLanes; offset++) {
    last = turns.at(offset);
    const lanes = openLanes(last, lanesOfEach, size);
    if (lanes.length > 0) tenants.push({ share: last.share, room: roomOf(lanes), lanes });
  }
  if (last !== undefined) turns.advancePast(last);
  return { priority, share, room: roomOf(tenants), tenants, isPartial: turns.size > maxLanes };
}

function openLanes({ lanes }: TenantLanes, max: number, { room: roomIn }: ClaimSize): readonly OpenLane[] {
  const open: OpenLane[] = [];
  for (let offset = 0; offset < lanes.size && open.length < max; offset++) {
    const entry = lanes.at(offset);
    const room = roomIn(entry);
    if (room > 0) open.push({ entry, room });
  }
  return open;
}

function overdueLanes({ waiting }: QueueGroup, since: number, { room: roomIn }: ClaimSize): readonly OpenLane[] {
  const overdue: OpenLane[] = [];
  for (const entry of waiting.values()) {
    if (entry.since > since || overdue.length >= LANES_PER_CLAIM) break;
    const room = roomIn(entry);
    if (room > 0) overdue.push({ entry, room });
  }
  return overdue;
}

function divideGroup({ queue, share, priorities }: OpenGroup, count: number, policies: PolicySet, division: Division): void {
  const rules = policies.rulesOf(queue);
  if (rules.strictPriority) {
    let left = count;
    for (const priority of [...priorities].sort((a, b) => b.priority - a.priority)) {
      const part = Math.min(left, priority.room);
      left -= part;
      if (part > 0) dividePriority(priority, part, division);
    }
    return;
  }
  const parts = priorityParts(
    priorities.map(({ priority }) => priority),
    rules,
  );
  priorities.forEach((priority, index) => {
    priority.share.weight = parts[index] as number;
  });
  for (const [priority, part] of divideByShare(share, priorities, count, division.size.now)) dividePriority(priority, part, division);
}

function dividePriority({ share, tenants, isPartial }: OpenPriority, count: number, division: Division): void {
  const { size, minimumBatch } = division;
  const jobs = isPartial ? 0 : Math.min(minimumBatch, count / MIN_TENANTS);
  const time = (size.timeAhead * count) / size.limit / tenants.length;
  // A tenant of which no job has ended yet may have long ones.
  const least = ({ share: { took, cost, weight } }: OpenTenant) =>
    took === undefined ? 0 : Math.floor(Math.min(jobs * Math.min(1, weight), time / cost));
  for (const [{ lanes }, part] of divideByShare(share, tenants, count, size.now, least)) {
    if (lanes.length === 1) {
      give(division, lanes[0] as OpenLane, part);
      continue;
    }
    const each = divide(
      lanes.map(({ room }) => ({ due: 0, each: 1, room })),
      part,
    );
    lanes.forEach((lane, index) => {
      give(division, lane, each[index] as number);
    });
  }
}

/** Gives so many jobs to a lane, as far as it has room and there are any left. Answers its quota if it is a new one. */
function give(division: Division, { entry, room }: OpenLane, count: number): GrowingQuota | undefined {
  const earlier = division.overdue.size === 0 ? undefined : division.overdue.get(entry);
  const before = earlier?.quota ?? 0;
  const quota = Math.min(before + count, room, before + division.left);
  if (quota <= before) return undefined;
  division.left -= quota - before;
  if (earlier !== undefined) {
    earlier.quota = quota;
    return undefined;
  }
  const added = { entry, lane: entry.lane, quota };
  division.quotas.push(added);
  return added;
}

/** The parts that get some, with how many, the one furthest behind first: each no less than `least`, even if the last ones then get none. */
function divideByShare<T extends OpenPart>(
  parent: Share,
  all: readonly T[],
  count: number,
  now: number,
  least: (one: T) => number = () => 0,
): readonly (readonly [T, number])[] {
  parent.level(
    all.map(({ share }) => share),
    now,
  );
  const parts = all.map((one) => ({ one, due: one.share.due(now), each: one.share.cost / one.share.weight, room: one.room }));
  if (parts.length > 1) parts.sort((a, b) => a.due - b.due);
  const counts = divide(parts, count);
  let left = count;
  return parts.flatMap(({ one, room }, index) => {
    const planned = Math.min(left, room, Math.max(least(one), counts[index] as number));
    left -= planned;
    return planned > 0 ? [[one, planned] as const] : [];
  });
}

function roomOf(parts: readonly { readonly room: number }[]): number {
  let room = 0;
  for (const part of parts) room += part.room;
  return room;
}
