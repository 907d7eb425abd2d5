import { compareLanes, type Lane } from "../core/lane.js";
import type { Share } from "../core/share.js";
import type { ClaimedJob } from "../store/port-leases.js";
import { Attempt } from "./attempt.js";
import type { Caps } from "./caps.js";
import type { HeldLease } from "./held-lease.js";
import type { Plan, Plans } from "./plan.js";

/** Makes attempts out of claimed jobs and counts them in hand. Answers the longest timeout among them (ms). */
export function intake(
  jobs: readonly ClaimedJob[],
  lease: HeldLease,
  plans: Plans,
  caps: Pick<Caps, "taken">,
  shareOf: (lane: Lane) => Share,
): number {
  let lane: Lane | undefined;
  let plan: Plan | undefined;
  let share: Share | undefined;
  let longest = 0;
  for (const job of jobs) {
    // Jobs come lane by lane, so looking things up once per lane is nearly free.
    if (lane === undefined || (job.lane !== lane && compareLanes(job.lane, lane) !== 0)) {
      lane = job.lane;
      plan = plans.of(lane);
      share = shareOf(lane);
    }
    // The store gave what it was not asked for. The lease runs out, and the job goes to somebody who knows it.
    if (plan === undefined || share === undefined) continue;
    plan.pace.inHand++;
    share.take(1);
    caps.taken(lane);
    const timeout = job.options?.timeout ?? plan.timeout;
    if (timeout > longest) longest = timeout;
    lease.attempts.push(new Attempt(job, plan, lease, share));
  }
  lease.open = lease.attempts.length;
  return longest;
}
