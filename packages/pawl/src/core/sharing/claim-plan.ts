import type { Priority } from "../jobs/job.js";
import type { Lane } from "../jobs/lane.js";
import { divide } from "./divide.js";
import type { Share } from "./fair-share.js";
import type { PriorityRules } from "./policy.js";
import { defaultWeight, priorityParts } from "./priority-weights.js";

/** How many jobs of one lane a claim may take. */
export interface Quota {
  readonly lane: Lane;
  readonly quota: number;
}

/** What a lane may not exceed in this worker. */
export type LaneRoom = (lane: Lane) => number;

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

export interface OpenPriority {
  readonly priority: Priority;
  readonly share: Share;
  readonly tenants: readonly OpenTenant[];
  /** more have work than are here: each has its turn to be looked at, and must not be passed over then */
  readonly some?: boolean;
}

/** Queues that share their priorities by the same rules: one with rules of its own, or all the others together. */
export interface OpenQueues {
  readonly share: Share;
  readonly rules: PriorityRules;
  readonly priorities: readonly OpenPriority[];
  /** lanes whose heads have waited too long, the longest first */
  readonly overdue: readonly (OpenLane & { readonly share: Share })[];
}

/** The least that a tenant is asked for where many have more: quick jobs are cheaper by the dozen. The others wait for the next claim. */
export interface MinimumBatch {
  readonly jobs: number;
  /** ms of slots that one for every tenant may take in all: who has longer jobs gets fewer */
  readonly within: number;
}

const NO_MINIMUM_BATCH: MinimumBatch = { jobs: 0, within: 0 };
/** No fewer tenants have a part of what a priority gets, or a few would hold all that a worker has in hand. */
const MIN_TENANTS = 15;

export interface PlannedQuota extends Quota {
  /** who is charged */
  readonly share: Share;
}

/**
 * Divides a claim among lanes with work: queues with rules of their own beside the others, priorities by weight, inside a
 * priority tenants by weight, inside a tenant its lanes in turn, so that fifty tasks buy no bigger share than one. Whoever
 * has had least of the worker's time comes first, up to what all can have. What a lane has no room for goes to others,
 * so quotas add up to `size` whenever there is room. First in the answer is who is furthest behind. That one gets a
 * whole minimum batch, even if others get none this time: they are further behind the next time.
 */
export function planClaim(
  root: Share,
  queues: readonly OpenQueues[],
  size: number,
  now: number,
  minimumBatch: MinimumBatch = NO_MINIMUM_BATCH,
): readonly PlannedQuota[] {
  const planned = new Map<Lane, PlannedQuota>();
  let left = size;
  const give = ({ lane, room }: OpenLane, share: Share, count: number) => {
    const before = planned.get(lane)?.quota ?? 0;
    const quota = Math.min(before + count, room, before + left);
    if (quota <= before) return;
    left -= quota - before;
    planned.set(lane, { lane, quota, share });
  };
  for (const { overdue } of queues) for (const one of overdue) give(one, one.share, 1);
  if (left > 0) {
    const weighed = queues.map((one) => {
      one.share.weight = one.priorities.reduce((sum, { priority }) => sum + defaultWeight(priority), 0) || 1;
      return { ...one, priorities: one.priorities.map((priority) => ({ ...priority, room: roomOfAll(priority.tenants) })) };
    });
    for (const [one, count] of divideByShare(root, weighed, (all) => sumOf(all.priorities), left, now))
      planPriorities(one, count, { size, now, minimumBatch, give });
  }
  return [...planned.values()];
}

/** What goes with one offer on its way down. */
interface PlanStep {
  readonly size: number;
  readonly now: number;
  readonly minimumBatch: MinimumBatch;
  readonly give: (lane: OpenLane, share: Share, count: number) => void;
}
type PriorityWithRoom = OpenPriority & { readonly room: number };

function planPriorities(
  { share, rules, priorities }: { share: Share; rules: PriorityRules; priorities: readonly PriorityWithRoom[] },
  count: number,
  round: PlanStep,
): void {
  if (rules.strictPriority) {
    let left = count;
    for (const priority of [...priorities].sort((a, b) => b.priority - a.priority)) {
      const part = Math.min(left, priority.room);
      left -= part;
      if (part > 0) planTenants(priority, part, round);
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
  for (const [priority, part] of divideByShare(share, priorities, ({ room }) => room, count, round.now)) planTenants(priority, part, round);
}

function planTenants({ share, tenants, some = false }: OpenPriority, count: number, { size, now, minimumBatch, give }: PlanStep): void {
  const jobs = some ? 0 : Math.min(minimumBatch.jobs, count / MIN_TENANTS);
  const within = (minimumBatch.within * count) / size / tenants.length;
  // Whose jobs nobody has seen yet may have long ones.
  const least = ({ share: { took, cost, weight } }: OpenTenant) =>
    took === undefined ? 0 : Math.floor(Math.min(jobs * Math.min(1, weight), within / cost));
  for (const [tenant, part] of divideByShare(share, tenants, ({ lanes }) => roomOf(lanes), count, now, least)) {
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
function divideByShare<T extends { readonly share: Share }>(
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
    const planned = Math.min(left, most, Math.max(least(one), counts[index] as number));
    left -= planned;
    return planned > 0 ? [[one, planned] as const] : [];
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

function sumOf(priorities: readonly PriorityWithRoom[]): number {
  let room = 0;
  for (const priority of priorities) room += priority.room;
  return room;
}
