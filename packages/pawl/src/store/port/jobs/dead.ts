import type { Fingerprint } from "../../../core/jobs/fingerprint.js";
import type { JobRecord } from "../../../core/jobs/job.js";
import type { Scope } from "../index.js";
import type { StoredJobFilter } from "./jobs.js";

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

export type DeadGroupFilter = Pick<StoredJobFilter, "queue" | "task" | "failure">;

export interface DeadStore {
  /** Dead jobs by fingerprint, the largest group first, then the one that grew last. */
  groups(scope: Scope, filter: DeadGroupFilter, limit: number): Promise<readonly DeadGroup[]>;
}
