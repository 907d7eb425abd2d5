import type { Clock } from "../runtime/time/clock.js";

const REPORT_INTERVAL_MS = 1_000;

/** At most one report a second of each step: a store that is away fails everything, and saying so once is enough. */
export function throttleErrors(clock: Clock, report: (step: string, error: unknown) => void): (step: string, error: unknown) => void {
  const reportedAt = new Map<string, number>();
  return (step, error) => {
    const now = clock.monotonic();
    if (now - (reportedAt.get(step) ?? Number.NEGATIVE_INFINITY) < REPORT_INTERVAL_MS) return;
    reportedAt.set(step, now);
    report(step, error);
  };
}
