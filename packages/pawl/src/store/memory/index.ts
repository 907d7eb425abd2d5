import type { Store } from "../port.js";
import { memoryApiKeys } from "./api-keys.js";
import { memoryAudit } from "./audit.js";
import { memoryBatches } from "./batches.js";
import { memoryBreakers } from "./breakers.js";
import { memoryCheckup } from "./checkup.js";
import { memoryDataKeys } from "./data-keys.js";
import { memoryDead } from "./dead.js";
import { memoryDuties } from "./duties.js";
import { memoryEvents } from "./events.js";
import { memoryExplain } from "./explain.js";
import { openFresh } from "./gates.js";
import { memoryIngest } from "./ingest.js";
import { memoryJobs } from "./jobs.js";
import { memoryLanes } from "./lanes.js";
import { memoryLeases } from "./leases.js";
import { memoryLimits } from "./limits.js";
import { memoryPolicies } from "./policies.js";
import { memoryPurges } from "./purges.js";
import { memoryRecords } from "./records.js";
import { memoryReplies } from "./replies.js";
import { memorySchedules } from "./schedules.js";
import { memorySeries } from "./series.js";
import { Tables } from "./state.js";
import { memoryTargets } from "./targets.js";
import { memoryTasks } from "./tasks.js";
import { memoryWorkers } from "./workers.js";

export interface MemoryStoreOptions {
  /** the store's clock, ms since 1970 */
  readonly now?: () => number;
}

/**
 * The reference model: the port in its plainest form, and the oracle the other stores are compared with.
 * Every verb is one synchronous step, every rule comes from core. Nothing survives the process.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const tables = new Tables(options.now ?? Date.now, openFresh);
  return {
    jobs: memoryJobs(tables),
    batches: memoryBatches(tables),
    leases: memoryLeases(tables),
    lanes: memoryLanes(tables),
    tasks: memoryTasks(tables),
    limits: memoryLimits(tables),
    policies: memoryPolicies(tables),
    ingest: memoryIngest(tables),
    explain: memoryExplain(tables),
    workers: memoryWorkers(tables),
    breakers: memoryBreakers(tables),
    dead: memoryDead(tables),
    checkup: memoryCheckup(tables),
    schedules: memorySchedules(tables),
    duties: memoryDuties(tables),
    records: memoryRecords(tables),
    series: memorySeries(tables),
    events: memoryEvents(tables),
    targets: memoryTargets(tables),
    apiKeys: memoryApiKeys(tables),
    audit: memoryAudit(tables),
    replies: memoryReplies(tables),
    dataKeys: memoryDataKeys(tables),
    purges: memoryPurges(tables),
    engine: { engine: "memory", place: "memory:", version: "1", durability: "none", schema: 0 },
    onHint(listener) {
      tables.listeners.add(listener);
      return () => void tables.listeners.delete(listener);
    },
    hint(hint) {
      for (const listener of tables.listeners) listener(hint);
    },
    // There are no others.
    hearsOthers: () => true,
    async close() {
      tables.closed = true;
      tables.listeners.clear();
    },
  };
}
