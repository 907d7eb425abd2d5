import type { PlannedClaim } from "../../core/sharing/claim-plan.js";
import type { TaskPlans } from "../run/task-plan.js";
import type { WorkerLimits } from "./worker-limits.js";

/** A claim that is not answered yet. */
export interface PendingClaim extends PlannedClaim {
  /** for a suspect: the tasks that it may be of */
  readonly suspectOf?: readonly string[];
}

/**
 * The claims that are not answered yet. Until then they take room in the limits of the worker, and their jobs count as requested
 * with their fair shares and tasks. The jobs that come are counted one by one.
 */
export class PendingClaims {
  readonly all: PendingClaim[] = [];

  constructor(
    private readonly limits: WorkerLimits,
    private readonly plans: TaskPlans,
  ) {}

  get count(): number {
    return this.all.length;
  }

  /** The plan has reserved room for its quotas already. */
  add(claim: PendingClaim): void {
    this.all.push(claim);
    this.#countRequested(claim, 1);
    if (claim.suspectOf !== undefined) this.limits.takeAny(claim.suspectOf, 1);
  }

  /** Once per claim: one given up as stalled may still be answered. */
  remove(claim: PendingClaim): void {
    const index = this.all.indexOf(claim);
    if (index < 0) return;
    this.all.splice(index, 1);
    for (const { lane, quota } of claim.quotas) this.limits.unreserve(lane, quota);
    this.#countRequested(claim, -1);
    if (claim.suspectOf !== undefined) this.limits.takeAny(claim.suspectOf, -1);
  }

  #countRequested({ quotas }: PendingClaim, sign: 1 | -1): void {
    for (const { entry, lane, quota } of quotas) {
      entry.tenant.share.request(sign * quota);
      const taskPlan = this.plans.of(lane);
      if (taskPlan !== undefined) taskPlan.estimate.outstandingJobs += sign * quota;
    }
  }
}
