import type { Lane } from "../core/lane.js";
import type { ClaimedJob } from "../store/port.js";
import { Attempt } from "./attempt.js";
import type { HeldLease } from "./held-lease.js";
import type { Plan, Plans } from "./plan.js";
import type { Slots } from "./slots.js";

/** Makes attempts out of claimed jobs and counts them in hand. Answers the longest timeout among them (ms). */
export function intake(jobs: readonly ClaimedJob[], lease: HeldLease, plans: Plans, slots: Slots): number {
  let lane: Lane | undefined;
  let plan: Plan | undefined;
  let longest = 0;
  for (const job of jobs) {
    // Jobs come lane by lane, so looking plans up once per lane is nearly free.
    if (lane === undefined || (job.lane !== lane && (job.lane.task !== lane.task || job.lane.queue !== lane.queue))) {
      lane = job.lane;
      plan = plans.of(lane);
    }
    // The store gave what it was not asked for. The lease runs out, and the job goes to somebody who knows it.
    if (plan === undefined) continue;
    plan.pace.inHand++;
    if (plan.counted) slots.add(job.lane, 1);
    const timeout = job.options?.timeout ?? plan.timeout;
    if (timeout > longest) longest = timeout;
    lease.attempts.push(new Attempt(job, plan, lease));
  }
  lease.open = lease.attempts.length;
  return longest;
}
