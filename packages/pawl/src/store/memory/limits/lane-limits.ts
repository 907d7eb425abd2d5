import type { Lane } from "../../../core/jobs/lane.js";
import { type LimitState, spent } from "../../../core/limits/lane-limit.js";
import type { Quota } from "../../../core/sharing/claim-plan.js";
import { isLimited, policyKey, refsOf } from "../../../core/sharing/policy.js";
import type { MemoryJob, Tables } from "../state.js";

/** The limits a lane is under, as they stand. */
export function limitsOf(tables: Tables, lane: Lane): readonly LimitState[] {
  return refsOf(lane).flatMap((ref) => {
    const policy = tables.policies.get(policyKey(ref))?.policy;
    if (policy === undefined || !isLimited(policy)) return [];
    const tat = tables.buckets.get(policyKey(ref));
    return [{ ...ref, ...policy, used: tables.slots.count(ref.kind, ref.name), ...(tat === undefined ? {} : { tat }) }];
  });
}

export function limitsOver(tables: Tables, quotas: readonly Quota[]): readonly LimitState[] {
  return [...new Map(quotas.flatMap(({ lane }) => limitsOf(tables, lane)).map((limit) => [policyKey(limit), limit])).values()];
}

/** What jobs that were just claimed take of the limits they are under. */
export function takeLimits(tables: Tables, rows: readonly MemoryJob[]): void {
  for (const { id, lane } of rows) {
    for (const limit of limitsOf(tables, lane)) {
      if (limit.concurrency !== undefined) tables.slots.add(limit.kind, limit.name, id);
      const tat = spent(limit, tables.now, 1);
      if (tat !== undefined) tables.buckets.set(policyKey(limit), tat);
    }
  }
}
