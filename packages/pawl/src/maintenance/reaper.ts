import type { Clock } from "../runtime/time/clock.js";
import type { DutyReport } from "../store/port/duties/duties.js";
import { REAP } from "../store/port/duties/duties.js";
import type { Duty } from "./duty.js";
import { resultOf } from "./store-duty.js";

export interface ReaperOptions {
  readonly clock: Clock;
  /** one step of the duty */
  readonly step: () => Promise<DutyReport>;
  /** ms between sweeps */
  readonly sweep: number;
  /** ms */
  readonly lease: number;
  readonly onReaped: (leases: number, jobs: number) => void;
}

export interface Reaper extends Duty {
  /**
   * The store was away, or this process was: the holders of leases that look expired may be alive and on their way to
   * renew. They go first, so nothing is reaped for the length of a lease.
   */
  postpone(): void;
}

/** Takes the jobs out of expired leases: their workers have vanished. */
export function reaper({ clock, step, sweep, lease, onReaped }: ReaperOptions): Reaper {
  let notBefore = Number.NEGATIVE_INFINITY;
  return {
    name: REAP,
    postpone() {
      notBefore = clock.monotonic() + lease;
    },
    due({ due, upFor = Number.POSITIVE_INFINITY }) {
      const dueIn = due.get(REAP);
      if (dueIn === undefined) return undefined;
      // A store that has just come up was away, also for a process that was not there to see it.
      if (upFor < lease) notBefore = Math.max(notBefore, clock.monotonic() + lease - upFor);
      return Math.max(dueIn, notBefore - clock.monotonic());
    },
    async run() {
      if (clock.monotonic() < notBefore) return { count: 0 };
      const report = await step();
      const { leases = 0, jobs = report.count } = report.counts ?? {};
      if (leases > 0) onReaped(leases, jobs);
      if (!report.more) notBefore = clock.monotonic() + sweep;
      return resultOf(report);
    },
  };
}
