import type { Fingerprint } from "../core/fingerprint.js";
import type { JobRecord } from "../core/job.js";
import type { Scope } from "./port.js";
import type { JobFilter } from "./port-jobs.js";

/** Dead jobs of one cause. */
export interface DeadGroup {
  readonly fingerprint: Fingerprint;
  readonly count: number;
  /** when the first and the last of them died */
  readonly firstAt: number;
  readonly lastAt: number;
  /** the one that was due last */
  readonly sample: JobRecord;
}

export type DeadGroupFilter = Pick<JobFilter, "queue" | "task" | "failure">;

export interface DeadStore {
  /** Dead jobs by fingerprint, the largest group first, then the one that grew last. */
  groups(scope: Scope, filter: DeadGroupFilter, limit: number): Promise<readonly DeadGroup[]>;
}
