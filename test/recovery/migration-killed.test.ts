import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openDb } from "../../packages/pawl/src/store/postgres/connection/db.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { migrate, type readMigrations } from "../../packages/pawl/src/store/postgres/schema/migrate.js";
import { onceOrAgain } from "../support/again.js";
import { addOldJobs, catalogueOf, MOVING, timesMoved, withNext } from "../support/fixtures/next-migration.js";
import { type KillPoint, killedAt } from "../support/processes/maintenance-process.js";
import { childScript } from "../support/processes/worker-process.js";
import { type Database, describeOn, freshDatabase } from "../support/servers/servers.js";

interface Point extends KillPoint {
  readonly moment: string;
}

const STEPS: readonly Point[] = [
  { moment: "in the middle of the first step", at: /create table pawl\.lease/, when: "after" },
  { moment: "with a step done, before its commit", at: /pawl_record_migration/, nth: 2, when: "after" },
  { moment: "with a step committed, before it knows", after: /pawl_record_migration/, at: /commit\0/, when: "after" },
  { moment: "between the making of a month and its attaching", at: /attach partition pawl\.log_/, nth: 2, when: "before" },
];

const BATCHES: readonly Point[] = [
  { moment: "when its rows are moved and that is not noted", at: /pawl_advance_backfill/, nth: 2, when: "before" },
  { moment: "when that is noted, before the commit", at: /pawl_advance_backfill/, nth: 2, when: "after" },
  { moment: "when it is committed, before it knows", after: /pawl_advance_backfill/, at: /commit\0/, when: "after" },
  { moment: "at the very end, before the commit", at: /pawl_finish_backfill/, when: "after" },
];

describeOn("embedded18", () => {
  let folder: string;
  let moving: ReturnType<typeof readMigrations>;
  /** the schema as it is where nobody was killed */
  let right: Awaited<ReturnType<typeof catalogueOf>>;
  let database: Database;
  let client: pg.Client;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "pawl-migrations-"));
    moving = withNext(folder, MOVING);
    await makeDatabase();
    await migrateTo(moving);
    right = await catalogueOf(client);
    await dropDatabase();
    await childScript("maintenance-child");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(makeDatabase);
  afterEach(dropDatabase);

  async function makeDatabase(): Promise<void> {
    database = await freshDatabase();
    client = new pg.Client(database.config);
    await client.connect();
  }
  async function dropDatabase(): Promise<void> {
    await client.end();
    await database.drop();
  }

  async function migrateTo(migrations: ReturnType<typeof readMigrations>): Promise<void> {
    const driver = pgDriver({ config: { ...database.config, max: 1 }, prepare: "auto", statementTimeout: 30_000 });
    await migrate(openDb(driver, { location: "test" }), migrations).finally(() => driver.close());
  }

  describe("a process that migrates, killed with -9", () => {
    for (const { moment, ...point } of onceOrAgain(STEPS)) {
      it(`${moment}: the next one finishes it, and the schema is right`, async () => {
        await killedAt(point, database, { migrations: folder });
        await migrateTo(moving);
        expect(await catalogueOf(client)).toEqual(right);
      });
    }
  });

  describe("a process that moves rows in batches, killed with -9 in one of them", () => {
    for (const { moment, ...point } of onceOrAgain(BATCHES)) {
      it(`${moment}: the next one goes on there, and no row is moved twice or left out`, async () => {
        await migrateTo(moving.slice(0, -1));
        await addOldJobs(client, 1_000);
        await killedAt(point, database, { migrations: folder });
        await migrateTo(moving);
        expect(await timesMoved(client)).toEqual([1]);
        expect((await client.query("select from pawl.backfill")).rowCount, "steps not done").toBe(0);
        expect(await catalogueOf(client)).toEqual(right);
      });
    }
  });
});
