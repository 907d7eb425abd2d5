import type { Clock } from "../runtime/time/clock.js";
import type { Store } from "../store/port/index.js";
import { batchResult, type Duty } from "./duty.js";

export interface ReaperOptions {
  /** leases per statement */
  readonly batch: number;
  /** ms between sweeps */
  readonly sweep: number;
  /** ms */
  readonly lease: number;
}

export interface Reaper extends Duty {
  /**
   * The store was away, or this process was: the holders of leases that look expired may be alive and on their way to
   * renew. They go first, so nothing is reaped for the length of a lease.
   */
  postpone(): void;
}

/** Takes the jobs out of expired leases: their workers have vanished. */
export function reaper(store: Store, clock: Clock, { batch, sweep, lease }: ReaperOptions, onReaped: (leases: number, jobs: number) => void): Reaper {
  let notBefore = Number.NEGATIVE_INFINITY;
  return {
    name: "reap",
    postpone() {
      notBefore = clock.monotonic() + lease;
    },
    due({ leaseIn, upFor = Number.POSITIVE_INFINITY }) {
      if (leaseIn === undefined) return undefined;
      // A store that has just come up was away, also for a process that was not there to see it.
      if (upFor < lease) notBefore = Math.max(notBefore, clock.monotonic() + lease - upFor);
      return Math.max(leaseIn, notBefore - clock.monotonic());
    },
    async run() {
      if (clock.monotonic() < notBefore) return { count: 0 };
      const { leases, jobs } = await store.leases.reap(batch);
      if (leases > 0) onReaped(leases, jobs);
      const { nextIn } = batchResult(leases, batch);
      if (nextIn === undefined) notBefore = clock.monotonic() + sweep;
      return nextIn === undefined ? { count: jobs } : { count: jobs, nextIn };
    },
  };
}
