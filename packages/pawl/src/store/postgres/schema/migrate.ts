import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { pawlError } from "../../../core/values/error.js";
import { systemClock } from "../../../runtime/time/clock.js";
import { type Db, renameSchema, statement } from "../connection/db.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { type BackfillProgress, backfill } from "./backfill.js";
import { firstId, makePartitions, monthOf, partitionStatements, storeNow } from "./partitions.js";

/** One numbered step. `oldest`: the oldest schema number a binary may know and still work on the result. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly up: string;
  readonly down: string;
  /** of a step that moves rows: how, in batches, once `up` is applied */
  readonly batch?: string;
  readonly oldest: number;
}

const FOLDER = new URL("../migrations/", import.meta.url);
const DOWN = "down.sql";

/**
 * `0002_name.sql`, with its reverse in `0002_name.down.sql`, and `0002_name.batch.sql` where it moves rows. A long one is a folder
 * `0001_name/` of files, applied in the order of their names, with its reverse in `down.sql`. A first line `-- oldest: 2` shuts out older
 * binaries.
 */
export function readMigrations(folder: URL = FOLDER): readonly Migration[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  const files = new Set(entries.map(({ name }) => name));
  const read = (file: string) => readFileSync(new URL(file, folder), "utf8");
  const migrations = entries
    .flatMap((entry): readonly Omit<Migration, "number" | "oldest">[] => {
      const [, name] = /^\d+_(\w+)(?:\.sql)?$/.exec(entry.name) ?? [];
      if (name === undefined) return [];
      const stem = entry.name.replace(/\.sql$/, "");
      if (entry.isDirectory()) {
        const parts = readdirSync(new URL(`${stem}/`, folder)).filter((file) => file !== DOWN);
        return [
          {
            name: stem,
            up: parts
              .sort()
              .map((file) => read(`${stem}/${file}`))
              .join("\n"),
            down: read(`${stem}/${DOWN}`),
          },
        ];
      }
      const batch = files.has(`${stem}.batch.sql`) ? { batch: read(`${stem}.batch.sql`) } : {};
      return [{ name: stem, up: read(entry.name), down: read(`${stem}.down.sql`), ...batch }];
    })
    .map((step): Migration => {
      const number = Number.parseInt(step.name, 10);
      return { ...step, number, name: step.name.replace(/^\d+_/, ""), oldest: Number(/^-- oldest: (\d+)/m.exec(step.up)?.[1] ?? number - 1) };
    })
    .sort((a, b) => a.number - b.number);
  // Only one of them would be run, and nothing would say so until a statement misses what the other one makes.
  const twice = migrations.find(({ number }, place) => migrations[place - 1]?.number === number);
  if (twice !== undefined) throw new Error(`two migrations have the number ${twice.number}: this build of Pawl is broken, so build it anew`);
  return migrations;
}

const BOOTSTRAP = `
create schema if not exists pawl;
create table if not exists pawl.migration (
  number int primary key,
  name text not null,
  oldest int not null,
  applied_at timestamptz not null default now()
);
alter table pawl.migration add column if not exists digest text;`;
const HAS_SCHEMA = statement("has_schema", "select to_regclass('pawl.migration') is not null as found");
const APPLIED = statement("applied", "select number, oldest from pawl.migration order by number desc limit 1");
/** Null where the first migration is not one of a release, or of a time before it had a digest: the column may be missing. */
const FIRST = statement("first_migration", "select (select to_jsonb(m) ->> 'digest' from pawl.migration m where number = 1) as digest");
const LOCK = statement("lock_migrations", "select pg_advisory_xact_lock(hashtext('pawl.migrations'))::text");
const BEGIN_BACKFILL = statement("begin_backfill", "insert into pawl.backfill (number, name) values ($1, $2)");
const UNDER_WAY = statement("backfills", "select number from pawl.backfill order by number");
const FORGET_BACKFILL = statement("forget_backfill", "delete from pawl.backfill where number = $1");
const RECORD = statement("record_migration", "insert into pawl.migration (number, name, oldest, digest) values ($1, $2, $3, $4)");
const FORGET = statement("forget_migration", "delete from pawl.migration where number = $1");

export interface Schema {
  readonly number: number;
  readonly oldest: number;
}

export async function schemaOf(db: Db): Promise<Schema> {
  const [has] = await db.query<{ found: boolean }>(HAS_SCHEMA);
  if (!has?.found) return { number: 0, oldest: 0 };
  const [applied] = await db.query<Schema>(APPLIED);
  return applied ?? { number: 0, oldest: 0 };
}

/** Steps whose rows are not all moved. */
async function unfinished(db: Db, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  if (migrations.every(({ batch }) => batch === undefined)) return [];
  const numbers = new Set((await db.query<{ number: number }>(UNDER_WAY)).map(({ number }) => number));
  return migrations.filter(({ number }) => numbers.has(number));
}

/** Refuses a database a newer Pawl has changed beyond what this one can work on, and one that is not migrated. */
export async function checkSchema(db: Db, migrations = readMigrations()): Promise<Schema> {
  const known = migrations.at(-1)?.number ?? 0;
  const found = await schemaOf(db);
  if (found.number > 0) await checkFirst(db, migrations);
  if (found.number > known && found.oldest > known) throw pawlError("schema_newer", { found: found.number, known });
  if (found.number < known) throw pawlError("schema_missing", { found: found.number, known });
  const [halfway] = await unfinished(db, migrations);
  if (halfway !== undefined) throw pawlError("schema_missing", { found: `${halfway.number}, not all of whose rows are moved yet,`, known });
  return found;
}

/**
 * Until the first release the first migration is edited in place, and a store that an earlier edit made cannot be brought up to date:
 * it is refused before anything is changed.
 */
async function checkFirst(db: Db, [first]: readonly Migration[]): Promise<void> {
  if (first === undefined) return;
  const [made] = await db.query<{ digest: string | null }>(FIRST);
  if (made?.digest !== digestOf(first)) throw pawlError("schema_unreleased", { schema: db.schema });
}

/** Of what it does: comments and white space may change. */
function digestOf({ up }: Migration): string {
  const text = statements(up).map((one) => one.replace(/--.*$/gm, "").replace(/\s+/g, " "));
  return createHash("sha256").update(text.join(";\n")).digest("hex").slice(0, 16);
}

/** Whether there is anything for `migrate` to do. */
export async function isBehind(db: Db, migrations = readMigrations()): Promise<boolean> {
  const { number } = await schemaOf(db);
  return number < (migrations.at(-1)?.number ?? 0) || (await unfinished(db, migrations)).length > 0;
}

/** Applies what is missing, each step in a transaction of its own; many processes may try at once. */
export async function migrate(db: Db, migrations = readMigrations(), onProgress?: (progress: BackfillProgress) => void): Promise<Schema> {
  if (await isBehind(db, migrations)) {
    if ((await schemaOf(db)).number === 0) await bootstrap(db);
    else await checkFirst(db, migrations);
    for (const migration of migrations) {
      await applyOne(db, migration);
      if (migration.batch !== undefined) await backfill(db, { ...migration, batch: migration.batch }, onProgress);
    }
  }
  const schema = await checkSchema(db, migrations);
  await makePartitions(db);
  return schema;
}

async function bootstrap(db: Db): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.run("set local statement_timeout = 0");
    await tx.query(LOCK);
    for (const text of statements(renameSchema(BOOTSTRAP, db.schema))) await tx.run(text);
  });
}

/** ms a step waits for a table in use: whoever queues up behind it waits no longer. Then it lets go and tries again. */
const LOCK_PATIENCE = 50;
const MAX_TRIES = 200;
/** It waited too long for a table, or in a circle with those who use it: nothing of it was done. */
const LET_GO: ReadonlySet<unknown> = new Set(["55P03", "40P01"]);

async function applyOne(db: Db, migration: Migration): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await tryOne(db, migration);
    } catch (error) {
      if (!LET_GO.has((error as { code?: unknown }).code) || tries === MAX_TRIES) throw error;
      await new Promise<void>((resolve) => systemClock.after(LOCK_PATIENCE + 50 * systemClock.random(), resolve));
    }
  }
}

async function tryOne(db: Db, migration: Migration): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.run("set local statement_timeout = 0");
    await tx.query(LOCK);
    await tx.run(`set local lock_timeout = ${LOCK_PATIENCE}`);
    const [applied] = await tx.query<Schema>(APPLIED);
    if ((applied?.number ?? 0) >= migration.number) return;
    for (const text of statements(renameSchema(migration.up, db.schema))) await tx.run(text);
    if (migration.number === 1) await startSpan(db, tx);
    if (migration.batch !== undefined) await tx.query(BEGIN_BACKFILL, [migration.number, migration.name]);
    const digest = migration.number === 1 ? digestOf(migration) : null;
    await tx.query(RECORD, [migration.number, migration.name, migration.oldest, digest]);
  });
}

/** The first months, so that the very first enqueue finds a partition. */
async function startSpan(db: Db, tx: DriverTransaction): Promise<void> {
  const now = await storeNow(db, tx);
  const first = monthOf(now);
  for (const text of partitionStatements(first)) await tx.run(renameSchema(text, db.schema));
  await tx.run(renameSchema("insert into pawl.partition_range (floor, floor_ms, ceiling_ms) values ($1::uuid, $2::float8, $3::float8)", db.schema), [
    firstId(first.from),
    first.from,
    first.to,
  ]);
}

/** Takes back everything above `to`, newest first. */
export async function rollback(db: Db, to: number, migrations = readMigrations()): Promise<void> {
  for (const migration of [...migrations].reverse()) {
    if (migration.number <= to) return;
    await db.transaction(async (tx) => {
      await tx.query(LOCK);
      const [applied] = await tx.query<Schema>(APPLIED);
      if ((applied?.number ?? 0) !== migration.number) return;
      if (migration.batch !== undefined) await tx.query(FORGET_BACKFILL, [migration.number]);
      for (const text of statements(renameSchema(migration.down, db.schema))) await tx.run(text);
      await tx.query(FORGET, [migration.number]);
    });
  }
}

/** One statement at a time, as the extended protocol wants. Migrations hold no semicolons inside texts or bodies. */
export function statements(script: string): readonly string[] {
  return script
    .replace(/^\s*--.*$/gm, "")
    .split(/;\s*(?:\n|$)/)
    .map((text) => text.trim())
    .filter((text) => text !== "");
}
