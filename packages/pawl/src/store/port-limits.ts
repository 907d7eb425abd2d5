import type { JobId } from "../core/id.js";
import type { GateReason, LimitRule } from "../core/limit.js";

/** One key of one limit of one tenant. */
export interface GateRef {
  readonly tenant: string;
  readonly limit: string;
  readonly key: string;
}

/**
 * Limits on keys. A job under limits is parked at a gate, one for each key, until all of its gates let it in: that
 * happens right after it was enqueued, after a slot became free, and at the time a token is there.
 */
export interface LimitStore {
  /** parked → ready, at up to `limit` gates that are to be looked at. Answers the ms until the next one is. */
  admit(limit: number): Promise<{ readonly count: number; readonly gates: number; readonly nextIn?: number }>;
  /** How a key stands; undefined if no job was under it lately. */
  get(gate: GateRef): Promise<GateRecord | undefined>;
  /** Keys at which jobs wait, by tenant, limit and key: those after `after`, at most so many. */
  list(filter: GateFilter, page: { readonly limit: number; readonly after?: GateRef }): Promise<readonly GateStanding[]>;
  /** Lets nobody in for so many ms; 0 opens the gate again. Whoever was let in before goes on. */
  pause(gate: GateRef, duration: number): Promise<void>;
}

export interface GateRecord extends GateRef {
  readonly rule: LimitRule;
  /** jobs that hold a place, or the turn of a serial key */
  readonly holders: readonly JobId[];
  /** the job that is next, and what it waits for */
  readonly next?: { readonly job: JobId; readonly reason: GateReason };
  /** when the bucket of its rate is full again; ms since 1970, as the next */
  readonly fullAt?: number;
  readonly pausedUntil?: number;
}

/** Of one tenant, of one limit of it, or of one key of that. */
export type GateFilter =
  | { readonly tenant?: never; readonly limit?: never; readonly key?: never }
  | { readonly tenant: string; readonly limit?: never; readonly key?: never }
  | { readonly tenant: string; readonly limit: string; readonly key?: string };

/** A key at which jobs wait. */
export interface GateStanding extends GateRef {
  readonly rule: LimitRule;
  /** jobs that hold a place, or the turn of a serial key */
  readonly held: number;
  /** jobs that wait, of up to `MOST_WAITING` that are counted; `more`: and others */
  readonly waiting: number;
  readonly more?: true;
  /** whole tokens of its rate that are there now */
  readonly tokens?: number;
  /** when the bucket of its rate is full again; ms since 1970, as the next */
  readonly fullAt?: number;
  readonly pausedUntil?: number;
  /** the job that is next, and what it waits for */
  readonly next: { readonly job: JobId; readonly reason: GateReason };
}

/** Where counting ends. */
export const MOST_WAITING = 1_000;
