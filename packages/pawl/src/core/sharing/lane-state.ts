import type { Priority } from "../jobs/job.js";
import { type Lane, type LaneKey, laneKey } from "../jobs/lane.js";
import type { Took } from "../limits/capacity.js";
import { Share } from "./fair-share.js";
import type { PolicySet } from "./policy-set.js";
import { RoundRobin } from "./round-robin.js";

/** A lane known to have work. */
export interface LaneEntry {
  readonly key: LaneKey;
  readonly lane: Lane;
  /** its jobs run at most once */
  readonly atMostOnce: boolean;
  readonly tenant: TenantLanes;
  /** the newest event that said it has work */
  sequence: number;
  /** its place among its tenant's lanes */
  index: number;
  /** since when its head waits to be requested, monotonic ms */
  since: number;
}

/** One tenant of a priority. Its lanes come in turn, so that fifty lanes have one place in the line. */
export interface TenantLanes {
  readonly priority: PriorityLanes;
  readonly share: Share;
  readonly lanes: RoundRobin<LaneEntry>;
  /** its place among the tenants of its priority, while it has lanes */
  index: number;
}

export interface PriorityLanes {
  readonly group: QueueGroup;
  readonly priority: Priority;
  readonly share: Share;
  /** those without lanes included, as long as their time is remembered */
  readonly tenants: Map<string, TenantLanes>;
  /** those with lanes */
  readonly turns: RoundRobin<TenantLanes>;
}

/** Queues that share their priorities by the same rules: one with rules of its own, or all the others together. */
export interface QueueGroup {
  /** the queue with rules of its own; of the others: empty */
  readonly queue: string;
  readonly share: Share;
  readonly priorities: Map<Priority, PriorityLanes>;
  /** lanes by how long their heads have waited, the longest first; kept only where the rules have aging */
  readonly waiting: Map<LaneKey, LaneEntry>;
}

/** Tenants, and lanes, of a priority that one claim looks at: a claim takes hundreds of jobs, so thousands come in turn. */
export const LANES_PER_CLAIM = 128;
/** The same while lanes have a few jobs each. */
const MAX_LANES_PER_CLAIM = 256;
/** Jobs of a tenant from which on more at a time would save nothing. */
const MAX_MINIMUM_BATCH = 64;
/** Tenants of a priority whose time is remembered though they have no work. */
const MAX_REMEMBERED_TENANTS = 10_000;

/**
 * The lanes that a worker knows to have work: their turns, the fair shares that the worker's time is charged to, and what
 * earlier claims showed. A lane that is not known costs nothing: a wakeup or the poll names it.
 *
 * Its methods are functions of it and their arguments: moments and random numbers are passed in. They change it in place,
 * since a worker may know 10,000 lanes and plans a claim every few milliseconds.
 */
export class LaneState {
  /** the worker's time, as far as it was used */
  readonly root = new Share(undefined);
  readonly groups = new Map<string, QueueGroup>();
  /** lanes of jobs that run at most once */
  atMostOnceLanes = 0;
  /** the last claim took others, though lanes of jobs that run at most once had work */
  atMostOncePassedOver = false;
  /** the last claim showed that there may be more */
  hasBacklog = false;
  /** a wakeup came after the last claim */
  hasWakeup = false;
  /** jobs that are worth requesting of a tenant at a time (counted by lane: most tenants have one); 0: not known */
  minimumBatch = 0;
  /** tenants, and lanes, of a priority that the next claim looks at */
  maxLanes = LANES_PER_CLAIM;
  readonly #entries = new Map<LaneKey, LaneEntry>();
  #sequence = 0;

  constructor(private readonly isAtMostOnce: (lane: Lane) => boolean = () => false) {}

  /** lanes known to have work */
  get size(): number {
    return this.#entries.size;
  }

  /** tenants whose time is remembered */
  get tenants(): number {
    let count = 0;
    for (const { priorities } of this.groups.values()) for (const { tenants } of priorities.values()) count += tenants.size;
    return count;
  }

  *lanes(): Generator<Lane> {
    for (const { lane } of this.#entries.values()) yield lane;
  }

  /** The number of an event: a wakeup, a claim or a poll. Of two events the later one has the higher number. */
  nextSequence(): number {
    return ++this.#sequence;
  }

  /** A wakeup says that these have work. `random` (0 to 1) decides between equals. */
  add(lanes: readonly Lane[], policies: PolicySet, now: number, random: number): void {
    this.hasWakeup = true;
    const sequence = this.nextSequence();
    for (const lane of lanes) {
      const key = laneKey(lane);
      const entry = this.#entries.get(key);
      if (entry === undefined) this.#add(key, lane, sequence, policies, now, random);
      else entry.sequence = sequence;
    }
  }

  /** Takes over the lanes that a poll found, which began at `since`. Lanes that wakeups have named meanwhile stay. */
  replace(lanes: readonly Lane[], since: number, policies: PolicySet, now: number, random: number): void {
    const fresh = new Map(lanes.map((lane) => [laneKey(lane), lane]));
    for (const key of this.#entries.keys()) if (!fresh.has(key)) this.forget(key, since);
    for (const [key, lane] of fresh) if (!this.#entries.has(key)) this.#add(key, lane, since, policies, now, random);
    this.#forgetTenants(now);
  }

  /** Forgets a lane that has nothing left, unless a wakeup named it after `since`. */
  forget(key: LaneKey, since: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.sequence > since) return;
    const { tenant } = entry;
    const { turns, group } = tenant.priority;
    this.#entries.delete(key);
    if (entry.atMostOnce) this.atMostOnceLanes--;
    if (group.waiting.size > 0) group.waiting.delete(key);
    tenant.lanes.remove(entry);
    if (tenant.lanes.size === 0) turns.remove(tenant);
  }

  /** Policies have changed: weights take effect, and lanes come under the rules of their queues. */
  applyPolicies(policies: PolicySet, now: number, random: number): void {
    const entries = [...this.#entries.values()];
    if (entries.some(({ lane, tenant }) => tenant.priority.group.queue !== ruledQueue(lane, policies))) {
      // A queue has got rules of its own, or lost them: all shares begin anew.
      this.#entries.clear();
      this.groups.clear();
      this.atMostOnceLanes = 0;
      for (const { key, lane, sequence } of entries) this.#add(key, lane, sequence, policies, now, random);
      return;
    }
    for (const { priorities, waiting } of this.groups.values()) {
      for (const { tenants } of priorities.values()) for (const [name, { share }] of tenants) share.weight = policies.weightOf(name);
      waiting.clear();
    }
    for (const entry of entries.sort((a, b) => a.since - b.since)) this.#await(entry, policies);
  }

  /** The share that is charged for jobs of the lane. */
  shareOf(lane: Lane, policies: PolicySet): Share {
    return this.#tenantOf(lane, policies).share;
  }

  /** The lane was requested: its turn is over, and its head waits from now on. */
  recordTurn(entry: LaneEntry, now: number): void {
    const { lanes, priority } = entry.tenant;
    lanes.advancePast(entry);
    entry.since = now;
    const { waiting } = priority.group;
    if (waiting.size > 0 && waiting.delete(entry.key)) waiting.set(entry.key, entry);
  }

  /**
   * So many lanes, of which up to so many jobs were requested in all, gave some. Where each gives a few, a claim asks more of
   * them, or it would hardly be worth its way; but of each for one more than that, which shows that it has no more. Where
   * all gave what was requested, fewer are asked at a time, for twice as many.
   */
  recordYield(lanes: number, limit: number, jobs: number): void {
    if (jobs === 0) return;
    const jobsOfEach = jobs / lanes;
    this.minimumBatch = Math.min(MAX_MINIMUM_BATCH, jobs < limit ? Math.floor(jobsOfEach) + 1 : Math.ceil(2 * jobsOfEach));
    if (lanes >= LANES_PER_CLAIM) this.maxLanes = Math.max(LANES_PER_CLAIM, Math.min(MAX_LANES_PER_CLAIM, Math.floor(limit / (jobsOfEach + 1))));
  }

  /** ms that jobs of tenants with work took lately, of up to so many of them; nothing while there is only one. */
  tenantDurations(max: number): readonly Took[] | undefined {
    const took = new Map<string, number>();
    for (const { priorities } of this.groups.values()) {
      for (const { tenants } of priorities.values()) {
        for (const [name, { share, lanes }] of tenants) {
          if (lanes.size > 0 && share.took !== undefined && took.size < max) took.set(name, share.took);
        }
      }
    }
    return took.size < 2 ? undefined : [...took];
  }

  #add(key: LaneKey, lane: Lane, sequence: number, policies: PolicySet, now: number, random: number): void {
    const tenant = this.#tenantOf(lane, policies);
    const atMostOnce = this.isAtMostOnce(lane);
    const entry: LaneEntry = { key, lane, atMostOnce, tenant, sequence, index: 0, since: now };
    tenant.lanes.add(entry);
    if (tenant.lanes.size === 1) {
      const { turns } = tenant.priority;
      turns.add(tenant);
      // Chance decides where a worker begins, so that workers that start together do not go round together.
      if (turns.size === 2) turns.startAt(random);
    }
    this.#entries.set(key, entry);
    if (atMostOnce) this.atMostOnceLanes++;
    this.#await(entry, policies);
  }

  /** Forgets the time of tenants without work, once they owe nothing, or are so many that it does not matter. */
  #forgetTenants(now: number): void {
    for (const { priorities } of this.groups.values()) {
      for (const { tenants } of priorities.values()) {
        for (const [name, { share, lanes }] of tenants)
          if (lanes.size === 0 && share.idle && (tenants.size > MAX_REMEMBERED_TENANTS || share.isLevel(now))) tenants.delete(name);
      }
    }
  }

  #await(entry: LaneEntry, policies: PolicySet): void {
    const { queue, waiting } = entry.tenant.priority.group;
    if (policies.rulesOf(queue).aging !== undefined) waiting.set(entry.key, entry);
  }

  #tenantOf(lane: Lane, policies: PolicySet): TenantLanes {
    const priority = priorityOf(this.#groupOf(lane, policies), lane);
    let tenant = priority.tenants.get(lane.tenant);
    if (tenant === undefined) {
      tenant = { priority, share: new Share(priority.share, policies.weightOf(lane.tenant)), lanes: new RoundRobin(), index: -1 };
      priority.tenants.set(lane.tenant, tenant);
    }
    return tenant;
  }

  #groupOf(lane: Lane, policies: PolicySet): QueueGroup {
    const queue = ruledQueue(lane, policies);
    let group = this.groups.get(queue);
    if (group === undefined) {
      group = { queue, share: new Share(this.root), priorities: new Map(), waiting: new Map() };
      this.groups.set(queue, group);
    }
    return group;
  }
}

function priorityOf(group: QueueGroup, { priority }: Lane): PriorityLanes {
  let lanes = group.priorities.get(priority);
  if (lanes === undefined) {
    lanes = { group, priority, share: new Share(group.share), tenants: new Map(), turns: new RoundRobin() };
    group.priorities.set(priority, lanes);
  }
  return lanes;
}

function ruledQueue({ queue }: Lane, policies: PolicySet): string {
  return policies.hasRules(queue) ? queue : "";
}
