import type { Checkup } from "../../../core/observe/doctor.js";

/** How the store itself is, beside the jobs in it. Nothing is decided by it: people look, and mend. */
export interface CheckupStore {
  /** Reads statistics and a few small tables; may take some seconds where it waits for a wakeup of its own. */
  look(): Promise<Checkup>;
}
