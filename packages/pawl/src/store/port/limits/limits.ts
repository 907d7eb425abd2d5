import type { JobId } from "../../../core/jobs/id.js";
import type { LimitReason, LimitRule } from "../../../core/limits/limit-rule.js";

/** One key of one limit of one tenant. */
export interface LimitKeyRef {
  readonly tenant: string;
  readonly limit: string;
  readonly key: string;
}

/**
 * Limits on keys. A job under limits is parked at a limit key, one for each key, until all of its limit keys let it in: that
 * happens right after it was enqueued, after a slot became free, and at the time a token is there.
 */
export interface LimitStore {
  /** How a key stands; undefined if no job was under it lately. */
  get(limitKey: LimitKeyRef): Promise<LimitKeyRecord | undefined>;
  /** Keys at which jobs wait, by tenant, limit and key: those after `after`, at most so many. */
  list(filter: LimitKeyFilter, page: { readonly limit: number; readonly after?: LimitKeyRef }): Promise<readonly WaitingLimitKey[]>;
  /** Lets nobody in for so many ms; 0 opens the limit key again. Whoever was let in before goes on. */
  pause(limitKey: LimitKeyRef, duration: number): Promise<void>;
}

export interface LimitKeyRecord extends LimitKeyRef {
  readonly rule: LimitRule;
  /** jobs that hold a slot, or the serial slot */
  readonly holders: readonly JobId[];
  /** the job that is next, and what it waits for */
  readonly next?: { readonly job: JobId; readonly reason: LimitReason };
  /** when the bucket of its rate is full again; ms since 1970, as the next */
  readonly fullAt?: number;
  readonly pausedUntil?: number;
}

/** Of one tenant, of one limit of it, or of one key of that. */
export type LimitKeyFilter =
  | { readonly tenant?: never; readonly limit?: never; readonly key?: never }
  | { readonly tenant: string; readonly limit?: never; readonly key?: never }
  | { readonly tenant: string; readonly limit: string; readonly key?: string };

/** A key at which jobs wait. */
export interface WaitingLimitKey extends LimitKeyRef {
  readonly rule: LimitRule;
  /** jobs that hold a slot, or the serial slot */
  readonly held: number;
  /** jobs that wait, of up to `MAX_WAITING` that are counted; `more`: and others */
  readonly waiting: number;
  readonly more?: true;
  /** whole tokens of its rate that are there now */
  readonly tokens?: number;
  /** when the bucket of its rate is full again; ms since 1970, as the next */
  readonly fullAt?: number;
  readonly pausedUntil?: number;
  /** the job that is next, and what it waits for */
  readonly next: { readonly job: JobId; readonly reason: LimitReason };
}

/** Where counting ends. */
export const MAX_WAITING = 1_000;
