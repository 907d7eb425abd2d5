import type { Store } from "../store/port/index.js";
import type { Duty } from "./duty.js";

/**
 * parked → ready for what limit keys have room for. Most are let in by whoever enqueued them or freed a slot; this is for
 * those who did not live to do so, for transactions of callers, and for tokens, which come with time.
 */
export function admitter(store: Store, batch: number): Duty {
  return {
    name: "admit",
    due: ({ admitIn }) => admitIn,
    async run() {
      const { count, limitKeys, nextIn } = await store.limits.admit(batch);
      if (limitKeys >= batch) return { count, nextIn: 0 };
      return nextIn === undefined ? { count } : { count, nextIn: Math.max(0, nextIn) };
    },
  };
}
