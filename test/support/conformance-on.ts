import { afterAll, beforeAll, describe } from "vitest";
import { storeConformance, type Topic } from "../../packages/pawl/src/store/conformance/index.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { openPglite } from "../../packages/pawl/src/store/postgres/drivers/pglite.js";
import { emptiedStores } from "./emptied-store.js";
import { type Database, describeOn, PLANNED_AS_WRITTEN, plannedOnce, type ServerName, testClockDatabase } from "./servers.js";

/** What a store cannot be without: the suite for where all of it runs elsewhere. */
export const HEART: readonly Topic[] = ["enqueue", "claim", "settle", "renew and reap"];

/** The suite on one server. Each has a file of its own, so that they run side by side. */
export function conformanceOn(server: ServerName, jobsPerRow?: number, topics?: readonly Topic[], walled = false): void {
  describeOn(server, () => {
    let database: Database;
    let stores: ReturnType<typeof emptiedStores>;
    beforeAll(async () => {
      database = await testClockDatabase(server, plannedOnce(server));
      stores = emptiedStores(
        pgDriver({ config: { ...database.config, max: 4 }, listenConfig: database.directConfig, prepare: "auto", statementTimeout: 30_000 }),
        jobsPerRow,
        walled,
      );
    });
    afterAll(async () => {
      await stores?.close();
      await database?.drop();
    });
    describe(walled ? "the store port, behind the wall" : "the store port", () =>
      storeConformance({ name: server, make: (now) => stores.make(now) }, topics),
    );
  });
}

/** The suite on PGlite, in memory. */
export function conformanceOnPglite(topics?: readonly Topic[]): void {
  describe("on PGlite", () => {
    let stores: ReturnType<typeof emptiedStores>;
    beforeAll(async () => {
      const driver = await openPglite();
      for (const [setting, value] of Object.entries(PLANNED_AS_WRITTEN)) await driver.script(`set ${setting} = ${value}`);
      stores = emptiedStores(driver, 3);
    });
    afterAll(() => stores?.close());
    storeConformance({ name: "pglite", make: (now) => stores.make(now) }, topics);
  });
}
