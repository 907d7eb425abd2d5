import type { PlanLoad, WorkerLoad } from "../../core/sharing/claim-plan.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { WorkerSettings } from "../options.js";
import { timeAhead } from "../run/duration-estimate.js";
import type { TaskPlans } from "../run/task-plan.js";
import type { PendingClaims } from "./pending-claims.js";
import type { WorkerLimits } from "./worker-limits.js";

export interface PlanLoadDeps {
  readonly load: WorkerLoad;
  readonly clock: Clock;
  readonly settings: WorkerSettings;
  readonly plans: TaskPlans;
}

/** The load of a worker as claims are planned by it. One object that is read at every plan, most of which need only a few numbers of it. */
export function planLoadOf({ load, clock, settings, plans }: PlanLoadDeps, limits: WorkerLimits, pending: PendingClaims): PlanLoad {
  const { concurrency, maxJobsPerClaim } = settings;
  return {
    worker: load,
    pending: pending.all,
    maxJobsPerClaim,
    timeAhead: timeAhead(concurrency),
    get now() {
      return clock.monotonic();
    },
    room(lane) {
      const taskPlan = plans.of(lane);
      if (taskPlan === undefined) return 0;
      // By the pace of the task itself: quick jobs of one must not make room for slow ones of another.
      const { estimate } = taskPlan;
      const soon = concurrency + estimate.ahead(concurrency) - estimate.outstandingJobs;
      return Math.max(0, Math.min(soon, limits.room(lane)));
    },
    reserve: (lane, jobs) => limits.reserve(lane, jobs),
  };
}
