import { admitFromQueue, type LimitKeyState, type QueuedJob, slotsLeft, updateClosed } from "../../../core/limits/admission.js";
import { type LimitKeyId, type LimitRequirement, type LimitRule, rankOf, SERIAL_HOLDER_RANK } from "../../../core/limits/limit-rule.js";
import { move } from "../jobs/move.js";
import type { LimitWait, MemoryJob, MemoryLimitKey, Tables } from "../state.js";
import { addLimitCheck, holdsSerialSlot, joinLimitQueue, leaveLimitQueue, limitKeyState, requirementsOfJob } from "./limit-queues.js";

/** The most that one round looks at. */
const MAX_HEADS = 100;

function stateOfLimitKey(tables: Tables, key: LimitKeyId, rule: LimitRule): LimitKeyState {
  const { rule: current, fullAt, pausedUntil, closed } = limitKeyState(tables, key, rule);
  const unstarted = tables.slots.holders("rate", key).filter((job) => tables.jobs.get(job)?.status.state === "ready");
  return {
    rule: current,
    fullAt,
    pausedUntil,
    closed,
    holders: tables.slots.count("key", key) + tables.slots.count("serial", key),
    waitingForWorker: unstarted.length,
  };
}

/** Looks at one limit key: lets in who can pass, until nobody can. Answers how many it let in. */
export function admitAt(tables: Tables, key: LimitKeyId): number {
  tables.limitChecks.delete(key);
  let count = 0;
  for (;;) {
    const row = tables.limitKeys.get(key);
    if (row === undefined) return count;
    const own = stateOfLimitKey(tables, key, row.rule);
    const limit = row.rule.serial === true ? 1 : slotsLeft(own, MAX_HEADS);
    if (row.limitQueue.length === 0 || limit === 0) {
      updateClosed(own);
      row.closed = own.closed;
      return count;
    }
    const heads = row.limitQueue.slice(0, limit).map(({ job }): QueuedJob<MemoryJob> => {
      const waiting = tables.jobs.get(job) as MemoryJob;
      const requirements = requirementsOfJob(waiting);
      return { job: waiting, requirements, holdsSerialSlot: holdsSerialSlot(tables, waiting, requirements[0] as LimitRequirement) };
    });
    const limitKeys = new Map(
      heads.flatMap(({ requirements }) => requirements.map(({ limitKey, rule }) => [limitKey, stateOfLimitKey(tables, limitKey, rule)] as const)),
    );
    for (const [limitKey, state] of limitKeys) if (limitKey !== key && tables.limitKeys.get(limitKey)?.limitQueue.length === 0) updateClosed(state);
    const { admitted, waiting, waited, limitChecks, closed } = admitFromQueue(key, heads, limitKeys, tables.now);
    for (const [limitKey, { fullAt, closed: shut }] of limitKeys)
      Object.assign(tables.limitKeys.get(limitKey) as MemoryLimitKey, { fullAt, closed: shut });
    for (const { job, slots } of admitted) {
      move(tables, job, "admit", { state: "ready", ...(waited ? { admitted: true } : {}) });
      for (const { kind, limitKey } of slots) tables.slots.add(kind, limitKey, job.id);
    }
    for (const { job, at, reason, slots, hasSerialSlot } of waiting) {
      for (const { kind, limitKey } of slots) tables.slots.add(kind, limitKey, job.id);
      const { limitWait } = job.status as { limitWait: LimitWait };
      const rank = hasSerialSlot ? SERIAL_HOLDER_RANK : rankOf(at.rule, job.lane.priority);
      leaveLimitQueue(tables, limitWait);
      const now: LimitWait = { ...limitWait, limitKey: at.limitKey, rank, reason };
      job.status = { state: "parked", limitWait: now };
      joinLimitQueue(tables, now, job);
    }
    for (const [limitKey, until] of limitChecks) addLimitCheck(tables, limitKey, until);
    count += admitted.length;
    if (closed) return count;
  }
}

/** Limit keys that got a limit check in this step are looked at before it ends. */
export function checkLimitKeys(tables: Tables): void {
  while (tables.limitKeysToCheck.size > 0) {
    const limitKeys = [...tables.limitKeysToCheck].sort();
    tables.limitKeysToCheck.clear();
    for (const limitKey of limitKeys) admitAt(tables, limitKey);
  }
}
