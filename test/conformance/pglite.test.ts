import { afterAll, beforeAll, describe } from "vitest";
import { storeConformance } from "../../packages/pawl/src/store/conformance/index.js";
import { openPglite } from "../../packages/pawl/src/store/postgres/drivers/pglite.js";
import { emptiedStores } from "../support/emptied-store.js";

describe("on PGlite", () => {
  let stores: ReturnType<typeof emptiedStores>;
  beforeAll(async () => {
    stores = emptiedStores(await openPglite(), { from: 1, most: 3 });
  });
  afterAll(() => stores?.close());
  storeConformance({ name: "pglite", make: (now) => stores.make(now) });
});
