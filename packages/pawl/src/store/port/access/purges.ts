import type { JobId } from "../../../core/jobs/id.js";

/** A purge that was asked for and is not done. */
export interface PurgeRecord {
  /** a uuid */
  readonly id: string;
  readonly tenant: string;
  readonly askedAt: number;
}

/** How far a purge went through the jobs of its tenant. */
export interface PurgedJobs {
  readonly deleted: number;
  /** those that a worker holds, each of which was asked to stop */
  readonly running: number;
  /** where to go on; absent: there were no more */
  readonly next?: JobId;
}

/**
 * Everything of a tenant goes, but for the audit log. Each verb is one bounded step and may be repeated: what is left in the
 * store is what is left to do, so a purge that was interrupted is begun again.
 */
export interface PurgeStore {
  /** (nothing) → a purge under way. Answers its id: this one, unless the tenant is being purged already. */
  begin(id: string, tenant: string): Promise<string>;
  get(id: string): Promise<PurgeRecord | undefined>;
  /** oldest first */
  list(): Promise<readonly PurgeRecord[]>;
  /**
   * Pending or finished → gone, with their history: up to `limit` jobs of the tenant, by id, after `after`. A running one is
   * asked to be cancelled, and is finished when it is met again. Who waits for one that is gone is judged as if it had been
   * cancelled.
   */
  jobs(tenant: string, page: { readonly limit: number; readonly after?: JobId }): Promise<PurgedJobs>;
  /**
   * What has no verb of its own to remove it: API keys, data keys, idempotency keys, batches, unique keys, kept replies, breakers,
   * limit keys. Up to so many of each; answers how many went.
   */
  rest(tenant: string, limit: number): Promise<number>;
  /** It is done: forgotten, as everything else. */
  end(id: string): Promise<void>;
}
