import { type Db, statement } from "../connection/db.js";
import type { Statement } from "../drivers/driver.js";

/** A statement that deletes and answers how many rows went. */
export function deleting(name: string, text: string): Statement {
  return statement(name, `with gone as (${text} returning 1) select count(*)::int as n from gone`);
}

/** The rows of a tenant ($1), up to so many ($2). */
export function deletingOfTenant(table: string): Statement {
  return deleting(`purge_${table}`, `delete from pawl.${table} where ctid = any(array(select ctid from pawl.${table} where tenant = $1 limit $2))`);
}

/** Runs one of these. */
export async function deleteCounted(db: Db, one: Statement, parameters: readonly unknown[]): Promise<number> {
  return (await db.query<{ n: number }>(one, parameters))[0]?.n ?? 0;
}
