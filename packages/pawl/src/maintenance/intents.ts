import type { Store } from "../store/port/index.js";
import { batchResult, type Duty } from "./duty.js";

/** Carries out what was asked of jobs that no worker holds any more. */
export function intents(store: Store, batch: number): Duty {
  return {
    name: "carry out intents",
    due: (poll) => (poll.intents ? 0 : undefined),
    run: async () => batchResult(await store.duties.carryOut(batch), batch),
  };
}
