import { type Lane, sameLane } from "../core/lane.js";
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
  /** of the lane, and not counted yet */
  let taken = 0;
  const count = () => {
    if (lane === undefined || plan === undefined || share === undefined) return;
    plan.pace.inHand += taken;
    share.take(taken);
    caps.taken(lane, taken);
    taken = 0;
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
    taken++;
    const timeout = job.options?.timeout ?? plan.timeout;
    if (timeout > longest) longest = timeout;
    lease.attempts.push(new Attempt(job, plan, lease, share));
  }
  count();
  lease.open = lease.attempts.length;
  return longest;
}
