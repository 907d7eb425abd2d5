import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Db, openDb } from "../../packages/pawl/src/store/postgres/db.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { checkSchema, migrate, readMigrations, rollback, schemaOf } from "../../packages/pawl/src/store/postgres/migrate.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { churn } from "../support/churn.js";
import { type Database, describeOn, freshDatabase } from "../support/servers.js";

const SHIPPED = fileURLToPath(new URL("../../packages/pawl/src/store/postgres/migrations/", import.meta.url));

/** Everything there is in the schema, in words: tables, columns, indexes, constraints, sequences, views. */
const CATALOGUE = `
  select 'column' as what, format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) as words from information_schema.columns where table_schema = 'pawl'
  union all select 'index', indexdef from pg_indexes where schemaname = 'pawl'
  union all select 'constraint', format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) from pg_constraint where connamespace = 'pawl'::regnamespace
  union all select 'relation', format('%s %s', relname, relkind) from pg_class where relnamespace = 'pawl'::regnamespace
  order by 1, 2`;

describeOn("embedded18", () => {
  let folder: string;
  let database: Database;
  let db: Db;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "pawl-migrations-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(async () => {
    rmSync(folder, { recursive: true, force: true });
    cpSync(SHIPPED, folder, { recursive: true });
    database = await freshDatabase();
    db = connect();
  });
  afterEach(async () => {
    await db.driver.close();
    await database.drop();
  });

  function connect(): Db {
    return openDb(pgDriver({ config: { ...database.config, max: 4 }, prepare: "auto", statementTimeout: 30_000 }), { place: "test" });
  }
  function withNext(sql: string, down = "select 1;"): ReturnType<typeof readMigrations> {
    const number = readMigrations().length + 1;
    writeFileSync(join(folder, `${String(number).padStart(4, "0")}_next.sql`), sql);
    writeFileSync(join(folder, `${String(number).padStart(4, "0")}_next.down.sql`), down);
    return readMigrations(pathToFileURL(`${folder}/`));
  }
  async function catalogue(): Promise<unknown> {
    const client = new pg.Client(database.config);
    await client.connect();
    try {
      return (await client.query(CATALOGUE)).rows;
    } finally {
      await client.end();
    }
  }

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
    expect(new Set(schemas.map(({ number }) => number))).toEqual(new Set([readMigrations().length]));
    await Promise.all(others.map((one) => one.driver.close()));
  });

  test("a database without a schema is refused where migrating is switched off", async () => {
    await expect(checkSchema(db)).rejects.toMatchObject({ code: "schema_missing" });
  });

  test("an older binary works on a schema one step ahead", async () => {
    await migrate(db, withNext("alter table pawl.job add column note text;"));
    await expect(migrate(db)).resolves.toMatchObject({ number: readMigrations().length + 1 });
    const store = await finish(connect().driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const stop = churn(store);
    expect((await stop()).settled).toBeGreaterThan(0);
    await store.close();
  });

  test("an older binary is refused where the next step would have it corrupt data", async () => {
    const next = readMigrations().length + 1;
    await migrate(db, withNext(`-- oldest: ${next}\nalter table pawl.job add column note text;`));
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
    const stop = churn(store);
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
