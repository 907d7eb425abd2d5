import type { Clock } from "../runtime/time/clock.js";
import type { PruneRules } from "../store/port/duties/duties.js";
import type { Store } from "../store/port/index.js";
import { batchResult, type Duty } from "./duty.js";

/** Makes partitions ahead and lets go of what retention says. By the clock alone: nothing waits for it. */
export function pruner(store: Store, clock: Clock, every: number, rules: PruneRules): Duty {
  // The first one soon, for a store that lacks its partitions; spread, so that processes started together do not meet.
  let dueAt = clock.monotonic() + Math.min(every, 60_000) * clock.random();
  return {
    name: "prune",
    due: () => dueAt - clock.monotonic(),
    async run() {
      const { dropped, forgotten } = await store.duties.prune(rules);
      dueAt = clock.monotonic() + every * (1 + 0.2 * clock.random());
      return batchResult(Math.max(dropped, forgotten), rules.limit);
    },
  };
}
