import type { Store } from "../store/port.js";
import type { Duty } from "./duty.js";

/**
 * parked → ready for what gates have room for. Most are let in by whoever enqueued them or freed a place; this is for
 * those who did not live to do so, for transactions of callers, and for tokens, which come with time.
 */
export function admitter(store: Store, batch: number): Duty {
  return {
    name: "admit",
    due: ({ admitIn }) => admitIn,
    async run() {
      const { count, gates, nextIn } = await store.limits.admit(batch);
      if (gates >= batch) return { count, nextIn: 0 };
      return nextIn === undefined ? { count } : { count, nextIn: Math.max(0, nextIn) };
    },
  };
}
