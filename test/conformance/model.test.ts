import { afterAll, beforeAll, test } from "vitest";
import { limitStories, scheduleStories } from "../../packages/pawl/conformance/commands.js";
import { runModel } from "../../packages/pawl/conformance/model.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { again } from "../support/again.js";
import { emptiedStores } from "../support/servers/emptied-stores.js";
import { type Database, describeOn, plannedOnce, testClockDatabase } from "../support/servers/servers.js";

/** More runs, or one that failed: MODEL_RUNS=1000, MODEL_SEED=…, MODEL_PATH=… In CI always the same: a change is judged by itself. */
const { CI, MODEL_RUNS = again() ? "12" : "4", MODEL_SEED = CI ? "20261115" : undefined, MODEL_PATH } = process.env;

describeOn("embedded18", () => {
  let database: Database;
  let stores: ReturnType<typeof emptiedStores>;
  beforeAll(async () => {
    database = await testClockDatabase("embedded18", plannedOnce("embedded18"));
    stores = emptiedStores(pgDriver({ config: { ...database.config, max: 2 }, prepare: "auto", statementTimeout: 30_000 }), 3);
  });
  afterAll(async () => {
    await stores?.close();
    await database?.drop();
  });

  const repeated = {
    ...(MODEL_SEED === undefined ? {} : { seed: Number(MODEL_SEED) }),
    ...(MODEL_PATH === undefined ? {} : { path: MODEL_PATH }),
  };

  test("random sequences of commands do the same to Postgres and to the memory store", { timeout: 600_000 }, async () => {
    await runModel({ make: (now) => stores.make(now), runs: Number(MODEL_RUNS), ...repeated });
  });

  test("and so do random stories of a schedule and its jobs", { timeout: 600_000 }, async () => {
    await runModel({ make: (now) => stores.make(now), runs: Number(MODEL_RUNS), stories: scheduleStories, ...repeated });
  });

  test("and so do random stories of jobs at the keys of limits", { timeout: 600_000 }, async () => {
    await runModel({ make: (now) => stores.make(now), runs: Number(MODEL_RUNS), stories: limitStories, ...repeated });
  });
});
