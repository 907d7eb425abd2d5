import { pawlError } from "../../core/values/error.js";
import { memoryServiceStore } from "../memory/index.js";
import { dutiesFrom, joinDuties } from "../port/duties/duty-table.js";
import type { EngineStore, ServiceStore, Store } from "../port/index.js";

/** An engine and a service store, as one store. Without a service store, what needs one rejects with `service_store_missing`. */
export function pairStores(engine: EngineStore, service: ServiceStore = refusingService(engine.engine.engine)): Store {
  const { dataKeys } = service;
  return {
    ...service,
    // The engine's transactions are not this store's.
    dataKeys: { ...dataKeys, newest: (tenants) => dataKeys.newest(tenants) },
    ...engine,
    duties: joinDuties(engine.duties, service.duties),
    get engine() {
      return engine.engine;
    },
    async close() {
      await Promise.all([engine.close(), service.close()]);
    },
  };
}

/** Whether the store has both parts. */
export function isWhole(store: EngineStore): store is Store {
  return "apiKeys" in store;
}

/** The verbs are those of the memory store; none of them is carried out. */
function refusingService(engine: string): ServiceStore {
  const { close, duties: _, ...nouns } = memoryServiceStore();
  const refusing = Object.entries(nouns).map(([noun, verbs]) => [
    noun,
    Object.fromEntries(
      Object.keys(verbs).map((verb) => [verb, async () => Promise.reject(pawlError("service_store_missing", { what: `${noun}.${verb}`, engine }))]),
    ),
  ]);
  return { ...(Object.fromEntries(refusing) as typeof nouns), duties: dutiesFrom({}), close };
}
