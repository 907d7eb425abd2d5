import { pawlError } from "../../core/error.js";
import type { Scope } from "../port.js";
import { plainArray } from "./arrays.js";
import { type Db, statement, type Wall } from "./db.js";
import type { Queryable, Statement } from "./drivers/driver.js";
import { TENANT_SETTING, tenantRole, WALLED } from "./roles.js";

/**
 * The wall between tenants, behind the conditions of the statements: what is read for one tenant is read as a role that
 * sees the rows of the tenant its transaction names, and without a name none (roles.ts). A statement that forgot its
 * condition finds nothing of others. Where the database has no such role, the conditions stand alone.
 */
const ENTER = statement(
  "enter_wall",
  "select current_setting('role') as before, set_config('role', $1, true) as role, set_config($2, $3, true) as tenant",
);
const LEAVE = statement("leave_wall", "select set_config('role', $1, true) as role");

/** Reads what is the scope's: of one tenant behind the wall, on one connection; everyone's, each statement by itself. */
export async function readFor<T>(db: Db, scope: Scope, read: (on: Queryable) => Promise<T>): Promise<T> {
  if (db.wall === undefined || scope === "everyone") return read(db);
  return db.reading(async (tx) => read((await enter(db, tx, scope.tenant)).on));
}

/** The same in a transaction that goes on as it was. */
export async function readInside<T>(db: Db, tx: Queryable, scope: Scope, read: (on: Queryable) => Promise<T>): Promise<T> {
  if (db.wall === undefined || scope === "everyone") return read(tx);
  const { on, before } = await enter(db, tx, scope.tenant);
  const seen = await read(on);
  await tx.query(LEAVE, [before]);
  return seen;
}

async function enter(db: Db, tx: Queryable, tenant: string): Promise<{ readonly on: Queryable; readonly before: string }> {
  const role = tenantRole(db.schema);
  // Half a wall is none, and nobody would see it. It may have been mended since.
  if (db.wall?.whole !== true) db.wall = (await findWall(tx, db.schema)) ?? { whole: false };
  if (!db.wall.whole) throw pawlError("roles_outdated", { role });
  const [entered] = await tx.query<{ before: string }>(ENTER, [role, TENANT_SETTING, tenant]);
  return { on: { query: (asked, values) => tx.query<never>(walled(asked), values) }, before: entered?.before ?? "none" };
}

const known = new Map<string, Statement>();

/** By another name: a prepared statement that is used as two roles in turn is planned anew each time. */
function walled(asked: Statement): Statement {
  let own = known.get(asked.name);
  if (own === undefined) {
    own = { ...asked, name: `${asked.name}_walled` };
    known.set(asked.name, own);
  }
  return own;
}

/** Tables that are walled, of those that should be; none either where who logs in may not act as that role. */
const FIND = statement(
  "find_wall",
  `select count(*)::int as tables from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
   join pg_roles r on r.oid = any(p.polroles)
   where n.nspname = $1 and c.relname = any($2::text[]) and p.polname = 'own' and r.rolname = $3 and pg_has_role(session_user, r.oid, 'member')`,
);

/** What this database has of a wall. */
export async function findWall(on: Queryable, schema: string): Promise<Wall | undefined> {
  const [found] = await on.query<{ tables: number }>(FIND, [schema, plainArray(WALLED), tenantRole(schema)]);
  const tables = found?.tables ?? 0;
  return tables === 0 ? undefined : { whole: tables === WALLED.length };
}
