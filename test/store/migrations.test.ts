import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Store } from "../../packages/pawl/src/store/port/index.js";
import { type Db, openDb } from "../../packages/pawl/src/store/postgres/connection/db.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish, openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { checkSchema, migrate, type readMigrations, rollback, schemaOf } from "../../packages/pawl/src/store/postgres/schema/migrate.js";
import { eventually } from "../support/eventually.js";
import { startLoad } from "../support/fixtures/constant-load.js";
import { addOldJobs, catalogueOf, MOVING, SHIPS, timesMoved, withNext as withNextIn } from "../support/fixtures/next-migration.js";
import { type Database, describeOn, freshDatabase } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  let folder: string;
  let database: Database;
  let db: Db;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "pawl-migrations-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(async () => {
    database = await freshDatabase();
    db = connect();
  });
  afterEach(async () => {
    await db.driver.close();
    await database.drop();
  });

  function connect(): Db {
    return openDb(pgDriver({ config: { ...database.config, max: 4 }, prepare: "auto", statementTimeout: 30_000 }), { location: "test" });
  }
  function withNext(up: string): ReturnType<typeof readMigrations> {
    return withNextIn(folder, { up });
  }
  async function onClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client(database.config);
    await client.connect();
    return work(client).finally(() => client.end());
  }
  const catalogue = () => onClient(catalogueOf);

  test("every migration can be taken back and applied again, with the same result", async () => {
    await migrate(db);
    const before = await catalogue();
    await rollback(db, 0);
    expect(await schemaOf(db)).toEqual({ number: 0, oldest: 0 });
    await migrate(db);
    expect(await catalogue()).toEqual(before);
  });

  test("many processes may migrate at once", async () => {
    const others = Array.from({ length: 5 }, connect);
    const schemas = await Promise.all(others.map((one) => migrate(one)));
    expect(new Set(schemas.map(({ number }) => number))).toEqual(new Set([SHIPS]));
    await Promise.all(others.map((one) => one.driver.close()));
  });

  test("a database without a schema is refused where migrating is switched off", async () => {
    await expect(checkSchema(db)).rejects.toMatchObject({ code: "schema_missing" });
  });

  test("an older binary works on a schema one step ahead", async () => {
    await migrate(db, withNext("alter table pawl.job add column note text;"));
    await expect(migrate(db)).resolves.toMatchObject({ number: SHIPS + 1 });
    const store = await finish(connect().driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const stop = startLoad(store);
    expect((await stop()).settled).toBeGreaterThan(0);
    await store.close();
  });

  test("an older binary is refused where the next step would have it corrupt data", async () => {
    await migrate(db, withNext(`-- oldest: ${SHIPS + 1}\nalter table pawl.job add column note text;`));
    await expect(migrate(db)).rejects.toMatchObject({ code: "schema_newer" });
    await expect(checkSchema(db)).rejects.toMatchObject({ code: "schema_newer" });
  });

  test("a step that fails leaves nothing behind, and the one before stands", async () => {
    await migrate(db);
    const before = await catalogue();
    await expect(migrate(db, withNext("alter table pawl.job add column note text;\nalter table pawl.nothing add column x int;"))).rejects.toThrow(
      /nothing/,
    );
    expect(await catalogue()).toEqual(before);
  });

  test("the next migration under load keeps nobody waiting for a hot table longer than 100 ms", async () => {
    const store = await finish(connect().driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const stop = startLoad(store);
    const watch = await longestLockWait(database);
    await migrate(
      db,
      withNext(
        "alter table pawl.job add column note text;\nalter table pawl.ready add column hint int;\nalter table pawl.lease add column note text;",
      ),
    );
    const { settled } = await stop();
    expect(settled).toBeGreaterThan(0);
    expect(await watch()).toBeLessThan(100);
    await store.close();
  });

  test("a migration that moves rows does so in small batches, and keeps nobody waiting for longer than 100 ms", { timeout: 120_000 }, async () => {
    const store = await finish(connect().driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const moving = await withRows(store, 8_000);
    const stop = startLoad(store);
    const watch = await longestLockWait(database);
    const moved: number[] = [];
    await migrate(db, moving, (progress) => moved.push(progress.moved));
    expect((await stop()).settled).toBeGreaterThan(0);
    expect(await watch()).toBeLessThan(100);
    expect(moved.length, "batches").toBeGreaterThan(3);
    expect(moved).toEqual([...moved].sort((a, b) => a - b));
    expect(await times("task = 'old'")).toEqual([1]);
    expect(await schemaOf(db)).toMatchObject({ number: SHIPS + 1 });
    await store.close();
  });

  test("one that is cut off goes on where it was, and no row is moved twice", async () => {
    const moving = await withRows(db, 3_000);
    const reached: number[] = [];
    const cutOff = migrate(db, moving, ({ moved }) => {
      reached.push(moved);
      if (moved >= 1_000) throw new Error("as if it were killed");
    });
    await expect(cutOff).rejects.toThrow("as if it were killed");
    await expect(checkSchema(db, moving), "it is not done").rejects.toMatchObject({ code: "schema_missing" });

    const next = connect();
    const after: number[] = [];
    await migrate(next, moving, ({ moved }) => after.push(moved));
    expect(after[0]).toBeGreaterThan(reached.at(-1) as number);
    expect(await times()).toEqual([1]);
    await expect(checkSchema(next, moving)).resolves.toMatchObject({ number: SHIPS + 1 });
    await next.driver.close();
  });

  test("one whose connection is ended in the middle of a batch leaves that batch to the next", async () => {
    const moving = await withRows(db, 3_000);
    const lost = openDb(pgDriver({ config: { ...database.config, application_name: "doomed", max: 1 }, prepare: "auto", statementTimeout: 30_000 }), {
      location: "test",
    });
    const slowly = moving.map((one) =>
      one.batch === undefined ? one : { ...one, batch: one.batch.replace("count(*)", "pg_sleep(30)::text || count(*)") },
    );
    const client = new pg.Client(database.config);
    await client.connect();
    const ended = migrate(lost, slowly).then(
      () => "done",
      () => "cut off",
    );
    await eventually("the batch is under way, and ended", async () => {
      const { rowCount } = await client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'doomed' and wait_event = 'PgSleep'",
      );
      return rowCount !== null && rowCount > 0;
    });
    expect(await ended).toBe("cut off");
    await lost.driver.close();
    await migrate(db, moving);
    expect(await times()).toEqual([1]);
    await client.end();
  });

  test("several processes share the batches of one", async () => {
    const moving = await withRows(db, 3_000);
    const others = Array.from({ length: 3 }, connect);
    await Promise.all([db, ...others].map((one) => migrate(one, moving)));
    expect(await times()).toEqual([1]);
    await Promise.all(others.map((one) => one.driver.close()));
  });

  test("one can be taken back half-way", async () => {
    await migrate(db);
    const before = await catalogue();
    const moving = await withRows(db, 2_000);
    const halfway = migrate(db, moving, () => {
      throw new Error("half-way");
    });
    await expect(halfway).rejects.toThrow("half-way");
    await rollback(db, SHIPS, moving);
    expect(await catalogue()).toEqual(before);
    await expect(checkSchema(db)).resolves.toMatchObject({ number: SHIPS });
    await migrate(db, moving);
    expect(await times()).toEqual([1]);
  });

  test("the next migration goes forward and back on a store with data, which is worked on all the while", async () => {
    const store = await finish(connect().driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const moving = await withRows(store, 1_000);
    const before = await catalogue();
    const stop = startLoad(store);
    for (let round = 1; round <= 2; round++) {
      await migrate(db, moving);
      expect(await times("task = 'old'"), `round ${round}`).toEqual([1]);
      await rollback(db, SHIPS, moving);
      expect(await catalogue()).toEqual(before);
    }
    expect((await stop()).settled).toBeGreaterThan(0);
    await store.close();
  });

  test("a store that an earlier edit of the first migration made is refused, and left as it is", async () => {
    await migrate(db);
    await onClient((client) => client.query("update pawl.migration set digest = 'earlier'"));
    for (const refused of [() => migrate(db), () => checkSchema(db), () => migrate(db, withNext("alter table pawl.job add column note text;"))])
      await expect(refused()).rejects.toMatchObject({ code: "schema_unreleased", message: expect.stringContaining("drop schema pawl cascade") });
    expect(await schemaOf(db)).toMatchObject({ number: SHIPS });
  });

  test("so is one from before there were digests", async () => {
    await onClient((client) =>
      client.query(
        "create schema pawl; create table pawl.migration (number int primary key, name text not null, oldest int not null, applied_at timestamptz not null default now()); insert into pawl.migration values (1, 'engine', 0), (33, 'history', 33)",
      ),
    );
    await expect(migrate(db)).rejects.toMatchObject({ code: "schema_unreleased" });
    await expect(openPostgres({ url: database.url }, {})).rejects.toMatchObject({ code: "schema_unreleased" });
  });

  test("what a migration waits for may take longer than a statement's time-out, here and on the server", async () => {
    const client = new pg.Client(database.config);
    await client.connect();
    await client.query(`alter database ${database.name} set statement_timeout = '100ms'`);
    await client.query("select pg_advisory_lock(hashtext('pawl.migrations'))");
    const opening = openPostgres({ url: database.url }, { statementTimeout: 200, startupWait: 0 });
    const waits =
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '1 second'";
    await eventually("it has waited for a second", async () => (await client.query(waits)).rowCount === 1);
    await client.query("select pg_advisory_unlock_all()");
    const store = await opening;
    expect(store.engine.schema).toBe(SHIPS);
    await store.close();
    await client.end();
  });

  /** Jobs that are there before, and a next migration that has something to do with each of them. */
  async function withRows(on: Db | Store, count: number): Promise<ReturnType<typeof readMigrations>> {
    if ("driver" in on) await migrate(on);
    await onClient((client) => addOldJobs(client, count));
    return withNextIn(folder, MOVING);
  }
  const times = (where?: string) => onClient((client) => timesMoved(client, where));
});

/** Looks at who waits for a lock, over and over, and answers the longest wait seen, in ms of the server's clock. */
async function longestLockWait(database: Database): Promise<() => Promise<number>> {
  const client = new pg.Client(database.config);
  await client.connect();
  let over = false;
  let longest = 0;
  const looking = (async () => {
    while (!over) {
      const { rows } = await client.query<{ ms: number | null }>(
        "select max(extract(epoch from clock_timestamp() - waitstart) * 1000)::float8 as ms from pg_locks where not granted and locktype = 'relation'",
      );
      longest = Math.max(longest, rows[0]?.ms ?? 0);
    }
  })();
  return async () => {
    over = true;
    await looking;
    await client.end();
    return longest;
  };
}
