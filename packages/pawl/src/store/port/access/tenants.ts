import type { JobId } from "../../../core/jobs/id.js";

/** How far a purge went through the jobs of its tenant. */
export interface PurgedJobs {
  readonly deleted: number;
  /** jobs that a worker holds, each of which was asked to stop */
  readonly running: number;
  /** where to go on; absent: there were no more */
  readonly next?: JobId;
}

/**
 * Everything of a tenant goes. Each verb is one bounded step and may be repeated: what is left in the store is what is left to do.
 */
export interface TenantStore {
  /**
   * Pending or finished → gone, with their history: up to `limit` jobs of the tenant, by id, after `after`. A running one is
   * asked to be cancelled, and is finished when it is met again. Jobs that wait for one that is gone are judged as if it had been
   * cancelled.
   */
  purgeJobs(tenant: string, page: { readonly limit: number; readonly after?: JobId }): Promise<PurgedJobs>;
  /**
   * Targets, idempotency keys, batches, unique keys, breakers and limit keys of the tenant go, up to so many of each. Answers how many
   * went.
   */
  purgeRest(tenant: string, limit: number): Promise<number>;
}
