import type { Store } from "../store/port/index.js";
import type { Duty } from "./duty.js";

/** scheduled → ready for what is due. Knows when the next one is, so delayed jobs start within milliseconds of their time. */
export function promoter(store: Store, batch: number, onPromoted: (count: number) => void): Duty {
  return {
    name: "promote",
    due: ({ scheduledIn }) => scheduledIn,
    async run() {
      const { count, nextIn } = await store.duties.promote(batch);
      if (count > 0) onPromoted(count);
      if (count >= batch) return { count, nextIn: 0 };
      return nextIn === undefined ? { count } : { count, nextIn };
    },
  };
}
