import { type Handler, type SlotUse, slotUse } from "../core/slots.js";
import type { Attempt } from "./attempt.js";

export interface SlotFacts {
  readonly total: number;
  readonly free: number;
  readonly draining: boolean;
  readonly running: Iterable<Attempt>;
  readonly overrunning: Iterable<Attempt>;
}

/** What a worker says of its slots, out of the attempts that it has. */
export function slotUseOf({ total, free, draining, running, overrunning }: SlotFacts, now: number): SlotUse {
  return slotUse({ total, free, draining, running: handlers(running, now), overruns: handlers(overrunning, now) });
}

function* handlers(attempts: Iterable<Attempt>, now: number): Generator<Handler> {
  for (const { job, plan, lease, startedAt, endBy } of attempts) {
    const { took, longest } = plan.pace;
    yield {
      task: job.lane.task,
      since: lease.storeTime(startedAt),
      ranFor: now - startedAt,
      endBy: lease.storeTime(endBy),
      ...(took === undefined ? {} : { took }),
      ...(longest === undefined ? {} : { longest }),
    };
  }
}
