import type { IdTail } from "../core/id.js";
import type { Clock } from "../runtime/clock.js";
import type { Store, Ticked } from "../store/port.js";
import type { Duty } from "./duty.js";

/** ms until a look at whether another process has done what it began */
const ELSEWHERE = 50;

/** Due schedules → their jobs. Knows when the next one is, so ticks are on time within milliseconds. */
export function ticker(store: Store, batch: number, tail: () => IdTail, onTicked: (ticked: Ticked) => void): Duty {
  return {
    name: "tick",
    due: ({ tickIn }) => tickIn,
    async run() {
      const ticked = await store.schedules.tick(batch, tail);
      if (ticked.schedules > 0) onTicked(ticked);
      const { schedules: count, nextIn } = ticked;
      if (count >= batch) return { count, nextIn: 0 };
      if (nextIn === undefined) return { count };
      // What is due and was not to be had is being seen to by another process.
      return { count, nextIn: count === 0 ? Math.max(nextIn, ELSEWHERE) : nextIn };
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
