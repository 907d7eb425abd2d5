import { hostname } from "node:os";
import { isPawlError, pawlError } from "../../core/error.js";
import { type Clock, systemClock } from "../../runtime/clock.js";
import { newBootId } from "../../runtime/identity.js";
import type { Store, StoreInfo } from "../port.js";
import { type Db, openDb, statement } from "./db.js";
import type { Driver } from "./drivers/driver.js";
import { pgDriver } from "./drivers/pg.js";
import type { EmbeddedConnection } from "./embedded/index.js";
import { postgresStore } from "./index.js";
import { checkSchema, migrate } from "./migrate.js";

export type PostgresPlace = { readonly url: string } | { readonly folder: string };

export interface PostgresOptions {
  readonly migrate?: boolean;
  /** of a folder */
  readonly engine?: "native" | "pglite";
  readonly schema?: string;
  /** a direct URL for LISTEN, where `url` leads to a pooler */
  readonly listenUrl?: string;
  /** named prepared statements; "auto" stops using them where a pooler has none */
  readonly prepare?: "auto" | false;
  /** connections at most */
  readonly connections?: number;
  /** ms after which an unanswered statement is given up */
  readonly statementTimeout?: number;
  /** ms to wait for a server that is not up yet */
  readonly patience?: number;
  /** the clock of tests */
  readonly now?: () => number;
  readonly clock?: Clock;
}

const STATEMENT_TIMEOUT = 30_000;
const PATIENCE = 5_000;

/** Opens the store at a URL or in a folder, and brings its schema up to date. */
export async function openPostgres(place: PostgresPlace, options: PostgresOptions = {}): Promise<Store> {
  if ("url" in place) return openAt(place.url, options);
  const { madeBy } = await import("./embedded/folder.js");
  const engine = options.engine ?? (madeBy(place.folder) === "pglite" ? "pglite" : undefined);
  if (engine === "pglite") return openPgliteIn(place.folder, options);
  const { nativePostgres } = await import("./embedded/index.js");
  const native = nativePostgres();
  if (native.ok) return openNative(place.folder, options);
  if (options.engine === "native") throw pawlError("embedded_unavailable", { reason: native.reason });
  return openPgliteIn(place.folder, options);
}

function openAt(url: string, options: PostgresOptions): Promise<Store> {
  const driver = pgDriver({
    config: { connectionString: url, ...(options.connections === undefined ? {} : { max: options.connections }) },
    ...(options.listenUrl === undefined ? {} : { listenConfig: { connectionString: options.listenUrl } }),
    prepare: options.prepare ?? "auto",
    statementTimeout: options.statementTimeout ?? STATEMENT_TIMEOUT,
  });
  return finish(driver, { engine: "postgres", place: withoutSecrets(url), durability: "power loss" }, options);
}

async function openNative(folder: string, options: PostgresOptions): Promise<Store> {
  const { startEmbedded } = await import("./embedded/index.js");
  const server = await startEmbedded(folder);
  const config = { ...server.connection, ssl: false, ...(options.connections === undefined ? {} : { max: options.connections }) };
  const driver = pgDriver({ config, prepare: "auto", statementTimeout: options.statementTimeout ?? STATEMENT_TIMEOUT });
  return finish(driver, { engine: "embedded", place: folder, url: urlOf(server.connection), durability: "power loss" }, options, () =>
    server.release(),
  );
}

async function openPgliteIn(folder: string, options: PostgresOptions): Promise<Store> {
  const { openPglite } = await import("./drivers/pglite.js");
  return finish(await openPglite(folder), { engine: "pglite", place: folder, durability: "process" }, options);
}

/** Migrates (or checks), reads what the server is, and puts the store together. Nothing stays open if that fails. */
export async function finish(
  driver: Driver,
  known: Pick<StoreInfo, "engine" | "place" | "url" | "durability">,
  options: PostgresOptions,
  onClose?: () => Promise<void>,
): Promise<Store> {
  const clock = options.clock ?? systemClock;
  const db = openDb(driver, {
    place: known.place,
    ...(options.schema === undefined ? {} : { schema: options.schema }),
    ...(options.now === undefined ? {} : { now: options.now }),
  });
  try {
    await untilUp(db, clock, options.patience ?? PATIENCE);
    const schema = options.migrate === false ? await checkSchema(db) : await migrate(db);
    const server = await describe(db);
    // With commits that do not wait for the disk, what was acknowledged may be lost with the power.
    const durability = server.safe ? known.durability : "process";
    const engine: StoreInfo = { ...known, durability, version: server.version, schema: schema.number };
    return postgresStore({ db, engine, clock, self: `${hostname()}-${newBootId()}`, ...(onClose === undefined ? {} : { onClose }) });
  } catch (error) {
    await driver.close().catch(() => {});
    await onClose?.().catch(() => {});
    throw error;
  }
}

const DESCRIBE = statement(
  "describe",
  `select current_setting('server_version') as version, current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' as safe`,
);

async function describe(db: Db): Promise<{ version: string; safe: boolean }> {
  const [row] = await db.query<{ version: string; safe: boolean }>(DESCRIBE);
  return row as { version: string; safe: boolean };
}

/** A server that starts at the same moment as we do is waited for; one that refuses us is not. */
async function untilUp(db: Db, clock: Clock, patience: number): Promise<void> {
  const giveUp = clock.monotonic() + patience;
  for (;;) {
    try {
      await describe(db);
      return;
    } catch (error) {
      if (!isPawlError(error, "store_unreachable") || clock.monotonic() >= giveUp) throw error;
      await new Promise<void>((resolve) => clock.after(100, resolve));
    }
  }
}

function urlOf({ host, port, user, database, password }: EmbeddedConnection): string {
  const login = password === undefined ? user : `${user}:${encodeURIComponent(password)}`;
  return `postgres://${login}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}

function withoutSecrets(url: string): string {
  try {
    const parsed = new URL(url);
    return `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
  } catch {
    return "postgres://…";
  }
}
