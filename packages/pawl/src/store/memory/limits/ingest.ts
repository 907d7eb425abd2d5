import { compareText } from "../../../core/jobs/lane.js";
import { admitIngest, counted, type IngestLimit, type IngestState, needsCount, UNUSED, waitingOf } from "../../../core/limits/ingest-limit.js";
import { policyKey, type QueuePolicy, type TenantPolicy } from "../../../core/sharing/policy.js";
import type { IngestStore } from "../../port/enqueue/ingest.js";
import type { Tables } from "../state.js";

export function memoryIngest(tables: Tables): IngestStore {
  return {
    limits: (version) =>
      tables.step(() => {
        const current = String(tables.policyVersion);
        return version === current ? undefined : { limits: limitsOf(tables), version: current };
      }),
    async take(limits, demands) {
      return tables.step(() => {
        const requested = waitingOf(limits, demands);
        const before = limits.map((limit, index): IngestState => {
          const state = tables.ingest.get(policyKey(limit)) ?? UNUSED;
          return needsCount(limit, state, requested[index] as number, tables.now) ? counted(state, depthOf(tables, limit), tables.now, 0) : state;
        });
        const { states, admissions } = admitIngest(limits, before, demands, tables.now);
        limits.forEach((limit, index) => void tables.ingest.set(policyKey(limit), states[index] as IngestState));
        return admissions;
      });
    },
  };
}

function limitsOf(tables: Tables): readonly IngestLimit[] {
  return [...tables.policies.values()]
    .flatMap(({ kind, name, policy }): IngestLimit[] => {
      const { ingest } = policy as TenantPolicy & QueuePolicy;
      return ingest === undefined || kind === "task" ? [] : [{ kind, name, ...ingest }];
    })
    .sort((a, b) => compareText(a.kind, b.kind) || compareText(a.name, b.name));
}

export function depthOf(tables: Tables, { kind, name }: IngestLimit): number {
  let depth = 0;
  for (const { status, lane } of tables.jobs.values()) {
    // A tenant's single jobs that somebody paused are not counted: no store would find them cheaply.
    const waits = status.state === "ready" || (status.state === "parked" && (kind === "queue" || status.limitWait !== undefined));
    if (waits && lane[kind] === name) depth++;
  }
  return depth;
}
