import type { Store } from "../store/port.js";
import { type Duty, ran } from "./duty.js";

/** Folds counter deltas, so that reading counts stays cheap. */
export function folder(store: Store, batch: number): Duty {
  return {
    name: "fold counts",
    due: ({ deltas }) => (deltas ? 0 : undefined),
    run: async () => ran(await store.duties.fold(batch), batch),
  };
}
