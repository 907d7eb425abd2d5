import { type Lane, sameLane } from "../../core/jobs/lane.js";
import type { Share } from "../../core/sharing/fair-share.js";
import type { ClaimedJob } from "../../store/port/settle/leases.js";
import type { WorkerLimits } from "../claim/worker-limits.js";
import { Attempt } from "../run/attempt.js";
import type { TaskPlan, TaskPlans } from "../run/task-plan.js";
import type { HeldLease } from "./held-lease.js";

/** Makes attempts out of claimed jobs and counts them in hand. Answers the longest timeout among them (ms). */
export function openAttempts(
  jobs: readonly ClaimedJob[],
  lease: HeldLease,
  plans: TaskPlans,
  limits: Pick<WorkerLimits, "addJobs">,
  shareOf: (lane: Lane) => Share,
): number {
  let lane: Lane | undefined;
  let plan: TaskPlan | undefined;
  let share: Share | undefined;
  let longest = 0;
  /** of the lane, and not counted yet */
  let uncounted = 0;
  const count = () => {
    if (lane === undefined || plan === undefined || share === undefined) return;
    plan.estimate.outstandingJobs += uncounted;
    share.take(uncounted);
    limits.addJobs(lane, uncounted);
    uncounted = 0;
  };
  for (const job of jobs) {
    // Jobs come lane by lane, so what is done once per lane is nearly free.
    if (lane === undefined || !sameLane(job.lane, lane)) {
      count();
      lane = job.lane;
      plan = plans.of(lane);
      share = shareOf(lane);
    }
    // The store gave what it was not asked for. The lease runs out, and the job goes to somebody who knows it.
    if (plan === undefined || share === undefined) continue;
    uncounted++;
    const timeout = job.options?.timeout ?? plan.timeout;
    if (timeout > longest) longest = timeout;
    lease.attempts.push(new Attempt(job, plan, lease, share));
  }
  count();
  lease.unsettled = lease.attempts.length;
  return longest;
}
