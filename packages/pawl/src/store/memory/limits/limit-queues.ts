import type { LimitKeyId, LimitRequirement, LimitRule } from "../../../core/limits/limit-rule.js";
import { rankOf, reasonOf, requirementsOf, SERIAL_HOLDER_RANK } from "../../../core/limits/limit-rule.js";
import type { JobStatus, LimitWait, MemoryJob, MemoryLimitKey, Tables } from "../state.js";

export function requirementsOfJob({ lane, options }: MemoryJob): readonly LimitRequirement[] {
  return requirementsOf(lane.tenant, options?.limits ?? []);
}

/** Where a job goes that nothing but its limits keeps from running: into the queue of its first limit key. */
export function statusUnderLimits(tables: Tables, row: MemoryJob): JobStatus {
  const [first] = requirementsOfJob(row);
  if (first === undefined) return { state: "ready" };
  addLimitCheck(tables, first.limitKey, tables.now);
  const rank = holdsSerialSlot(tables, row, first) ? SERIAL_HOLDER_RANK : rankOf(first.rule, row.lane.priority);
  return { state: "parked", limitWait: { job: row.id, limitKey: first.limitKey, rank, seq: tables.nextQueueSeq(), reason: reasonOf(first.rule) } };
}

/** The newest job says what the rule of a key is. */
export function bringRules(tables: Tables, row: MemoryJob): void {
  for (const { limitKey, rule } of requirementsOfJob(row)) limitKeyState(tables, limitKey, rule).rule = rule;
}

export function limitKeyState(tables: Tables, key: LimitKeyId, rule: LimitRule): MemoryLimitKey {
  let limitKey = tables.limitKeys.get(key);
  if (limitKey === undefined) {
    limitKey = { rule, fullAt: undefined, pausedUntil: undefined, closed: false, limitQueue: [] };
    tables.limitKeys.set(key, limitKey);
  }
  return limitKey;
}

export function addLimitCheck(tables: Tables, limitKey: LimitKeyId, at: number): void {
  tables.limitChecks.set(limitKey, Math.min(at, tables.limitChecks.get(limitKey) ?? at));
  if (at <= tables.now) tables.limitKeysToCheck.add(limitKey);
  else tables.wakeups.admitAt = Math.min(at, tables.wakeups.admitAt ?? at);
}

export function joinLimitQueue(tables: Tables, limitWait: LimitWait, row: MemoryJob): void {
  const rule = requirementsOfJob(row).find(({ limitKey }) => limitKey === limitWait.limitKey)?.rule ?? {};
  const { limitQueue } = limitKeyState(tables, limitWait.limitKey, rule);
  const behind = limitQueue.findIndex((entry) => entry.rank > limitWait.rank || (entry.rank === limitWait.rank && entry.seq > limitWait.seq));
  limitQueue.splice(behind === -1 ? limitQueue.length : behind, 0, limitWait);
}

export function leaveLimitQueue(tables: Tables, { limitKey, job }: LimitWait): void {
  const limitQueue = tables.limitKeys.get(limitKey)?.limitQueue ?? [];
  const index = limitQueue.findIndex((entry) => entry.job === job);
  if (index !== -1) limitQueue.splice(index, 1);
}

/** What a job that leaves held is free for others. */
export function releaseSlots(tables: Tables, row: MemoryJob, finished: boolean): void {
  for (const { kind, key } of tables.slots.free(row.id, finished)) {
    if (kind === "key" || kind === "serial" || kind === "rate") addLimitCheck(tables, key as LimitKeyId, tables.now);
  }
}

export function holdsSerialSlot(tables: Tables, row: MemoryJob, first: LimitRequirement): boolean {
  return tables.slots.holds("serial", first.limitKey, row.id);
}

/** A longer pause outlasts a shorter one; no time at all ends it. */
export function pauseLimitKey(tables: Tables, key: LimitKeyId, duration: number): void {
  const limitKey = tables.limitKeys.get(key);
  if (limitKey === undefined) return;
  limitKey.pausedUntil = duration === 0 ? undefined : Math.max(limitKey.pausedUntil ?? 0, tables.now + duration);
  addLimitCheck(tables, key, tables.now);
}
