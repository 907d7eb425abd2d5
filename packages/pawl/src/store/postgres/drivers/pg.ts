import pg from "pg";
import { Limiter } from "../../../runtime/limiter.js";
import { DriverError, poisonsConnection } from "../errors.js";
import type { Driver, Listener, Row, Statement, Transaction } from "./driver.js";
import { hangUp } from "./pg-hang-up.js";
import { pgListen } from "./pg-listen.js";
import { Unreplicated } from "./pg-replication.js";

export interface PgOptions {
  readonly config: pg.PoolConfig;
  /** a direct connection for LISTEN, where `config` leads to a pooler */
  readonly listenConfig?: pg.ClientConfig;
  /** named prepared statements; "auto" stops using them at the first sign of a pooler that has none */
  readonly prepare: "auto" | false;
  /** ms after which an unanswered statement is given up and its connection destroyed */
  readonly statementTimeout: number;
}

const DEFAULT_POOL = 10;

/** Postgres over the network or a socket. Nothing here relies on session state, so a transaction pooler may sit between. */
export function pgDriver(options: PgOptions): Driver {
  const pool = new pg.Pool({
    max: DEFAULT_POOL,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: "pawl",
    query_timeout: options.statementTimeout,
    ...options.config,
  });
  // A connection that dies while idle is replaced at its next use; without a listener it would end the process.
  pool.on("error", () => {});
  // Between the pool's handing one out and our having it, the same packet may bring its end.
  const clients = new Set<pg.PoolClient>();
  const unreplicated = new Unreplicated();
  pool.on("connect", (client) => {
    client.on("error", () => {});
    unreplicated.watch(client);
    client.once("end", () => clients.delete(client));
    clients.add(client);
  });
  let prepare = options.prepare !== false;
  // Whoever finds no free connection waits here, in order and without a time limit: the pool's own limit is for
  // connecting. Transactions leave some connections to the statements that their own work may wait for.
  const most = pool.options.max;
  const statements = new Limiter(most);
  const transactions = new Limiter(Math.max(1, most - 2));

  /** The server's last silence. Who stood in line since before need not find it out again, one time-out after the other. */
  let silence: { readonly at: number; readonly error: DriverError } | undefined;

  async function connect(asked: number): Promise<pg.PoolClient> {
    if (silence !== undefined && silence.at >= asked) throw silence.error;
    try {
      const client = await pool.connect();
      silence = undefined;
      return client;
    } catch (cause) {
      const error = new DriverError("unsent", sqlState(cause), cause);
      if (error.code === undefined) silence = { at: performance.now(), error };
      throw error;
    }
  }

  async function send(client: pg.PoolClient, statement: Statement, values: readonly unknown[], inside = false): Promise<readonly Row[]> {
    const named = prepare;
    const query = named
      ? { name: statement.name, text: statement.text, values: values as unknown[] }
      : { text: statement.text, values: values as unknown[] };
    try {
      const result = await client.query(query);
      unreplicated.check(client);
      return result.rows as Row[];
    } catch (error) {
      if (error instanceof DriverError) throw error;
      const code = sqlState(error);
      if (named && (code === "26000" || code === "42P05")) {
        // A pooler gave this statement to another server connection: nothing ran. Go on without names.
        prepare = false;
        // A transaction is lost with it, and begun again by whoever began it.
        if (!inside) return send(client, statement, values);
      }
      throw new DriverError(code === undefined || code.startsWith("57P") || code.startsWith("08") ? "unknown" : "refused", code, error);
    }
  }

  return {
    kind: "pg",
    query<R extends Row>(statement: Statement, values: readonly unknown[] = []): Promise<readonly R[]> {
      const asked = performance.now();
      return statements.run(async () => {
        const client = await connect(asked);
        let broken = false;
        try {
          return (await send(client, statement, values)) as readonly R[];
        } catch (error) {
          broken = error instanceof DriverError && poisonsConnection(error.code);
          throw error;
        } finally {
          client.release(broken);
        }
      });
    },

    transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      const asked = performance.now();
      return transactions.run(async () => {
        const client = await connect(asked);
        let broken = true;
        try {
          await plain(client, "begin isolation level read committed");
          const result = await work(transactionOn(client, (statement, values) => send(client, statement, values, true)));
          const ended = await plain(client, "commit");
          if (ended.command !== "COMMIT") throw new DriverError("refused", "25P02", new Error("the transaction was rolled back"));
          unreplicated.check(client);
          broken = false;
          return result;
        } catch (error) {
          if (!(error instanceof DriverError && poisonsConnection(error.code))) {
            broken = await plain(client, "rollback").then(
              () => false,
              () => true,
            );
          }
          throw error;
        } finally {
          client.release(broken);
        }
      });
    },

    async script(text: string): Promise<void> {
      const client = await connect(performance.now());
      let broken = true;
      try {
        await plain(client, text);
        broken = false;
      } finally {
        client.release(broken);
      }
    },

    listen(channel: string, listener: Listener) {
      return pgListen(options.listenConfig ?? options.config, channel, listener);
    },

    renewalLink: () => ({ kind: "pg", config: { ...(options.config as Record<string, unknown>) } }),

    async close(): Promise<void> {
      await pool.end();
      await Promise.all([...clients].map(hangUp));
    },
  };
}

function transactionOn(client: pg.PoolClient, send: (statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>): Transaction {
  return {
    query: async <R extends Row>(statement: Statement, values: readonly unknown[] = []) => (await send(statement, values)) as readonly R[],
    run: async (text, values = []) => {
      const result = await client.query(text, values as unknown[]);
      return { rows: result.rows as Record<string, unknown>[] };
    },
  };
}

async function plain(client: pg.PoolClient, text: string): Promise<pg.QueryResult> {
  try {
    return await client.query(text);
  } catch (error) {
    const code = sqlState(error);
    throw new DriverError(code === undefined || code.startsWith("57P") || code.startsWith("08") ? "unknown" : "refused", code, error);
  }
}

/** Undefined for what the server did not say: sockets, time-outs, protocol faults. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && code !== "EPIPE" ? code : undefined;
}
