import { type Handler, type SlotUse, slotUse } from "../core/slots.js";
import type { Attempt } from "./attempt.js";
import type { Plans } from "./plan.js";

export interface SlotFacts {
  readonly total: number;
  readonly free: number;
  readonly draining: boolean;
  readonly running: Iterable<Attempt>;
  readonly overrunning: Iterable<Attempt>;
  readonly plans: Plans;
}

/** What a worker says of its slots, out of the attempts that it has. */
export function slotUseOf({ total, free, draining, running, overrunning, plans }: SlotFacts, now: number): SlotUse {
  const durations = plans.durations();
  return slotUse({ total, free, draining, running: handlers(running, now), overruns: handlers(overrunning, now), durations });
}

function* handlers(attempts: Iterable<Attempt>, now: number): Generator<Handler> {
  for (const { job, lease, startedAt, endBy } of attempts)
    yield { task: job.lane.task, since: lease.storeTime(startedAt), ranFor: now - startedAt, endBy: lease.storeTime(endBy) };
}
