import { compareText } from "../../../core/jobs/lane.js";
import { type LimitKeyId, limitKeyId, limitKeyParts, limitKeyRange } from "../../../core/limits/limit-rule.js";
import { tokens } from "../../../core/limits/token-bucket.js";
import { type LimitStore, MAX_WAITING, type WaitingLimitKey } from "../../port/limits/limits.js";
import type { LimitWait, MemoryJob, MemoryLimitKey, Tables } from "../state.js";
import { admitAt } from "./limit-keys.js";
import { pauseLimitKey } from "./limit-queues.js";

export function memoryLimits(tables: Tables): LimitStore {
  return {
    get: (ref) =>
      tables.step(() => {
        const key = limitKeyId(ref.tenant, ref);
        const limitKey = tables.limitKeys.get(key);
        if (limitKey === undefined) return undefined;
        const { rule, fullAt, pausedUntil, limitQueue } = limitKey;
        const [first] = limitQueue;
        const next = first === undefined ? undefined : ((tables.jobs.get(first.job) as MemoryJob).status as { limitWait: LimitWait }).limitWait;
        return {
          ...ref,
          rule,
          holders: [...tables.slots.holders("key", key), ...tables.slots.holders("serial", key)].sort(),
          ...(next === undefined ? {} : { next: { job: next.job, reason: next.reason } }),
          ...(fullAt === undefined || fullAt <= tables.now ? {} : { fullAt }),
          ...(pausedUntil === undefined || pausedUntil <= tables.now ? {} : { pausedUntil }),
        };
      }),

    list: (filter, { limit, after }) =>
      tables.step(() => {
        const { from, to } = limitKeyRange(filter, after === undefined ? undefined : limitKeyId(after.tenant, after));
        return [...tables.limitKeys]
          .filter(([key, { limitQueue }]) => limitQueue.length > 0 && key >= from && (to === undefined || key < to))
          .sort(([a], [b]) => compareText(a, b))
          .slice(0, limit)
          .map(([key, limitKey]) => waitingLimitKey(tables, key, limitKey));
      }),

    pause: (ref, duration) =>
      tables.step(() => {
        pauseLimitKey(tables, limitKeyId(ref.tenant, ref), duration);
      }),
  };
}

/** parked → ready, at up to `limit` limit keys that are to be looked at. */
export function admitDue(tables: Tables, limit: number): { readonly count: number; readonly limitKeys: number; readonly nextIn?: number } {
  const due = [...tables.limitChecks]
    .filter(([, at]) => at <= tables.now)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, limit);
  const count = due.reduce((sum, [limitKey]) => sum + admitAt(tables, limitKey), 0);
  const next = Math.min(...tables.limitChecks.values());
  return { count, limitKeys: due.length, ...(Number.isFinite(next) ? { nextIn: next - tables.now } : {}) };
}

function waitingLimitKey(tables: Tables, key: LimitKeyId, { rule, limitQueue, fullAt, pausedUntil }: MemoryLimitKey): WaitingLimitKey {
  const { job, reason } = ((tables.jobs.get(limitQueue[0]?.job as LimitWait["job"]) as MemoryJob).status as { limitWait: LimitWait }).limitWait;
  return {
    ...limitKeyParts(key),
    rule,
    held: tables.slots.count("key", key) + tables.slots.count("serial", key),
    waiting: Math.min(limitQueue.length, MAX_WAITING),
    ...(limitQueue.length > MAX_WAITING ? { more: true } : {}),
    ...(rule.rate === undefined ? {} : { tokens: tokens(rule.rate, fullAt, tables.now) }),
    ...(fullAt === undefined || fullAt <= tables.now ? {} : { fullAt }),
    ...(pausedUntil === undefined || pausedUntil <= tables.now ? {} : { pausedUntil }),
    next: { job, reason },
  };
}
