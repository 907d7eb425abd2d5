import { randomBytes } from "node:crypto";
import { join } from "node:path";
import pg from "pg";
import { startEmbedded } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import type { StoreLocation } from "../contract/system.js";

/** One configuration for everyone: durable, and room enough that checkpoints do not decide who is fast. */
const SETTINGS = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  shared_buffers: "1GB",
  min_wal_size: "1GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "30min",
  autovacuum: "on",
  jit: "off",
  max_connections: "200",
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.track": "none",
};

/**
 * A server that has been up for a while writes into old segments of its log. A new one makes each as it comes to it, and
 * whoever commits then waits some ten ms: always the system whose turn is the first.
 */
const WAL_SEGMENTS = 48;
const NEXT_SEGMENT = "select pg_logical_emit_message(false, 'bench', 'worn in'), pg_switch_wal()";

export interface PostgresServer {
  readonly about: string;
  readonly pid: number;
  /** the folder of its socket */
  readonly host: string;
  /** An empty database. */
  create(options: { readonly countStatements: boolean }): Promise<StoreLocation & { readonly kind: "postgres" }>;
  drop(location: StoreLocation & { readonly kind: "postgres" }): Promise<void>;
  stop(): Promise<void>;
}

/** The Postgres that comes with npm, as a plain server. */
export async function startPostgres(folder: string): Promise<PostgresServer> {
  const server = await startEmbedded(join(folder, "postgres"), { settings: SETTINGS });
  const { host, port, user } = server.connection;
  const administer = (...statements: string[]) => queries({ host, port, user, database: "postgres" }, statements);
  await administer(...Array.from({ length: WAL_SEGMENTS }, () => NEXT_SEGMENT), "checkpoint");
  return {
    about: `Postgres ${server.version} on a unix socket; ${settingsText()}`,
    pid: server.pid,
    host,
    async create({ countStatements }) {
      const database = `bench_${randomBytes(4).toString("hex")}`;
      await administer(`create database ${database} template template0`);
      if (countStatements) {
        await administer(`alter database ${database} set pg_stat_statements.track = 'top'`);
        await queries({ host, port, user, database }, ["create extension pg_stat_statements"]);
      }
      // Everybody starts with nothing left to write.
      await administer("checkpoint");
      const url = `postgres://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
      return { kind: "postgres", url, host, port, user, database };
    },
    drop: ({ database }) => administer(`drop database if exists ${database} with (force)`),
    stop: () => server.release(),
  };
}

async function queries(config: pg.ClientConfig, statements: readonly string[]): Promise<void> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

function settingsText(): string {
  return Object.entries(SETTINGS)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}
