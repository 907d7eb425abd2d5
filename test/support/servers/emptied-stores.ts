import type { Store } from "../../../packages/pawl/src/store/port/index.js";
import { openDb, statement } from "../../../packages/pawl/src/store/postgres/connection/db.js";
import { rolesScript } from "../../../packages/pawl/src/store/postgres/connection/roles.js";
import type { Driver } from "../../../packages/pawl/src/store/postgres/drivers/driver.js";
import { postgresStore } from "../../../packages/pawl/src/store/postgres/index.js";
import { finish } from "../../../packages/pawl/src/store/postgres/open.js";
import { migrate } from "../../../packages/pawl/src/store/postgres/schema/migrate.js";
import { existingMonths, monthOf, PARTITIONED, partitionStatements, startOf } from "../../../packages/pawl/src/store/postgres/schema/partitions.js";

/**
 * Empties every table and answers with the span of the partitions, in one call whose plans the server keeps. Deleting
 * is cheaper than truncating where there are few rows. As a replica, whose triggers are silent: the audit log refuses it.
 */
const MAKE_EMPTY = `
do $make$
declare tables text;
begin
  select string_agg(format('delete from pawl.%I;', c.relname), ' ') into tables
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'pawl' and c.relkind in ('r', 'p') and not c.relispartition and c.relname not in ('migration', 'partition_range');
  execute format('create function pawl.test_empty() returns text language plpgsql set session_replication_role = replica as $empty$
    begin %s return (select floor || '' '' || floor_ms || '' '' || ceiling_ms from pawl.partition_range); end $empty$', tables);
end $make$`;
const EMPTY = statement("test_empty", "select pawl.test_empty() as span");

/**
 * Hands out the same Postgres store again and again, emptied, each time under the clock it is asked for. Partitions that
 * a test moved are put back. With a few `jobsPerRow`, small batches make several rows.
 */
export function emptiedStores(
  driver: Driver,
  jobsPerRow?: number,
  /** with database roles, so that what is read for a tenant is read as the tenant's role */
  asTenant = false,
): { make(now: () => number): Promise<Store>; close(): Promise<void> } {
  const shared: Driver = { ...driver, close: async () => {} };
  const place = "test";
  let last: Store | undefined;
  let start: { readonly span: string; readonly months: readonly string[] } | undefined;

  async function emptied(now: () => number): Promise<string> {
    const [found] = await openDb(shared, { location: place, now }).query<{ span: string }>(EMPTY);
    return found?.span ?? "";
  }

  /** A tenth of what a schema made anew costs. */
  async function putBack(now: () => number, { span, months }: NonNullable<typeof start>): Promise<void> {
    const there = await existingMonths(openDb(shared, { location: place, now }));
    const extra = there.filter((name) => !months.includes(name)).flatMap((name) => PARTITIONED.map((table) => `drop table pawl.${table}_${name}`));
    const missing = months.filter((name) => !there.includes(name)).flatMap((name) => partitionStatements(monthOf(startOf(name))));
    const [floor, floorMs, ceilingMs] = span.split(" ");
    const moved = `update pawl.partition_range set floor = '${floor}', floor_ms = ${floorMs}, ceiling_ms = ${ceilingMs}`;
    await driver.script([...extra, ...missing, moved].join(";\n"));
  }

  function storeOf(engine: Store["engine"], now: () => number): Store {
    const db = openDb(shared, { location: place, now });
    if (asTenant) db.tenantRole = { complete: true };
    return postgresStore({
      db,
      engine,
      self: place,
      ...(jobsPerRow === undefined ? {} : { jobsPerRow }),
    });
  }

  async function anew(now: () => number): Promise<Store> {
    await migrate(openDb(shared, { location: place, now }));
    if (asTenant) await driver.script(rolesScript());
    await driver.script(MAKE_EMPTY);
    start = { span: await emptied(now), months: await existingMonths(openDb(shared, { location: place, now })) };
    const engine = driver.kind === "pglite" ? "pglite" : "postgres";
    const made = await finish(shared, { engine, place, durability: "process" }, { now, migrate: false });
    await made.close();
    return storeOf(made.engine, now);
  }

  return {
    async make(now) {
      const { engine } = last ?? {};
      await last?.close();
      if (engine === undefined || start === undefined) {
        last = await anew(now);
        return last;
      }
      if ((await emptied(now)) !== start.span) await putBack(now, start);
      last = storeOf(engine, now);
      return last;
    },
    async close() {
      await last?.close();
      await driver.close();
    },
  };
}
