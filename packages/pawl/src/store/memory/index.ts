import { joinDuties } from "../port/duties/duty-table.js";
import type { EngineStore, ServiceStore, Store } from "../port/index.js";
import { memoryApiKeys } from "./access/api-keys.js";
import { memoryAudit } from "./access/audit.js";
import { memoryDataKeys } from "./access/data-keys.js";
import { memoryPurges } from "./access/purges.js";
import { memoryTenants } from "./access/tenants.js";
import { memoryLanes } from "./claim/lanes.js";
import { memoryLeases } from "./claim/leases.js";
import { memoryWorkers } from "./claim/workers.js";
import { memoryBatches } from "./jobs/batches.js";
import { memoryDead } from "./jobs/dead.js";
import { memoryJobs } from "./jobs/jobs.js";
import { memoryReplies } from "./jobs/replies.js";
import { memoryTargets } from "./jobs/targets.js";
import { memoryTasks } from "./jobs/tasks.js";
import { memoryBreakers } from "./limits/breakers.js";
import { memoryIngest } from "./limits/ingest.js";
import { checkLimitKeys } from "./limits/limit-keys.js";
import { memoryLimits } from "./limits/limits.js";
import { memoryPolicies } from "./limits/policies.js";
import { memoryCheckup } from "./observe/checkup.js";
import { memoryDuties, memoryServiceDuties } from "./observe/duties.js";
import { memoryEvents } from "./observe/events.js";
import { memoryExplain } from "./observe/explain.js";
import { memoryRecords } from "./observe/records.js";
import { memorySeries } from "./observe/series.js";
import { memorySchedules } from "./schedules/schedules.js";
import { Tables } from "./state.js";

export interface MemoryStoreOptions {
  /** the store's clock, ms since 1970 */
  readonly now?: () => number;
}

/**
 * The reference model: the port in its plainest form, and the oracle the other stores are compared with.
 * Every verb is one synchronous step, every rule comes from core. Nothing survives the process.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const tables = new Tables(options.now ?? Date.now, checkLimitKeys);
  const [service, engine] = [memoryService(tables), memoryEngine(tables)];
  return { ...service, ...engine, duties: joinDuties(engine.duties, service.duties) };
}

/** The service part alone: for an engine that keeps nothing but jobs. */
export function memoryServiceStore(options: MemoryStoreOptions = {}): ServiceStore {
  return memoryService(new Tables(options.now ?? Date.now, checkLimitKeys));
}

function memoryService(tables: Tables): ServiceStore {
  return {
    apiKeys: memoryApiKeys(tables),
    audit: memoryAudit(tables),
    replies: memoryReplies(tables),
    dataKeys: memoryDataKeys(tables),
    purges: memoryPurges(tables),
    events: memoryEvents(tables),
    duties: memoryServiceDuties(tables),
    close: () => closeTables(tables),
  };
}

function memoryEngine(tables: Tables): EngineStore {
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
    targets: memoryTargets(tables),
    tenants: memoryTenants(tables),
    engine: {
      engine: "memory",
      place: "memory:",
      version: "1",
      durability: "none",
      schema: 0,
      capabilities: { transactions: false, handoff: false, shared: false },
    },
    onWakeup(listener) {
      tables.listeners.add(listener);
      return () => void tables.listeners.delete(listener);
    },
    sendWakeup(wakeup) {
      for (const listener of tables.listeners) listener(wakeup);
    },
    // There are no others.
    receivesWakeups: () => true,
    close: () => closeTables(tables),
  };
}

async function closeTables(tables: Tables): Promise<void> {
  tables.closed = true;
  tables.listeners.clear();
}
