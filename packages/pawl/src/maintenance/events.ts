import { DEFAULTS } from "../core/values/defaults.js";
import type { Clock } from "../runtime/time/clock.js";
import type { Store } from "../store/port/index.js";
import { MAX_EVENTS } from "../store/port/observe/events.js";
import type { Duty } from "./duty.js";

/** Forgets what happened, once nobody watches any more. While somebody does, they see to it. */
export function eventTrimmer(store: Store, clock: Clock, every: number): Duty {
  let dueAt = clock.monotonic() + every * (0.5 + clock.random());
  return {
    name: "trim events",
    due: () => dueAt - clock.monotonic(),
    async run() {
      const count = await store.events.trim(DEFAULTS.keep.events, MAX_EVENTS);
      dueAt = clock.monotonic() + every * (1 + 0.2 * clock.random());
      return { count };
    },
  };
}
