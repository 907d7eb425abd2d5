import type { Priority } from "../../core/jobs/job.js";
import { type Lane, type LaneKey, laneKey } from "../../core/jobs/lane.js";
import type { Took } from "../../core/limits/capacity.js";
import type { LaneRoom, OpenLane, OpenPriority, OpenQueues, OpenTenant, PlannedQuota } from "../../core/sharing/claim-plan.js";
import { Share } from "../../core/sharing/fair-share.js";
import type { PolicyCache } from "./policy-cache.js";
import { RoundRobin } from "./round-robin.js";

interface LaneWithWork {
  readonly key: LaneKey;
  readonly lane: Lane;
  readonly queues: QueueLanes;
  readonly tenant: TenantLanes;
  /** when it was last said to have work, in the claimer's own count */
  sequence: number;
  /** its place among its tenant's lanes */
  index: number;
  /** since when its head waits to be asked for, monotonic */
  since: number;
}

interface TenantLanes {
  readonly share: Share;
  readonly lanes: RoundRobin<LaneWithWork>;
  /** its place in its priority's round robin, while it has lanes */
  index: number;
}

interface PriorityLevel {
  readonly share: Share;
  readonly tenants: Map<string, TenantLanes>;
  readonly roundRobin: RoundRobin<TenantLanes>;
}

interface QueueLanes {
  readonly name: string;
  readonly share: Share;
  readonly priorities: Map<Priority, PriorityLevel>;
  /** by how long their heads have waited, the longest first; kept only where that matters */
  readonly waiting: Map<LaneKey, LaneWithWork>;
}

/** Tenants, and lanes, of a priority looked at by one claim: a claim takes hundreds of jobs, so thousands come in turn. */
const LANES_PER_CLAIM = 128;
/** The same while lanes have a few jobs each. */
const MAX_LANES_PER_CLAIM = 256;
/** Jobs of a tenant from which on more at a time would save nothing. */
const MAX_MINIMUM_BATCH = 64;
/** Tenants of a priority whose time is remembered though they have no work. */
const MAX_REMEMBERED_TENANTS = 10_000;

/**
 * The lanes known to have work, and what those who share this worker have had of it. What is not known costs nothing: a
 * wakeup or the poll brings it. Lanes come by tenant, so that a tenant of fifty lanes has one place in the line.
 */
export class LanesWithWork {
  readonly root = new Share(undefined);
  /** lanes that may be asked for only with care */
  atMostOnceLanes = 0;
  readonly #lanesByKey = new Map<LaneKey, LaneWithWork>();
  /** by the very object that `next` gave out, which costs no key to be made */
  readonly #lanesByObject = new Map<Lane, LaneWithWork>();
  readonly #queues = new Map<string, QueueLanes>();
  #maxLanes = LANES_PER_CLAIM;
  #minimumBatch = 0;

  constructor(
    private readonly policies: PolicyCache,
    private readonly clock: { monotonic(): number; random(): number },
    private readonly isAtMostOnce: (lane: Lane) => boolean = () => false,
  ) {}

  get size(): number {
    return this.#lanesByKey.size;
  }

  /** tenants whose time is known */
  get remembered(): number {
    let count = 0;
    for (const { priorities } of this.#queues.values()) for (const { tenants } of priorities.values()) count += tenants.size;
    return count;
  }

  /** Those that are known to have work. */
  *lanes(): Generator<Lane> {
    for (const { lane } of this.#lanesByKey.values()) yield lane;
  }

  /** ms that jobs of tenants with work took lately, of up to so many of them; nothing while there is nobody to compare with. */
  tenantDurations(max: number): readonly Took[] | undefined {
    const took = new Map<string, number>();
    for (const { priorities } of this.#queues.values()) {
      for (const { tenants } of priorities.values()) {
        for (const [name, { share, lanes }] of tenants) {
          if (lanes.size > 0 && share.took !== undefined && took.size < max) took.set(name, share.took);
        }
      }
    }
    return took.size < 2 ? undefined : [...took];
  }

  add(lane: Lane, sequence: number): void {
    const key = laneKey(lane);
    const knownLane = this.#lanesByKey.get(key);
    if (knownLane !== undefined) {
      knownLane.sequence = sequence;
      return;
    }
    const queues = this.#queuesOf(lane);
    const priority = priorityOf(queues, lane);
    const tenant = this.#tenantOf(priority, lane);
    const newLane: LaneWithWork = { key, lane, queues, tenant, sequence, index: 0, since: this.clock.monotonic() };
    tenant.lanes.add(newLane);
    if (tenant.lanes.size === 1) {
      priority.roundRobin.add(tenant);
      // Where they begin is left to chance, so that workers that start together do not go round together.
      if (priority.roundRobin.size === 2) priority.roundRobin.startAt(this.clock.random());
    }
    this.#lanesByKey.set(key, newLane);
    this.#lanesByObject.set(lane, newLane);
    if (this.isAtMostOnce(lane)) this.atMostOnceLanes++;
    this.#await(newLane);
  }

  /** Forgets a lane that gave nothing, unless it was said to have work after `since`. */
  forget(lane: Lane, since: number): void {
    const knownLane = this.#lanesByObject.get(lane) ?? this.#lanesByKey.get(laneKey(lane));
    if (knownLane === undefined || knownLane.sequence > since) return;
    this.#lanesByKey.delete(knownLane.key);
    this.#lanesByObject.delete(knownLane.lane);
    if (this.atMostOnceLanes > 0 && this.isAtMostOnce(lane)) this.atMostOnceLanes--;
    if (knownLane.queues.waiting.size > 0) knownLane.queues.waiting.delete(knownLane.key);
    knownLane.tenant.lanes.remove(knownLane);
    if (knownLane.tenant.lanes.size === 0) priorityOf(knownLane.queues, lane).roundRobin.remove(knownLane.tenant);
  }

  /** Jobs that are worth asking a tenant for at a time. (Counted by lane: most tenants have one.) */
  get minimumBatch(): number {
    return this.#minimumBatch;
  }

  /** Takes over a fresh list; lanes hinted at since it was asked for stay. */
  replace(lanes: readonly Lane[], since: number): void {
    const fresh = new Set(lanes.map(laneKey));
    for (const [key, { lane }] of this.#lanesByKey) if (!fresh.has(key)) this.forget(lane, since);
    for (const lane of lanes) if (!this.#lanesByKey.has(laneKey(lane))) this.add(lane, since);
    this.#tidy();
  }

  /** Policies have changed: weights take effect, and lanes come under the rules of their queues. */
  applyPolicies(): void {
    const all = [...this.#lanesByKey.values()];
    if (all.some(({ lane }) => !this.#queues.has(this.#nameFor(lane)))) {
      // Lanes have moved from one set of rules to another: everybody begins anew.
      this.#lanesByKey.clear();
      this.#lanesByObject.clear();
      this.atMostOnceLanes = 0;
      this.#queues.clear();
      for (const { lane, sequence } of all) this.add(lane, sequence);
      return;
    }
    for (const queues of this.#queues.values()) {
      for (const { tenants } of queues.priorities.values()) for (const [name, { share }] of tenants) share.weight = this.policies.weightOf(name);
      queues.waiting.clear();
    }
    for (const knownLane of all.sort((a, b) => a.since - b.since)) this.#await(knownLane);
  }

  /** Who is charged for jobs of the lane. */
  shareOf(lane: Lane): Share {
    return this.#tenantOf(priorityOf(this.#queuesOf(lane), lane), lane).share;
  }

  /** The lanes for one claim: of each priority the next tenants in turn that have room, and of each the next lanes. */
  open(roomOf: LaneRoom): readonly OpenQueues[] {
    const all: OpenQueues[] = [];
    for (const queues of this.#queues.values()) {
      const rules = this.policies.rulesOf(queues.name);
      const priorities: OpenPriority[] = [];
      for (const [priority, { share, roundRobin }] of queues.priorities) {
        const tenants = openTenants(roundRobin, this.#maxLanes, roomOf);
        if (tenants.length > 0) priorities.push({ priority, share, tenants, some: roundRobin.size > this.#maxLanes });
      }
      const overdue = rules.aging === undefined ? [] : this.#overdue(queues, rules.aging, roomOf);
      if (priorities.length > 0 || overdue.length > 0) all.push({ share: queues.share, rules, priorities, overdue });
    }
    return all;
  }

  /** These were asked for: their turn is over, and their heads wait from now on. */
  recordPlan(offered: readonly PlannedQuota[]): void {
    const now = this.clock.monotonic();
    for (const { lane } of offered) {
      const knownLane = this.#lanesByObject.get(lane);
      if (knownLane === undefined) continue;
      knownLane.tenant.lanes.advancePast(knownLane);
      knownLane.since = now;
      const { waiting } = knownLane.queues;
      if (waiting.size > 0 && waiting.delete(knownLane.key)) this.#await(knownLane);
    }
  }

  /**
   * So many lanes, asked for so many jobs in all, gave some. Where each gives a few, a claim asks more of them, or it would
   * hardly be worth its way; but of each for one more than that, which shows that it has no more. Where all gave what they
   * were asked for, fewer are asked at a time, for twice as many.
   */
  recordYield(lanes: number, limit: number, jobs: number): void {
    if (jobs === 0) return;
    const lanesOfEach = jobs / lanes;
    this.#minimumBatch = Math.min(MAX_MINIMUM_BATCH, jobs < limit ? Math.floor(lanesOfEach) + 1 : Math.ceil(2 * lanesOfEach));
    if (lanes >= LANES_PER_CLAIM) this.#maxLanes = Math.max(LANES_PER_CLAIM, Math.min(MAX_LANES_PER_CLAIM, Math.floor(limit / (lanesOfEach + 1))));
  }

  #overdue({ waiting }: QueueLanes, aging: number, roomOf: LaneRoom): OpenQueues["overdue"] {
    const by = this.clock.monotonic() - aging;
    const overdue: (OpenLane & { readonly share: Share })[] = [];
    for (const { lane, tenant, since } of waiting.values()) {
      if (since > by || overdue.length >= LANES_PER_CLAIM) break;
      const room = roomOf(lane);
      if (room > 0) overdue.push({ lane, room, share: tenant.share });
    }
    return overdue;
  }

  /** Lets go of what is known of tenants that are gone, once they owe nothing, or are so many that it does not matter. */
  #tidy(): void {
    const now = this.clock.monotonic();
    for (const { priorities } of this.#queues.values()) {
      for (const { tenants } of priorities.values()) {
        for (const [name, { share, lanes }] of tenants)
          if (lanes.size === 0 && share.idle && (tenants.size > MAX_REMEMBERED_TENANTS || share.isLevel(now))) tenants.delete(name);
      }
    }
  }

  #await(knownLane: LaneWithWork): void {
    if (this.policies.rulesOf(knownLane.queues.name).aging !== undefined) knownLane.queues.waiting.set(knownLane.key, knownLane);
  }

  #nameFor({ queue }: Lane): string {
    return this.policies.hasRules(queue) ? queue : "";
  }

  #queuesOf(lane: Lane): QueueLanes {
    const name = this.#nameFor(lane);
    let queues = this.#queues.get(name);
    if (queues === undefined) {
      queues = { name, share: new Share(this.root), priorities: new Map(), waiting: new Map() };
      this.#queues.set(name, queues);
    }
    return queues;
  }

  #tenantOf(priority: PriorityLevel, { tenant: name }: Lane): TenantLanes {
    let tenant = priority.tenants.get(name);
    if (tenant === undefined) {
      tenant = { share: new Share(priority.share, this.policies.weightOf(name)), lanes: new RoundRobin(), index: -1 };
      priority.tenants.set(name, tenant);
    }
    return tenant;
  }
}

function priorityOf({ share, priorities }: QueueLanes, lane: Lane): PriorityLevel {
  let priority = priorities.get(lane.priority);
  if (priority === undefined) {
    priority = { share: new Share(share), tenants: new Map(), roundRobin: new RoundRobin() };
    priorities.set(lane.priority, priority);
  }
  return priority;
}

function openTenants(roundRobin: RoundRobin<TenantLanes>, maxLanes: number, roomOf: LaneRoom): readonly OpenTenant[] {
  if (roundRobin.size === 0) return [];
  const lanesOfEach = Math.max(1, Math.floor(maxLanes / roundRobin.size));
  const open: OpenTenant[] = [];
  let last: TenantLanes | undefined;
  for (let offset = 0; offset < roundRobin.size; offset++) {
    const tenant = roundRobin.at(offset);
    const lanes = openLanes(tenant, lanesOfEach, roomOf);
    if (lanes.length > 0) open.push({ share: tenant.share, lanes });
    last = tenant;
    if (open.length >= maxLanes) break;
  }
  if (last !== undefined) roundRobin.advancePast(last);
  return open;
}

function openLanes({ lanes }: TenantLanes, max: number, roomOf: LaneRoom): readonly OpenLane[] {
  const open: OpenLane[] = [];
  for (let offset = 0; offset < lanes.size; offset++) {
    const { lane } = lanes.at(offset);
    const room = roomOf(lane);
    if (room > 0) open.push({ lane, room });
    if (open.length >= max) break;
  }
  return open;
}
