import type { Store } from "../store/port/index.js";
import { batchResult, type Duty } from "./duty.js";

/** Folds counter deltas, so that reading counts stays cheap. */
export function countsFolder(store: Store, batch: number): Duty {
  return {
    name: "fold counts",
    due: ({ deltas }) => (deltas ? 0 : undefined),
    run: async () => batchResult(await store.duties.fold(batch), batch),
  };
}
