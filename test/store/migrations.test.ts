import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Store } from "../../packages/pawl/src/store/port.js";
import { type Db, openDb } from "../../packages/pawl/src/store/postgres/db.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { checkSchema, migrate, readMigrations, rollback, schemaOf } from "../../packages/pawl/src/store/postgres/migrate.js";
import { finish, openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { churn } from "../support/churn.js";
import { eventually } from "../support/eventually.js";
import { type Database, describeOn, freshDatabase } from "../support/servers.js";

const SHIPPED = fileURLToPath(new URL("../../packages/pawl/src/store/postgres/migrations/", import.meta.url));

/** the newest schema there is */
const SHIPS = readMigrations().at(-1)?.number ?? 0;

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
  function withNext(sql: string, down = "select 1;", batch?: string): ReturnType<typeof readMigrations> {
    const stem = join(folder, `${String(SHIPS + 1).padStart(4, "0")}_next`);
    writeFileSync(`${stem}.sql`, sql);
    writeFileSync(`${stem}.down.sql`, down);
    if (batch !== undefined) writeFileSync(`${stem}.batch.sql`, batch);
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
    const stop = churn(store);
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

  test("a migration that moves rows does so in small batches, and keeps nobody waiting for longer than 100 ms", async () => {
    const store = await finish(connect().driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const moving = await withRows(store, 8_000);
    const stop = churn(store);
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
      place: "test",
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

  test("what a migration waits for may take longer than a statement's time-out, here and on the server", async () => {
    const client = new pg.Client(database.config);
    await client.connect();
    await client.query(`alter database ${database.name} set statement_timeout = '100ms'`);
    await client.query("select pg_advisory_lock(hashtext('pawl.migrations'))");
    const opening = openPostgres({ url: database.url }, { statementTimeout: 200, patience: 0 });
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
    const client = new pg.Client(database.config);
    await client.connect();
    await client.query(
      `insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input)
       select now(), now(), overlay(overlay(gen_random_uuid()::text placing substr(f.floor::text, 1, 13) from 1) placing '7' from 15)::uuid, 5, 'default', 'acme', 'old', '1'
       from generate_series(1, $1) cross join pawl.span f`,
      [count],
    );
    await client.end();
    return withNext(
      "alter table pawl.job add column times int;",
      "alter table pawl.job drop column times;",
      `with due as materialized (select id from pawl.job where task = 'old' and ($1::uuid is null or id > $1::uuid) order by id limit $2),
       moved as (update pawl.job j set times = coalesce(times, 0) + 1 from due where j.id = due.id returning j.id)
       select count(*)::int as moved, max(id::text) as cursor from moved`,
    );
  }
  /** How often the rows were moved, as distinct numbers. */
  async function times(where = "true"): Promise<readonly unknown[]> {
    const client = new pg.Client(database.config);
    await client.connect();
    const { rows } = await client.query<[number | null]>({ text: `select distinct times from pawl.job where ${where}`, rowMode: "array" });
    await client.end();
    return rows.map(([one]) => one);
  }
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
