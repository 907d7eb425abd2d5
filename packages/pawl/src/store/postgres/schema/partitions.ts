import { type Db, ms, NOW, renameSchema, statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";

/** A month of due times, as a range of ids. */
export interface Month {
  /** 2026_11 */
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export const PARTITIONED = ["job", "history", "log"] as const;
/** How many months are made ahead. */
export const AHEAD = 3;

export function monthOf(at: number, offset = 0): Month {
  const date = new Date(at);
  const from = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset, 1);
  const start = new Date(from);
  const to = Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
  return { name: `${start.getUTCFullYear()}_${String(start.getUTCMonth() + 1).padStart(2, "0")}`, from, to };
}

/** When a month of that name begins, or one so many after it. */
export function startOf(name: string, offset = 0): number {
  return monthOf(Date.parse(`${name.replace("_", "-")}-01T00:00:00Z`), offset).from;
}

/** The smallest id due at that time. */
export function firstId(at: number): string {
  const hex = Math.max(0, at).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

const EXISTING = statement(
  "existing_partitions",
  `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'pawl.job'::regclass order by c.relname`,
);
const CLOCK = statement("partition_clock", `select ${ms(NOW)} as now`);
const RAISE_CEILING = statement("raise_ceiling", "update pawl.partition_range set ceiling_ms = greatest(ceiling_ms, $1::float8)");

export async function storeNow(db: Db, on: Queryable): Promise<number> {
  const [row] = await on.query<{ now: number }>(CLOCK, [db.now()]);
  return (row as { now: number }).now;
}

export async function existingMonths(on: Queryable): Promise<readonly string[]> {
  return (await on.query<{ name: string }>(EXISTING)).map((row) => row.name.replace(/^job_/, ""));
}

/** One at a time makes or drops partitions, in whichever process; the others find it done. */
const LOCK_PARTITIONS = statement("lock_partitions", "select pg_advisory_xact_lock(hashtext('pawl.partitions'))::text");

/** Makes the months from this one to three ahead. Created first, then attached: the parents stay open for work. */
export async function makePartitions(db: Db): Promise<readonly string[]> {
  const now = await storeNow(db, db);
  const wanted = Array.from({ length: AHEAD + 1 }, (_, offset) => monthOf(now, offset));
  const existing = new Set(await existingMonths(db));
  if (wanted.every((month) => existing.has(month.name))) return [];
  return db.transaction(async (tx) => {
    await tx.query(LOCK_PARTITIONS);
    const before = new Set(await existingMonths(tx));
    const missing = wanted.filter((month) => !before.has(month.name));
    for (const month of missing) for (const text of partitionStatements(month)) await tx.run(renameSchema(text, db.schema));
    await tx.query(RAISE_CEILING, [(wanted.at(-1) as Month).to]);
    return missing.map((month) => month.name);
  });
}

export function partitionStatements(month: Month): readonly string[] {
  return PARTITIONED.flatMap((table) => [
    `create table pawl.${table}_${month.name} (like pawl.${table} including defaults including constraints including indexes including storage)`,
    // The arrays of a row of history stay in it.
    ...(table === "history" ? [`alter table pawl.${table}_${month.name} set (toast_tuple_target = 8160)`] : []),
    `alter table pawl.${table} attach partition pawl.${table}_${month.name} for values from ('${firstId(month.from)}') to ('${firstId(month.to)}')`,
  ]);
}
