import type { IngestAdmission, IngestDemand, IngestLimit } from "../../../core/limits/ingest-limit.js";
import type { StoreTransaction } from "../transactions.js";

/** How many jobs are let in. Asked before an enqueue whose jobs are under a limit, and never for others. */
export interface IngestStore {
  /** The ingest limits of all tenants and queues; undefined if nothing has changed since that version. */
  limits(version?: string, tx?: StoreTransaction): Promise<{ readonly limits: readonly IngestLimit[]; readonly version: string } | undefined>;
  /**
   * Takes room for new jobs, by `admit`: demands are judged in order, each is let in whole or not at all. With `tx` the
   * room is taken when the caller commits, and others under the same limit wait until then.
   */
  take(limits: readonly IngestLimit[], demands: readonly IngestDemand[], tx?: StoreTransaction): Promise<readonly IngestAdmission[]>;
}
