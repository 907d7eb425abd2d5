import type { Store } from "../../packages/pawl/src/store/port.js";
import { openDb, statement } from "../../packages/pawl/src/store/postgres/db.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { migrate } from "../../packages/pawl/src/store/postgres/migrate.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";

const TABLES = statement(
  "test_tables",
  `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = 'pawl' and c.relkind in ('r', 'p') and not c.relispartition and c.relname not in ('migration', 'span')`,
);
const SPAN = statement("test_span", "select floor_ms, ceiling_ms from pawl.span");

/**
 * Hands out the same Postgres store again and again, emptied, each time under the clock it is asked for. Rows are
 * deleted (cheaper than truncating); a test that moved the partitions gets the schema made anew.
 */
export function emptiedStores(driver: Driver): { make(now: () => number): Promise<Store>; close(): Promise<void> } {
  const shared: Driver = { ...driver, close: async () => {} };
  let last: Store | undefined;
  let span: string | undefined;

  async function empty(now: () => number): Promise<void> {
    const db = openDb(shared, { place: "test", now });
    const found = span === undefined ? undefined : JSON.stringify(await db.query(SPAN));
    if (found === undefined || found !== span) {
      await driver.script("drop schema if exists pawl cascade");
      await migrate(db);
      span = JSON.stringify(await db.query(SPAN));
      return;
    }
    const tables = await db.query<{ name: string }>(TABLES);
    await driver.script(tables.map(({ name }) => `delete from pawl.${name};`).join("\n"));
  }

  return {
    async make(now) {
      await last?.close();
      await empty(now);
      last = await finish(
        shared,
        { engine: driver.kind === "pglite" ? "pglite" : "postgres", place: "test", durability: "process" },
        { now, migrate: false },
      );
      return last;
    },
    async close() {
      await last?.close();
      await driver.close();
    },
  };
}
