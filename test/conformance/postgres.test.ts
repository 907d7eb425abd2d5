import { afterAll, beforeAll, describe } from "vitest";
import { storeConformance } from "../../packages/pawl/src/store/conformance/index.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import type { ParcelSize } from "../../packages/pawl/src/store/postgres/parcels.js";
import { emptiedStores } from "../support/emptied-store.js";
import { type Database, describeOn, freshDatabase, type ServerName } from "../support/servers.js";

const SERVERS: readonly ServerName[] = ["embedded18", "debian15", "pgbouncer"];
/** On one of them every job is in a parcel, and most parcels hold several. */
const PARCELS: Partial<Record<ServerName, ParcelSize>> = { debian15: { from: 1, most: 2 } };

for (const server of SERVERS) {
  describeOn(server, () => {
    let database: Database;
    let stores: ReturnType<typeof emptiedStores>;
    beforeAll(async () => {
      database = await freshDatabase(server);
      stores = emptiedStores(
        pgDriver({ config: { ...database.config, max: 4 }, listenConfig: database.directConfig, prepare: "auto", statementTimeout: 30_000 }),
        PARCELS[server],
      );
    });
    afterAll(async () => {
      await stores?.close();
      await database?.drop();
    });
    describe("the store port", () => storeConformance({ name: server, make: (now) => stores.make(now) }));
  });
}
