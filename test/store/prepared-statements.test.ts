import { expect, test } from "vitest";
import { statement } from "../../packages/pawl/src/store/postgres/connection/db.js";
import { type PgOptions, pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { describeOn, freshDatabase } from "../support/servers/servers.js";

const HOW = statement(
  "how_planned",
  "select current_setting('plan_cache_mode') as plans, current_setting('enable_seqscan') as scans, current_setting('jit') as jit",
);
const HOT = { ...HOW, hot: "claim" } as const;
const AS_EVER = expect.objectContaining({ plans: "auto", scans: "on" });
const FIXED = { plans: "force_generic_plan", scans: "off", jit: "off" };

for (const name of ["embedded18", "debian15"] as const) {
  describeOn(name, () => {
    test("hot statements are planned once and never for the tables of the moment; others, and users' transactions, as the server says", async () => {
      await using database = await freshDatabase(name);
      await using on = opened(database.config);
      expect(await on.query(HOT)).toEqual([FIXED]);
      expect(await on.query(HOW)).toEqual([AS_EVER]);
      expect((await on.transaction((tx) => tx.run(HOW.text))).rows).toEqual([AS_EVER]);
    });

    test("settings of the user's own stay, wherever they were given", async () => {
      await using database = await freshDatabase(name);
      const mine = { ...statement("own_setting", "select current_setting('work_mem') as mine"), hot: "settle" } as const;
      for (const config of [
        { ...database.config, options: "-c work_mem=7MB" },
        { connectionString: `${database.url}${database.url.includes("?") ? "&" : "?"}options=${encodeURIComponent("-c work_mem=7MB")}` },
      ]) {
        await using on = opened(config);
        expect(await on.query(HOT)).toEqual([FIXED]);
        expect(await on.query(mine)).toEqual([{ mine: "7MB" }]);
      }
    });

    test("with few connections there are none apart for them", async () => {
      await using database = await freshDatabase(name);
      await using on = opened({ ...database.config, max: 2 });
      expect(await on.query(HOT)).toEqual([AS_EVER]);
    });
  });
}

describeOn("pgbouncer", () => {
  test("a pooler that takes no settings is given the hot statements as it is given others", async () => {
    await using database = await freshDatabase("pgbouncer");
    await using on = opened(database.config);
    for (let i = 0; i < 3; i++) expect(await on.query(HOT)).toEqual([AS_EVER]);
  });
});

function opened(config: PgOptions["config"]) {
  const driver = pgDriver({ config, prepare: "auto", statementTimeout: 30_000 });
  return { ...driver, [Symbol.asyncDispose]: () => driver.close() };
}
