import { hostname } from "node:os";
import { pawlError } from "../../core/values/error.js";
import { newInstanceId } from "../../runtime/process/identity.js";
import { systemClock } from "../../runtime/time/clock.js";
import { retryUntilUp, WAITING_REPORT_MS } from "../../runtime/time/retry-until-up.js";
import { throttle } from "../../runtime/time/throttle.js";
import type { Store, StoreInfo } from "../port/index.js";
import { openDb } from "./connection/db.js";
import { describeServer } from "./connection/describe-server.js";
import { findTenantRole } from "./connection/tenant-role.js";
import type { Driver } from "./drivers/driver.js";
import { pgDriver } from "./drivers/pg.js";
import type { EmbeddedConnection } from "./embedded/index.js";
import { postgresStore } from "./index.js";
import type { OpenWait, PostgresOptions } from "./options.js";
import { checkSchema, isBehind, migrate, type Schema } from "./schema/migrate.js";

export type PostgresPlace = { readonly url: string } | { readonly folder: string };

const STATEMENT_TIMEOUT_MS = 30_000;
const NO_TIMEOUT = 0;

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

async function openAt(url: string, options: PostgresOptions): Promise<Store> {
  if (namesSeveralHosts(url)) throw pawlError("store_url_many_hosts", { url: withoutSecrets(url) });
  const driver = (statementTimeout: number, most = options.connections) =>
    pgDriver({
      config: { connectionString: url, ...(most === undefined ? {} : { max: most }) },
      ...(options.listenUrl === undefined ? {} : { listenConfig: { connectionString: options.listenUrl } }),
      ...(options.password === undefined ? {} : { password: options.password }),
      prepare: options.prepare ?? "auto",
      statementTimeout,
    });
  return finish(
    driver(options.statementTimeout ?? STATEMENT_TIMEOUT_MS),
    { engine: "postgres", place: withoutSecrets(url), durability: "power loss" },
    options,
    { migrator: () => driver(NO_TIMEOUT, 1) },
  );
}

async function openNative(folder: string, options: PostgresOptions): Promise<Store> {
  const { startEmbedded } = await import("./embedded/index.js");
  const server = await startEmbedded(folder);
  const driver = (statementTimeout: number, most = options.connections) =>
    pgDriver({ config: { ...server.connection, ssl: false, ...(most === undefined ? {} : { max: most }) }, prepare: "auto", statementTimeout });
  return finish(
    driver(options.statementTimeout ?? STATEMENT_TIMEOUT_MS),
    { engine: "embedded", place: folder, url: urlOf(server.connection), durability: "power loss" },
    options,
    { migrator: () => driver(NO_TIMEOUT, 1), onClose: () => server.release() },
  );
}

async function openPgliteIn(folder: string, options: PostgresOptions): Promise<Store> {
  const { openPglite } = await import("./drivers/pglite.js");
  return finish(await openPglite(folder), { engine: "pglite", place: folder, durability: "process" }, options);
}

export interface Around {
  /** for migrations, which may take their time: no statement of theirs is given up */
  readonly migrator?: () => Driver;
  readonly onClose?: () => Promise<void>;
}

/** Migrates (or checks), reads what the server is, and puts the store together. Nothing stays open if that fails. */
export async function finish(
  driver: Driver,
  known: Pick<StoreInfo, "engine" | "place" | "url" | "durability">,
  options: PostgresOptions,
  { migrator, onClose }: Around = {},
): Promise<Store> {
  const clock = options.clock ?? systemClock;
  const on = (one: Driver) =>
    openDb(one, {
      location: known.place,
      ...(options.schema === undefined ? {} : { schema: options.schema }),
      ...(options.now === undefined ? {} : { now: options.now }),
    });
  const db = on(driver);
  const say = throttle<OpenWait>(clock, WAITING_REPORT_MS, options.onWaiting);
  async function bringUpToDate(): Promise<Schema> {
    if (options.migrate === false) return checkSchema(db);
    const moving = (progress: { readonly migration: string; readonly moved: number }) => say(() => ({ for: "migration", ...progress }));
    if (migrator === undefined || !(await isBehind(db))) return migrate(db, undefined, moving);
    const patient = migrator();
    return migrate(on(patient), undefined, moving).finally(() => patient.close());
  }
  try {
    const { server, schema, tenantRole } = await retryUntilUp({ clock, patience: options.startupWait, onWaiting: options.onWaiting }, async () => ({
      server: await describeServer(db),
      schema: await bringUpToDate(),
      tenantRole: await findTenantRole(db, db.schema),
    }));
    db.tenantRole = tenantRole;
    // With commits that do not wait for the disk, what was acknowledged may be lost with the power.
    const durability = server.safe ? known.durability : "process";
    const engine = { ...known, durability, version: server.version, schema: schema.number };
    return postgresStore({ db, engine, clock, self: `${hostname()}-${newInstanceId()}`, ...(onClose === undefined ? {} : { onClose }) });
  } catch (error) {
    await driver.close().catch(() => {});
    await onClose?.().catch(() => {});
    throw error;
  }
}

function urlOf({ host, port, user, database, password }: EmbeddedConnection): string {
  const login = password === undefined ? user : `${user}:${encodeURIComponent(password)}`;
  return `postgres://${login}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}

/** As libpq takes them; the driver would look for one host of that name. */
function namesSeveralHosts(url: string): boolean {
  const [, login = "", query = ""] = /^\w+:\/\/([^/?]*)[^?]*\??(.*)$/.exec(url) ?? [];
  const hosts = login.slice(login.lastIndexOf("@") + 1);
  return hosts.includes(",") || (new URLSearchParams(query).get("host") ?? "").includes(",");
}

function withoutSecrets(url: string): string {
  try {
    const parsed = new URL(url);
    return `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
  } catch {
    return "postgres://…";
  }
}
