import type { Store } from "../store/port/index.js";
import { batchResult, type Duty } from "./duty.js";

/** pending → dead for jobs that waited past their expiry or deadline. */
export function expirer(store: Store, batch: number): Duty {
  return {
    name: "expire",
    due: ({ timerIn }) => timerIn,
    run: async () => batchResult(await store.duties.expire(batch), batch),
  };
}
