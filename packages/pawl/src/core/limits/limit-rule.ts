import { compareText } from "../jobs/lane.js";
import type { Rate } from "./token-bucket.js";

/** What holds for one key of a limit, over all workers. */
export interface LimitRule {
  /** jobs that are ready or running at a time */
  readonly concurrency?: number;
  /** one at a time and in order; the key is kept until its job is finished */
  readonly serial?: true;
  readonly rate?: Rate;
}

/** One limit that a job is under, as it is stored with it: the key was computed when it was enqueued. */
export interface JobLimit {
  readonly limit: string;
  readonly key: string;
  readonly rule: LimitRule;
  /** tokens of the rate; absent: 1 */
  readonly cost?: number;
}

/** The id of a limit key, which is one key of one limit of one tenant. Names hold no control characters. */
export type LimitKeyId = string & { readonly __limitKey: unique symbol };

const SEPARATOR = "\u0001";

export function limitKeyId(tenant: string, { limit, key }: Pick<JobLimit, "limit" | "key">): LimitKeyId {
  return [tenant, limit, key].join(SEPARATOR) as LimitKeyId;
}

export function limitKeyParts(limitKey: LimitKeyId): { readonly tenant: string; readonly limit: string; readonly key: string } {
  const [tenant = "", limit = "", key = ""] = limitKey.split(SEPARATOR);
  return { tenant, limit, key };
}

export interface LimitKeyRange {
  /** the first name that is in it */
  readonly from: string;
  /** the first one behind it; absent: it has no end */
  readonly to?: string;
}

/** Where the names of limit keys lie that are of all, of a tenant, of a limit of it, or of one key: separators come before all that is in names. */
export function limitKeyRange(of: { readonly tenant?: string; readonly limit?: string; readonly key?: string }, after?: LimitKeyId): LimitKeyRange {
  const parts = [of.tenant, of.limit, of.key].filter((part) => part !== undefined);
  const prefix = parts.join(SEPARATOR);
  const whole = parts.length === 3;
  const first = parts.length === 0 || whole ? prefix : `${prefix}${SEPARATOR}`;
  const from = after === undefined || after < first ? first : `${after}${SEPARATOR}`;
  return { from, ...(parts.length === 0 ? {} : { to: whole ? `${prefix}${SEPARATOR}` : `${prefix}\u0002` }) };
}

/** A limit key that must admit a job. */
export interface LimitRequirement {
  readonly limitKey: LimitKeyId;
  readonly rule: LimitRule;
  readonly cost: number;
}

/** The limit keys of a job in the order it asks for them: the serial one comes first, or those behind it could overtake it. */
export function requirementsOf(tenant: string, limits: readonly JobLimit[]): readonly LimitRequirement[] {
  return limits
    .map((limit): LimitRequirement => ({ limitKey: limitKeyId(tenant, limit), rule: limit.rule, cost: limit.cost ?? 1 }))
    .sort((a, b) => Number(b.rule.serial === true) - Number(a.rule.serial === true) || compareText(a.limitKey, b.limitKey));
}

/** What a job waits for at a limit key; also why it is parked there. */
export type LimitReason = "concurrency" | "serial" | "rate" | "key_paused";

/** What it waits for at first, before anybody has looked. */
export function reasonOf({ serial, concurrency }: LimitRule): LimitReason {
  return serial === true ? "serial" : concurrency !== undefined ? "concurrency" : "rate";
}

/** Its rank in the queue of a limit key: urgent ones first, but for a serial key, where order is what was asked for. */
export function rankOf({ serial }: LimitRule, priority: number): number {
  return serial === true ? 0 : 9 - priority;
}
/** A job that holds the slot of a serial key is before all others of it. */
export const SERIAL_HOLDER_RANK = -1;
