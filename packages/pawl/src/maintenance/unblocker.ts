import type { Store } from "../store/port.js";
import { type Duty, ran } from "./duty.js";

/** blocked → released for jobs whose parents ended while they were being enqueued. */
export function unblocker(store: Store, batch: number): Duty {
  return {
    name: "unblock",
    due: ({ unverified }) => (unverified ? 0 : undefined),
    run: async () => ran(await store.duties.unblock(batch), batch),
  };
}
