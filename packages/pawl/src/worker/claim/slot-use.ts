import type { Lane } from "../../core/jobs/lane.js";
import { type OverrunHandler, type RunningHandler, type SlotUse, slotUse } from "../../core/limits/slot-use.js";
import type { Attempt } from "../run/attempt.js";
import type { Overruns } from "../run/overruns.js";
import type { TaskPlans } from "../run/task-plan.js";

export interface SlotFacts {
  readonly total: number;
  readonly free: number;
  readonly draining: boolean;
  readonly running: Iterable<Attempt>;
  /** absent where handlers run elsewhere, and what becomes of them after their time is not known */
  readonly overruns?: Overruns;
  readonly plans: TaskPlans;
  readonly shut: readonly Lane[];
}

/** What a worker says of its slots, out of the attempts that it has. */
export function slotUseOf({ total, free, draining, running, overruns, plans, shut }: SlotFacts, now: number): SlotUse {
  return slotUse({
    total,
    free,
    draining,
    stuck: overruns?.stuck ?? false,
    shut,
    running: handlers(running, now),
    overruns: overruns === undefined ? [] : overrunHandlers(overruns, now),
    durations: plans.durations(),
  });
}

function* handlers(attempts: Iterable<Attempt>, now: number): Generator<RunningHandler> {
  for (const attempt of attempts) yield handlerOf(attempt, now);
}

function* overrunHandlers({ all }: Overruns, now: number): Generator<OverrunHandler> {
  for (const [attempt, since] of all) yield { ...handlerOf(attempt, now), overdue: attempt.lease.storeTime(since) };
}

function handlerOf({ job, lease, startedAt }: Attempt, now: number): RunningHandler {
  return { task: job.lane.task, since: lease.storeTime(startedAt), ranFor: now - startedAt };
}
