import { admit, counted, type IngestLimit, type IngestState, needsCount, UNUSED, waitingOf } from "../../core/backpressure.js";
import { pawlError } from "../../core/error.js";
import { compareText } from "../../core/lane.js";
import { policyKey, type QueuePolicy, type TenantPolicy } from "../../core/policy.js";
import type { IngestStore } from "../port-ingest.js";
import type { Tables } from "./state.js";

export function memoryIngest(tables: Tables): IngestStore {
  return {
    limits: (mark) =>
      tables.step(() => {
        const current = String(tables.policyMark);
        return mark === current ? undefined : { limits: limitsOf(tables), mark: current };
      }),
    async take(limits, demands, tx) {
      if (tx !== undefined) throw pawlError("transaction_unsupported", { engine: "memory" });
      return tables.step(() => {
        const asked = waitingOf(limits, demands);
        const before = limits.map((limit, place): IngestState => {
          const state = tables.ingest.get(policyKey(limit)) ?? UNUSED;
          return needsCount(limit, state, asked[place] as number, tables.now) ? counted(state, depthOf(tables, limit), tables.now, 0) : state;
        });
        const { states, admissions } = admit(limits, before, demands, tables.now);
        limits.forEach((limit, place) => void tables.ingest.set(policyKey(limit), states[place] as IngestState));
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
  for (const { place, lane } of tables.jobs.values()) {
    // A tenant's single jobs that somebody paused are not counted: no store would find them cheaply.
    const waits = place.state === "ready" || (place.state === "parked" && (kind === "queue" || place.standing !== undefined));
    if (waits && lane[kind] === name) depth++;
  }
  return depth;
}
