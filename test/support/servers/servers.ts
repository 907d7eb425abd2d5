import { randomBytes } from "node:crypto";
import pg from "pg";
import { describe, inject } from "vitest";
import { TestClock } from "../../../packages/pawl/conformance/world.js";
import { openPostgres } from "../../../packages/pawl/src/store/postgres/open.js";

/** The servers of a test run, started once by `global-setup.ts` and shared by all test files. */
export type ServerName = "embedded18" | "debian15" | "pgbouncer";

export interface Address {
  /** the folder of its unix socket, or an IP address */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password?: string;
}

export interface Server extends Address {
  readonly version: string;
  /** where to create databases and to LISTEN: the server itself, also behind a pooler */
  readonly direct: Address;
  /** the same server by TCP, with a password (debian15 only) */
  readonly tcp?: Address;
}

export type ServerProbe = { readonly available: true; readonly server: Server } | { readonly available: false; readonly reason: string };

declare module "vitest" {
  interface ProvidedContext {
    servers: Readonly<Record<ServerName, ServerProbe>>;
    /** the folder in which the sources are JavaScript: `transpiled.ts` */
    built: string;
  }
}

export function serverFor(name: ServerName): ServerProbe {
  return inject("servers")[name];
}

/** A suite on a server. Where the server cannot be had it is skipped, and its name says why. */
export function describeOn(name: ServerName, suite: () => void): void {
  const probe = serverFor(name);
  describe.skipIf(!probe.available)(probe.available ? `on ${name}` : `on ${name} (${probe.reason})`, suite);
}

export interface Database {
  readonly name: string;
  readonly url: string;
  readonly config: Address & { readonly database: string };
  /** past the pooler; the same as `url` where there is none */
  readonly directUrl: string;
  readonly directConfig: Address & { readonly database: string };
  drop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * For suites that ask the same few things of tiny tables thousands of times: planning them is most of the work. A plan
 * made once per connection serves; where statements have no names (`pgbouncer`), one made in the order they are written.
 */
export function plannedOnce(on: ServerName): Settings {
  return on === "pgbouncer" ? PLANNED_AS_WRITTEN : { plan_cache_mode: "force_generic_plan" };
}
export const PLANNED_AS_WRITTEN: Settings = { join_collapse_limit: "1", from_collapse_limit: "1" };

export type Settings = Readonly<Record<string, string>>;

/** An empty database of the test's own, in some 30 ms. Drop it at the end, or say `await using`. */
export function freshDatabase(on: ServerName = "embedded18", settings: Settings = {}): Promise<Database> {
  // template0, since nobody can be connected to it, which would refuse the copy
  return copyOf("template0", on, settings);
}

/** One in which Pawl's schema is as `open` makes it: a copy, for a fraction of what migrating costs. */
export async function migratedDatabase(on: ServerName = "embedded18", settings: Settings = {}): Promise<Database> {
  return copyOf(await migratedOnce(serverOf(on), "migrated_now"), on, settings);
}

/** The same for a store whose clock is a `TestClock`: its months are those. */
export async function testClockDatabase(on: ServerName = "embedded18", settings: Settings = {}): Promise<Database> {
  return copyOf(await migratedOnce(serverOf(on), "migrated_test_clock", new TestClock().now), on, settings);
}

function serverOf(on: ServerName): Server {
  const probe = serverFor(on);
  if (!probe.available) throw new Error(`no ${on}: ${probe.reason}`);
  return probe.server;
}

async function copyOf(template: string, on: ServerName, settings: Settings): Promise<Database> {
  const server = serverOf(on);
  const name = `test_${randomBytes(8).toString("hex")}`;
  const set = Object.entries(settings).map(([setting, value]) => `alter database ${name} set ${setting} = '${value}'`);
  await administer(server, `create database ${name} template ${template}`, ...set);
  const drop = () => administer(server, `drop database if exists ${name} with (force)`);
  return {
    name,
    url: urlOf(server, name),
    config: configOf(server, name),
    directUrl: urlOf(server.direct, name),
    directConfig: configOf(server.direct, name),
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

/** A migrated database of that name, made by whoever needs it first in this run. Answers its name. */
async function migratedOnce(server: Server, name: string, now?: () => number): Promise<string> {
  const client = new pg.Client(configOf(server.direct, "postgres"));
  await client.connect();
  // Nobody may connect to what is copied: that it is closed says that it is done.
  const done = async () => (await client.query("select from pg_database where datname = $1 and not datallowconn", [name])).rowCount === 1;
  try {
    if (await done()) return name;
    await client.query("select pg_advisory_lock(hashtext($1))", [name]);
    if (await done()) return name;
    await client.query(`create database ${name} template template0`);
    await (await openPostgres({ url: urlOf(server.direct, name) }, now === undefined ? {} : { now })).close();
    await client.query(`alter database ${name} allow_connections false`);
    return name;
  } finally {
    await client.end();
  }
}

export function urlOf({ host, port, user, password }: Address, database: string): string {
  const login = password === undefined ? user : `${user}:${password}`;
  return host.startsWith("/")
    ? `postgres://${login}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
    : `postgres://${login}@${host}:${port}/${database}`;
}

function configOf({ host, port, user, password }: Address, database: string) {
  return { host, port, user, database, ...(password === undefined ? {} : { password }) };
}

async function administer(server: Server, ...texts: readonly string[]): Promise<void> {
  const client = new pg.Client(configOf(server.direct, "postgres"));
  await client.connect();
  try {
    for (const text of texts) await client.query(text);
  } finally {
    await client.end();
  }
}
