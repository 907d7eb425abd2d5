import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type pg from "pg";
import { readMigrations } from "../../packages/pawl/src/store/postgres/migrate.js";

const SHIPPED = fileURLToPath(new URL("../../packages/pawl/src/store/postgres/migrations/", import.meta.url));

/** the newest schema there is */
export const SHIPS = readMigrations().at(-1)?.number ?? 0;

export interface NextMigration {
  readonly up: string;
  readonly down?: string;
  readonly batch?: string;
}

/** What is shipped and one more, in a folder made anew. */
export function withNext(folder: string, { up, down = "select 1;", batch }: NextMigration): ReturnType<typeof readMigrations> {
  rmSync(folder, { recursive: true, force: true });
  cpSync(SHIPPED, folder, { recursive: true });
  const stem = join(folder, `${String(SHIPS + 1).padStart(4, "0")}_next`);
  writeFileSync(`${stem}.sql`, up);
  writeFileSync(`${stem}.down.sql`, down);
  if (batch !== undefined) writeFileSync(`${stem}.batch.sql`, batch);
  return readMigrations(pathToFileURL(`${folder}/`));
}

/** Has something to do with each job of the task `old`, and counts how often it did. */
export const MOVING: NextMigration = {
  up: "alter table pawl.job add column times int;",
  down: "alter table pawl.job drop column times;",
  batch: `with due as materialized (select id from pawl.job where task = 'old' and ($1::uuid is null or id > $1::uuid) order by id limit $2),
    moved as (update pawl.job j set times = coalesce(times, 0) + 1 from due where j.id = due.id returning j.id)
    select count(*)::int as moved, max(id::text) as cursor from moved`,
};

/** Jobs that are there before. */
export async function addOldJobs(client: pg.Client, count: number): Promise<void> {
  await client.query(
    `insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, home)
     select now(), now(), overlay(overlay(gen_random_uuid()::text placing substr(f.floor::text, 1, 13) from 1) placing '7' from 15)::uuid, 5, 'default', 'acme', 'old', '1',
       nextval('pawl.ready_seq')
     from generate_series(1, $1) cross join pawl.span f`,
    [count],
  );
}

/** How often jobs were moved, as distinct numbers. */
export async function timesMoved(client: pg.Client, where = "true"): Promise<readonly (number | null)[]> {
  const { rows } = await client.query<[number | null]>({ text: `select distinct times from pawl.job where ${where}`, rowMode: "array" });
  return rows.map(([one]) => one);
}

/** Everything there is in the schema, in words: tables, columns, indexes, constraints, sequences, views. */
export async function catalogueOf(client: pg.Client): Promise<readonly { readonly what: string; readonly words: string }[]> {
  return (await client.query(CATALOGUE)).rows;
}

const CATALOGUE = `
  select 'column' as what, format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) as words from information_schema.columns where table_schema = 'pawl'
  union all select 'index', indexdef from pg_indexes where schemaname = 'pawl'
  union all select 'constraint', format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) from pg_constraint where connamespace = 'pawl'::regnamespace
  union all select 'relation', format('%s %s', relname, relkind) from pg_class where relnamespace = 'pawl'::regnamespace
  order by 1, 2`;
