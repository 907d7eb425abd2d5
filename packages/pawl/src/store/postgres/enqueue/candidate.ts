import type { JobId } from "../../../core/jobs/id.js";
import type { NewJob } from "../../../core/jobs/job.js";

/** A job of the batch with its id and due time. */
export interface Candidate {
  readonly job: NewJob;
  readonly id: JobId;
  readonly due: number;
}

/** What stands for its idempotency key, or its key, among all others. */
export function requestKey(job: NewJob): string {
  return `${job.lane.tenant}\u0001${job.idempotencyKey?.id}`;
}
export function uniqueKey(job: NewJob): string {
  return `${job.lane.tenant}\u0001${job.lane.task}\u0001${job.unique?.key}`;
}
