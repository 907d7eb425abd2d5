import { afterAll, beforeAll, describe } from "vitest";
import { storeConformance } from "../../packages/pawl/src/store/conformance/index.js";
import { openPglite } from "../../packages/pawl/src/store/postgres/drivers/pglite.js";
import { emptiedStores } from "../support/emptied-store.js";
import { PLANNED_AS_WRITTEN } from "../support/servers.js";

describe("on PGlite", () => {
  let stores: ReturnType<typeof emptiedStores>;
  beforeAll(async () => {
    const driver = await openPglite();
    for (const [setting, value] of Object.entries(PLANNED_AS_WRITTEN)) await driver.script(`set ${setting} = ${value}`);
    stores = emptiedStores(driver, { from: 1, most: 3 });
  });
  afterAll(() => stores?.close());
  storeConformance({ name: "pglite", make: (now) => stores.make(now) });
});
