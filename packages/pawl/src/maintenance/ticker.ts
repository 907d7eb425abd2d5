import type { IdSuffixSource } from "../core/jobs/id.js";
import type { Clock } from "../runtime/time/clock.js";
import type { Store } from "../store/port/index.js";
import type { TickReport } from "../store/port/schedules/schedules.js";
import type { Duty } from "./duty.js";

/** ms until a look at whether another process has done what it began */
const OTHER_PROCESS_CHECK_MS = 50;
/** Steps at a time while a herd is due: one is decided on here while the store is busy with the other. */
const MAX_CONCURRENT_STEPS = 2;
/** ms of rest for each tick of a step, and at most: where ticks are thick, the next step takes many. */
const PAUSE_PER_TICK_MS = 1;
const MAX_PAUSE_MS = 50;

/** Due schedules → their jobs. Knows when the next one is, so ticks are on time within milliseconds. */
export function ticker(store: Store, batch: number, idSuffix: IdSuffixSource, onTicked: (ticked: TickReport) => void): Duty {
  let backlog = false;
  return {
    name: "tick",
    due: ({ tickIn }) => tickIn,
    async run() {
      const steps = await Promise.allSettled(Array.from({ length: backlog ? MAX_CONCURRENT_STEPS : 1 }, () => store.schedules.tick(batch, idSuffix)));
      backlog = false;
      const done = steps.flatMap((step) => (step.status === "fulfilled" ? step.value : []));
      for (const ticked of done) if (ticked.schedules > 0) onTicked(ticked);
      const failed = steps.find((step) => step.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      const count = done.reduce((sum, { schedules }) => sum + schedules, 0);
      backlog = done.some(({ schedules }) => schedules >= batch);
      if (backlog) return { count, nextIn: 0 };
      const times = done.flatMap(({ nextIn }) => nextIn ?? []);
      if (times.length === 0) return { count };
      const nextIn = Math.min(...times);
      // What is due and was not to be had is being seen to by another process.
      return { count, nextIn: Math.max(nextIn, count === 0 ? OTHER_PROCESS_CHECK_MS : Math.min(PAUSE_PER_TICK_MS * count, MAX_PAUSE_MS)) };
    },
  };
}

/** What schedules keep of their jobs, and the record of their ticks: trimmed now and then. */
export function trimmer(store: Store, clock: Clock, every: number, limit: number, age: number): Duty {
  let dueAt = clock.monotonic() + Math.min(every, 60_000);
  return {
    name: "trim",
    due: () => dueAt - clock.monotonic(),
    async run() {
      const count = await store.schedules.trim(limit, age);
      if (count >= limit) return { count, nextIn: 0 };
      dueAt = clock.monotonic() + every;
      return { count };
    },
  };
}
