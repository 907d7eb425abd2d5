import { type Lane, laneKey, sameLane } from "../../core/jobs/lane.js";
import type { Took } from "../../core/limits/capacity.js";
import type { ReachedLimit } from "../../core/limits/lane-limit.js";
import { type PlannedQuota, planClaim } from "../../core/sharing/claim-plan.js";
import type { Share } from "../../core/sharing/fair-share.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { LiveLanes } from "../../store/port/claim/lanes.js";
import type { Claimed, ClaimedJob } from "../../store/port/settle/leases.js";
import type { PolicyStore } from "../../store/port/sharing/policies.js";
import type { WorkerSettings } from "../options.js";
import { timeAhead } from "../run/duration-estimate.js";
import type { TaskPlans } from "../run/task-plan.js";
import { LanesWithWork } from "./lanes-with-work.js";
import { LimitBackoff } from "./limit-backoff.js";
import { PolicyCache } from "./policy-cache.js";
import { type WorkerLimit, WorkerLimits } from "./worker-limits.js";

/** tenants whose jobs' lengths are told to others */
const MAX_TENANT_DURATIONS = 200;
/** lanes without room here that are told to others */
const MAX_FULL_LANES = 20;

export interface ClaimPlannerDeps {
  readonly clock: Clock;
  readonly settings: WorkerSettings;
  readonly plans: TaskPlans;
  /** what bounds the jobs of lanes here */
  readonly limits: readonly WorkerLimit[];
  /** there may be something to ask for that there was not */
  readonly onRoom: () => void;
}

/**
 * Out of which lanes a claim takes how much. It remembers the lanes that had work, who has had how much of this worker,
 * and what bounds them; it forgets lanes that gave less than they were asked for until a wakeup or the poll names them.
 */
export class ClaimPlanner {
  readonly limits: WorkerLimits;
  readonly #policies = new PolicyCache();
  readonly #limitBackoff: LimitBackoff;
  readonly #lanes: LanesWithWork;
  readonly #serves: (lane: Lane) => boolean;

  constructor(private readonly deps: ClaimPlannerDeps) {
    const { clock, plans, settings } = deps;
    this.#limitBackoff = new LimitBackoff(clock, deps.onRoom);
    this.limits = new WorkerLimits([...deps.limits, this.#limitBackoff]);
    this.#lanes = new LanesWithWork(this.#policies, clock, (lane) => plans.of(lane)?.atMostOnce === true);
    const serves = servedBy(settings);
    this.#serves = (lane) => serves(lane) && this.limits.serves(lane);
  }

  /** lanes known to have work */
  get lanes(): number {
    return this.#lanes.size;
  }

  /** those of tasks that run at most once */
  get atMostOnceLanes(): number {
    return this.#lanes.atMostOnceLanes;
  }

  addLanes(lanes: readonly Lane[], sequence: number): void {
    for (const lane of lanes) if (this.#serves(lane)) this.#lanes.add(lane, sequence);
  }

  async refresh({ lanes: live, version }: LiveLanes, policies: PolicyStore, since: number): Promise<void> {
    if (await this.#policies.refresh(policies, version)) this.#lanes.applyPolicies();
    const lanes = live.filter(this.#serves);
    this.limits.refreshed(lanes);
    this.#lanes.replace(lanes, since);
  }

  /** What to ask for, with room for it taken: up to so many jobs, of at-most-once and of limited lanes only if they may be asked. */
  plan(limit: number, may: { readonly atMostOnce: boolean; readonly limited: boolean }): readonly PlannedQuota[] {
    const { clock, settings, plans } = this.deps;
    const roomOf = (lane: Lane): number => {
      const plan = plans.of(lane);
      if (plan === undefined || (plan.atMostOnce && !may.atMostOnce) || (!may.limited && this.isLimited(lane))) return 0;
      // By the pace of the task itself: quick jobs of one must not make room for slow ones of another.
      const soon = settings.concurrency + plan.estimate.ahead(settings.concurrency) - plan.estimate.outstandingJobs;
      return Math.max(0, Math.min(soon, limit, this.limits.room(lane)));
    };
    const minimumBatch = { jobs: this.#lanes.minimumBatch, within: timeAhead(settings.concurrency) };
    const quotas = this.limits.reserve(planClaim(this.#lanes.root, this.#lanes.open(roomOf), limit, clock.monotonic(), minimumBatch));
    this.#lanes.recordPlan(quotas);
    this.#count(quotas, 1);
    return quotas;
  }

  /** The claim has come back, or never will: what was taken for it is free. The jobs that came are counted one by one. */
  release(quotas: readonly PlannedQuota[]): void {
    this.limits.unreserve(quotas);
    this.#count(quotas, -1);
  }

  /** A claim of so many lanes, for up to so many jobs, brought some: by that the next one asks more lanes or fewer, each for fewer jobs or more. */
  recordYield(lanes: number, limit: number, jobs: number): void {
    this.#lanes.recordYield(lanes, limit, jobs);
  }

  /**
   * A lane that gave less than its quota, in a claim that was not full, has nothing left, unless a limit kept it back or the
   * store says so. Answers whether any may have more.
   */
  recordAnswer(quotas: readonly PlannedQuota[], claimed: Claimed | undefined, sequence: number): boolean {
    const jobs = claimed?.jobs ?? [];
    const unsure = new Set((claimed?.more ?? []).map(laneKey));
    const mayHaveMore = (lane: Lane) => unsure.size > 0 && unsure.has(laneKey(lane));
    let more = unsure.size > 0;
    let next = 0;
    for (const { lane, quota } of quotas) {
      // Jobs come lane by lane, in the order these were planned.
      const first = next;
      while (next < jobs.length && sameLane((jobs[next] as ClaimedJob).lane, lane)) next++;
      if (next - first >= quota) more = true;
      else if (!mayHaveMore(lane) && this.#limitBackoff.room(lane) > 0) this.#lanes.forget(lane, sequence);
    }
    return more;
  }

  /** These limits kept back some of what was asked for. */
  limitsReached(limits: readonly ReachedLimit[]): void {
    this.#limitBackoff.reached(limits);
  }

  /** Whether a claim of it must count slots and tokens of its queue, task or tenant. */
  isLimited(lane: Lane): boolean {
    return this.#policies.isLimited(lane);
  }

  /** Who is charged for the time of a lane's jobs. */
  shareOf(lane: Lane): Share {
    return this.#lanes.shareOf(lane);
  }

  /** How long jobs of those who share this worker take lately. */
  tenantDurations(): readonly Took[] | undefined {
    return this.#lanes.tenantDurations(MAX_TENANT_DURATIONS);
  }

  /** Lanes with work of which it can take nothing now, though it may have free slots: some of them. */
  shut(): readonly Lane[] {
    if (this.deps.limits.every(({ clusterWide }) => clusterWide === true)) return [];
    const shut: Lane[] = [];
    for (const lane of this.#lanes.lanes()) {
      if (shut.length === MAX_FULL_LANES) break;
      if (this.limits.isFull(lane)) shut.push(lane);
    }
    return shut;
  }

  /** The store knows that a job of the lane is over: what it held of limits is free. Whether that matters. */
  jobSettled(lane: Lane): boolean {
    return this.#limitBackoff.jobSettled(lane);
  }

  stop(): void {
    this.#limitBackoff.stop();
  }

  #count(quotas: readonly PlannedQuota[], sign: 1 | -1): void {
    for (const { lane, quota, share } of quotas) {
      share.request(sign * quota);
      const plan = this.deps.plans.of(lane);
      if (plan !== undefined) plan.estimate.outstandingJobs += sign * quota;
    }
  }
}

function servedBy({ queues, tasks, priorities, tenants }: WorkerSettings): (lane: Lane) => boolean {
  const [ofQueues, ofTasks, ofPriorities, ofTenants] = [queues, tasks, priorities, tenants].map((names) => names && new Set<unknown>(names));
  return ({ queue, task, priority, tenant }) =>
    ofTasks?.has(task) !== false && ofQueues?.has(queue) !== false && ofPriorities?.has(priority) !== false && ofTenants?.has(tenant) !== false;
}
