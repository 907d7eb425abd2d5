import { afterAll, beforeAll, describe } from "vitest";
import { memoryStore } from "../../packages/pawl/src/store/memory/index.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { openPglite } from "../../packages/pawl/src/store/postgres/drivers/pglite.js";
import { again, onceOrAgain } from "../support/again.js";
import { emptiedStores } from "../support/servers/emptied-stores.js";
import { type Database, describeOn, testClockDatabase } from "../support/servers/servers.js";
import { explainReasonTests } from "./explain-reasons.js";

describe("why a job is not running, in memory", () => explainReasonTests(async (now) => memoryStore({ now })));

if (again())
  describe("why a job is not running, on PGlite", () => {
    let stores: ReturnType<typeof emptiedStores>;
    beforeAll(async () => {
      stores = emptiedStores(await openPglite());
    });
    afterAll(() => stores?.close());
    explainReasonTests((now) => stores.make(now));
  });

for (const server of onceOrAgain(["embedded18", "debian15"] as const)) {
  describeOn(server, () => {
    let database: Database;
    let stores: ReturnType<typeof emptiedStores>;
    beforeAll(async () => {
      database = await testClockDatabase(server);
      stores = emptiedStores(pgDriver({ config: { ...database.config, max: 4 }, prepare: "auto", statementTimeout: 30_000 }));
    });
    afterAll(async () => {
      await stores?.close();
      await database?.drop();
    });
    describe("why a job is not running", () => explainReasonTests((now) => stores.make(now)));
  });
}
