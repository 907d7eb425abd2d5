import type { Store } from "../store/port.js";
import { type Duty, ran } from "./duty.js";

/** Carries out what was asked of jobs that no worker holds any more. */
export function intents(store: Store, batch: number): Duty {
  return {
    name: "carry out intents",
    due: (pulse) => (pulse.intents ? 0 : undefined),
    run: async () => ran(await store.duties.carryOut(batch), batch),
  };
}
