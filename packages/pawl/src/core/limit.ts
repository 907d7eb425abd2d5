import { compareText } from "./lane.js";
import type { Rate } from "./rate.js";

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

/** The name of a gate: one key of one limit of one tenant. Names hold no control characters. */
export type GateKey = string & { readonly __gate: unique symbol };

const SEPARATOR = "\u0001";

export function gateKey(tenant: string, { limit, key }: Pick<JobLimit, "limit" | "key">): GateKey {
  return [tenant, limit, key].join(SEPARATOR) as GateKey;
}

export function gateParts(gate: GateKey): { readonly tenant: string; readonly limit: string; readonly key: string } {
  const [tenant = "", limit = "", key = ""] = gate.split(SEPARATOR);
  return { tenant, limit, key };
}

export interface GateRange {
  /** the first name that is in it */
  readonly from: string;
  /** the first one behind it; absent: it has no end */
  readonly to?: string;
}

/** Where the names of gates lie that are of all, of a tenant, of a limit of it, or of one key: separators come before all that is in names. */
export function gatesOf(of: { readonly tenant?: string; readonly limit?: string; readonly key?: string }, after?: GateKey): GateRange {
  const known = [of.tenant, of.limit, of.key].filter((part) => part !== undefined);
  const prefix = known.join(SEPARATOR);
  const whole = known.length === 3;
  const first = known.length === 0 || whole ? prefix : `${prefix}${SEPARATOR}`;
  const from = after === undefined || after < first ? first : `${after}${SEPARATOR}`;
  return { from, ...(known.length === 0 ? {} : { to: whole ? `${prefix}${SEPARATOR}` : `${prefix}\u0002` }) };
}

/** A gate that a job must pass. */
export interface Pass {
  readonly gate: GateKey;
  readonly rule: LimitRule;
  readonly cost: number;
}

/** The gates of a job in the order it asks for them: its turn comes first, or those behind it could overtake it. */
export function passesOf(tenant: string, limits: readonly JobLimit[]): readonly Pass[] {
  return limits
    .map((limit): Pass => ({ gate: gateKey(tenant, limit), rule: limit.rule, cost: limit.cost ?? 1 }))
    .sort((a, b) => Number(b.rule.serial === true) - Number(a.rule.serial === true) || compareText(a.gate, b.gate));
}

/** What a job waits for at a gate; also why it is parked there. */
export type GateReason = "concurrency" | "serial" | "rate" | "key_paused";

/** What it waits for at first, before anybody has looked. */
export function reasonOf({ serial, concurrency }: LimitRule): GateReason {
  return serial === true ? "serial" : concurrency !== undefined ? "concurrency" : "rate";
}

/** Its place in the line of a gate: urgent ones first, but for a serial key, where order is what was asked for. */
export function rankOf({ serial }: LimitRule, band: number): number {
  return serial === true ? 0 : 9 - band;
}
/** One that has its turn is before all others of its key. */
export const TURN_RANK = -1;
