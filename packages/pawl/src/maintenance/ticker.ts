import { type DutyReport, TICK } from "../store/port/duties/duties.js";
import type { Duty } from "./duty.js";

/** ms until a look at whether another process has done what it began */
const OTHER_PROCESS_CHECK_MS = 50;
/** Steps at a time while a herd is due: one is decided on here while the store is busy with the other. */
const MAX_CONCURRENT_STEPS = 2;
/** ms of rest for each tick of a step, and at most: where ticks are thick, the next step takes many. */
const PAUSE_PER_TICK_MS = 1;
const MAX_PAUSE_MS = 50;

/** Due schedules → their jobs. Knows when the next one is, so ticks are on time within milliseconds. */
export function ticker(step: () => Promise<DutyReport>, onTicked: (report: DutyReport) => void): Duty {
  let backlog = false;
  return {
    name: TICK,
    due: ({ due }) => due.get(TICK),
    async run() {
      const steps = await Promise.allSettled(Array.from({ length: backlog ? MAX_CONCURRENT_STEPS : 1 }, () => step()));
      backlog = false;
      const done = steps.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
      for (const report of done) if (report.count > 0) onTicked(report);
      const failed = steps.find((one) => one.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      const count = done.reduce((sum, report) => sum + report.count, 0);
      backlog = done.some(({ more }) => more);
      if (backlog) return { count, nextIn: 0 };
      const times = done.flatMap(({ nextIn }) => nextIn ?? []);
      if (times.length === 0) return { count };
      const nextIn = Math.min(...times);
      // What is due and was not to be had is being seen to by another process.
      return { count, nextIn: Math.max(nextIn, count === 0 ? OTHER_PROCESS_CHECK_MS : Math.min(PAUSE_PER_TICK_MS * count, MAX_PAUSE_MS)) };
    },
  };
}
