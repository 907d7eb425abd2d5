import type { Lane } from "../core/lane.js";
import { type Handler, type OverrunHandler, type SlotUse, slotUse } from "../core/slots.js";
import type { Attempt } from "./attempt.js";
import type { Overruns } from "./overruns.js";
import type { Plans } from "./plan.js";

export interface SlotFacts {
  readonly total: number;
  readonly free: number;
  readonly draining: boolean;
  readonly running: Iterable<Attempt>;
  /** absent where handlers run elsewhere, and what becomes of them after their time is not known */
  readonly overruns?: Overruns;
  readonly plans: Plans;
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

function* handlers(attempts: Iterable<Attempt>, now: number): Generator<Handler> {
  for (const attempt of attempts) yield handlerOf(attempt, now);
}

function* overrunHandlers({ all }: Overruns, now: number): Generator<OverrunHandler> {
  for (const [attempt, since] of all) yield { ...handlerOf(attempt, now), overdue: attempt.lease.storeTime(since) };
}

function handlerOf({ job, lease, startedAt }: Attempt, now: number): Handler {
  return { task: job.lane.task, since: lease.storeTime(startedAt), ranFor: now - startedAt };
}
