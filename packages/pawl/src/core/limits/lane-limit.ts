import type { Quota } from "../sharing/claim-plan.js";
import { type Limits, type PolicyRef, policyKey, refsOf } from "../sharing/policy.js";
import { spend, tokens, tokensIn } from "./token-bucket.js";

/** A limit and how much of it is in use. */
export interface LimitState extends PolicyRef, Limits {
  /** jobs that hold a slot of it */
  readonly used: number;
  /** when its bucket will be full again */
  readonly tat?: number;
}

/** A limit that gave less than was asked for. */
export interface ReachedLimit extends PolicyRef {
  /** ms until there is a token; absent: until a job that holds a slot is over */
  readonly retryIn?: number;
}

/** Cuts quotas to what the limits of their lanes leave, lane after lane, since lanes share limits. */
export function withinLimits(
  quotas: readonly Quota[],
  limits: readonly LimitState[],
  now: number,
): { readonly quotas: readonly Quota[]; readonly reached: readonly ReachedLimit[] } {
  const states = new Map(limits.map((limit) => [policyKey(limit), { limit, room: roomOf(limit, now) }]));
  const reached = new Map<string, ReachedLimit>();
  const granted: Quota[] = [];
  for (const { lane, quota } of quotas) {
    const own = refsOf(lane).flatMap((ref) => states.get(policyKey(ref)) ?? []);
    const cut = Math.min(quota, ...own.map(({ room }) => room));
    if (cut < quota) for (const { limit, room } of own) if (room === cut) reached.set(policyKey(limit), reachedBy(limit, now));
    if (cut <= 0) continue;
    for (const state of own) state.room -= cut;
    granted.push({ lane, quota: cut });
  }
  return { quotas: granted, reached: [...reached.values()] };
}

export function roomOf({ concurrency, rate, used, tat }: LimitState, now: number): number {
  const slots = concurrency === undefined ? Number.POSITIVE_INFINITY : Math.max(0, concurrency - used);
  return rate === undefined ? slots : Math.min(slots, tokens(rate, tat, now));
}

/** The bucket after so many jobs, undefined where there is none. */
export function spent({ rate, tat }: LimitState, now: number, count: number): number | undefined {
  return rate === undefined ? undefined : spend(rate, tat, now, count);
}

function reachedBy({ kind, name, concurrency, rate, used, tat }: LimitState, now: number): ReachedLimit {
  const slots = concurrency === undefined ? Number.POSITIVE_INFINITY : concurrency - used;
  const left = rate === undefined ? Number.POSITIVE_INFINITY : tokens(rate, tat, now);
  if (rate === undefined || slots <= left) return { kind, name };
  return { kind, name, retryIn: tokensIn(rate, spend(rate, tat, now, left), now, 1) };
}
