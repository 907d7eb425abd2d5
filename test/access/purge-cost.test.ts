import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { idSuffixSource } from "../../packages/pawl/src/core/jobs/id.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

const JOBS = 40_000;
/** of a step, as a purge makes them */
const STEP = 500;
const idSuffix = idSuffixSource((size) => randomBytes(size));

const READ = `select
  (select seq_scan::int from pg_stat_user_tables where schemaname = 'pawl' and relname = 'ready') as scans,
  (select sum(idx_tup_fetch)::int from pg_stat_user_tables where schemaname = 'pawl' and relname ~ '^job_') as jobs`;

describeOn("embedded18", () => {
  test("a step of a purge reads neither all ready rows nor more jobs than it needs, however many there are", { timeout: 120_000 }, async () => {
    await using database = await migratedDatabase();
    const driver = pgDriver({ config: { ...database.config, max: 1 }, prepare: "auto", statementTimeout: 60_000 });
    const store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const client = new pg.Client(database.config);
    await client.connect();
    const read = async () => {
      // Its only connection tells what it read when it is asked for, not a second later.
      await driver.script("select pg_stat_force_next_flush()");
      await driver.script("select 1");
      return (await client.query<{ scans: number; jobs: number }>(READ)).rows[0] as { scans: number; jobs: number };
    };
    try {
      for (let left = JOBS; left > 0; left -= 2 * STEP)
        for (const tenant of ["gone", "stays"]) {
          const lane = { queue: "default", priority: 5, tenant, task: "work" } as const;
          await store.jobs.enqueue(Array.from({ length: STEP }, () => ({ idSuffix: idSuffix(lane.tenant), lane, input: "1", options: undefined })));
        }
      await client.query("vacuum analyze");
      const before = await read();
      expect(await store.tenants.purgeJobs("gone", { limit: STEP })).toMatchObject({ deleted: STEP, running: 0 });
      const after = await read();
      expect(after.scans - before.scans).toBe(0);
      // Half of all are the tenant's: two are looked at for each that goes, and it is then fetched a few times more.
      expect(after.jobs - before.jobs).toBeLessThan(8 * STEP);
    } finally {
      await store.close();
      await client.end();
    }
  });
});
