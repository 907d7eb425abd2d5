import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import type { StoreTransaction } from "../transactions.js";

/**
 * Jobs that are stored together once, however often they are sent: one idempotency key for all of them, kept in the
 * transaction that stores them. (An idempotency key of a single job is kept with that job; the two know nothing of each other.)
 */
export interface BatchStore {
  /**
   * As `jobs.enqueue`; for `keep.request` the same idempotency key answers with what the first became, and stores nothing.
   * Who comes while the first is being stored waits for it.
   */
  enqueue(request: BatchRequest, jobs: readonly NewJob[], tx?: StoreTransaction): Promise<EnqueuedBatch>;
  /** What the request became, if it is known. */
  get(request: BatchRequest): Promise<KnownBatch | undefined>;
}

export interface BatchRequest {
  /** whose idempotency keys they are; empty: of nobody in particular */
  readonly tenant: string;
  readonly id: string;
  /** of what is asked: the same id with something else is told apart */
  readonly digest: string;
  /** kept with it and answered with it: what the caller must know of it besides */
  readonly note?: string;
}

export type EnqueuedBatch = { readonly kind: "stored"; readonly answers: readonly Enqueued[] } | KnownBatch;

export type KnownBatch =
  /** the answers as they were when it was stored */
  | { readonly kind: "repeated"; readonly answers: readonly Enqueued[]; readonly note?: string }
  /** the idempotency key was used for something else */
  | { readonly kind: "different" };
