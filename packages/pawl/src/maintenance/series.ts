import type { Clock } from "../runtime/time/clock.js";
import type { Store } from "../store/port/index.js";
import type { Duty } from "./duty.js";

/** Rows of the series that are kept at most: names of tasks are made up by callers, and must not fill the disk. */
const MAX_ROWS = 1_000_000;

/** Forgets old minutes of the series, now and then. */
export function seriesTrimmer(store: Store, clock: Clock, every: number, age: number): Duty {
  let dueAt = clock.monotonic() + Math.min(every, 60_000) * (0.5 + clock.random());
  return {
    name: "trim series",
    due: () => dueAt - clock.monotonic(),
    async run() {
      const count = await store.series.trim(age, MAX_ROWS);
      dueAt = clock.monotonic() + every * (1 + 0.2 * clock.random());
      return { count };
    },
  };
}
