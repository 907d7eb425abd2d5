import { afterAll, beforeAll, describe } from "vitest";
import { storeConformance } from "../../packages/pawl/src/store/conformance/index.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import type { ParcelSize } from "../../packages/pawl/src/store/postgres/parcels.js";
import { emptiedStores } from "./emptied-store.js";
import { type Database, describeOn, freshDatabase, plannedOnce, type ServerName } from "./servers.js";

/** The suite on one server. Each has a file of its own, so that they run side by side. */
export function conformanceOn(server: ServerName, parcels?: ParcelSize): void {
  describeOn(server, () => {
    let database: Database;
    let stores: ReturnType<typeof emptiedStores>;
    beforeAll(async () => {
      database = await freshDatabase(server, plannedOnce(server));
      stores = emptiedStores(
        pgDriver({ config: { ...database.config, max: 4 }, listenConfig: database.directConfig, prepare: "auto", statementTimeout: 30_000 }),
        parcels,
      );
    });
    afterAll(async () => {
      await stores?.close();
      await database?.drop();
    });
    describe("the store port", () => storeConformance({ name: server, make: (now) => stores.make(now) }));
  });
}
