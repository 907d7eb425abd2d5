import type { Store } from "../store/port/index.js";
import { batchResult, type Duty } from "./duty.js";

/** blocked → released for jobs whose parents ended while they were being enqueued. */
export function unblocker(store: Store, batch: number): Duty {
  return {
    name: "unblock",
    due: ({ unverified }) => (unverified ? 0 : undefined),
    run: async () => batchResult(await store.duties.unblock(batch), batch),
  };
}
