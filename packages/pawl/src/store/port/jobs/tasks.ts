import type { TaskRecord } from "../../../core/jobs/task-record.js";
import type { StoreTransaction } from "../transactions.js";

/** What is known of tasks to those who have their names and not their code. */
export interface TaskStore {
  /** Makes them known as they are here: the last one who says so is right. Writes, and counts, only what differs. */
  publish(tasks: readonly TaskRecord[]): Promise<number>;
  /** Those that somebody published, in any order. With `tx`, read on the caller's own connection. */
  get(names: readonly string[], tx?: StoreTransaction): Promise<readonly TaskRecord[]>;
}
