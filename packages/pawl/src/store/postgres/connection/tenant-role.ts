import { pawlError } from "../../../core/values/error.js";
import type { Scope } from "../../port/index.js";
import type { Queryable, Statement } from "../drivers/driver.js";
import { plainArray } from "./arrays.js";
import { type Db, statement, type TenantRole } from "./db.js";
import { TENANT_SETTING, TENANT_TABLES, tenantRole } from "./roles.js";

/**
 * The tenant role between tenants, behind the conditions of the statements: what is read for one tenant is read as a role that
 * sees the rows of the tenant its transaction names, and without a name none (roles.ts). A statement that forgot its
 * condition finds nothing of others. Where the database has no such role, the conditions stand alone.
 */
const ENTER = statement(
  "enter_tenant_role",
  "select current_setting('role') as before, set_config('role', $1, true) as role, set_config($2, $3, true) as tenant",
);
const LEAVE = statement("leave_tenant_role", "select set_config('role', $1, true) as role");

/** Reads what is the scope's: of one tenant as the tenant's role, on one connection; everyone's, each statement by itself. */
export async function readFor<T>(db: Db, scope: Scope, read: (on: Queryable) => Promise<T>): Promise<T> {
  if (db.tenantRole === undefined || scope === "everyone") return read(db);
  return db.reading(async (tx) => read((await enterTenantRole(db, tx, scope.tenant)).on));
}

/** The same in a transaction that goes on as it was. */
export async function readInside<T>(db: Db, tx: Queryable, scope: Scope, read: (on: Queryable) => Promise<T>): Promise<T> {
  if (db.tenantRole === undefined || scope === "everyone") return read(tx);
  const { on, before } = await enterTenantRole(db, tx, scope.tenant);
  const seen = await read(on);
  await tx.query(LEAVE, [before]);
  return seen;
}

async function enterTenantRole(db: Db, tx: Queryable, tenant: string): Promise<{ readonly on: Queryable; readonly before: string }> {
  const role = tenantRole(db.schema);
  // Half a tenant role is none, and nobody would see it. It may have been mended since.
  if (db.tenantRole?.complete !== true) db.tenantRole = (await findTenantRole(tx, db.schema)) ?? { complete: false };
  if (!db.tenantRole.complete) throw pawlError("roles_outdated", { role });
  const [entered] = await tx.query<{ before: string }>(ENTER, [role, TENANT_SETTING, tenant]);
  return { on: { query: (sql, values) => tx.query<never>(asTenant(sql), values) }, before: entered?.before ?? "none" };
}

const statementsAsTenant = new Map<string, Statement>();

/** By another name: a prepared statement that is used as two roles in turn is planned anew each time. */
function asTenant(sql: Statement): Statement {
  let own = statementsAsTenant.get(sql.name);
  if (own === undefined) {
    own = { ...sql, name: `${sql.name}_as_tenant` };
    statementsAsTenant.set(sql.name, own);
  }
  return own;
}

/** Tables that are walled, of those that should be; none either where who logs in may not act as that role. */
const FIND = statement(
  "find_tenant_role",
  `select count(*)::int as tables from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
   join pg_roles r on r.oid = any(p.polroles)
   where n.nspname = $1 and c.relname = any($2::text[]) and p.polname = 'own' and r.rolname = $3 and pg_has_role(session_user, r.oid, 'member')`,
);

/** What this database has of a tenant role. */
export async function findTenantRole(on: Queryable, schema: string): Promise<TenantRole | undefined> {
  const [found] = await on.query<{ tables: number }>(FIND, [schema, plainArray(TENANT_TABLES), tenantRole(schema)]);
  const tables = found?.tables ?? 0;
  return tables === 0 ? undefined : { complete: tables === TENANT_TABLES.length };
}
