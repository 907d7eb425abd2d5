import type pg from "pg";
import { pawlError } from "../../../core/values/error.js";
import { ConcurrencyLimiter } from "../../../runtime/io/concurrency-limiter.js";
import { DriverError, poisonsConnection } from "../connection/errors.js";
import { Connections } from "./connections.js";
import type { Driver, DriverRow, DriverTransaction, Hot, Listener, Queryable, Statement } from "./driver.js";
import { clientWith, type Password } from "./pg-client.js";
import { pgListen } from "./pg-listen.js";
import { findPg, loadPg } from "./pg-module.js";
import { sqlState } from "./sql-state.js";

export interface PgOptions {
  readonly config: pg.PoolConfig;
  /** in place of the URL's: asked for with every connection */
  readonly password?: Password;
  /** a direct connection for LISTEN, where `config` leads to a pooler */
  readonly listenConfig?: pg.ClientConfig;
  /** named prepared statements; "auto" stops using them at the first sign of a pooler that has none */
  readonly prepare: "auto" | false;
  /** ms after which an unanswered statement is given up and its connection destroyed */
  readonly statementTimeout: number;
}

const DEFAULT_POOL = 16;
/** Connections for each kind of hot statement: as many as a process has of it on its way at once. */
const FOR_HOT: Readonly<Record<Hot, number>> = { enqueue: 3, claim: 2, settle: 3 };
/**
 * How the hot statements are planned: once per connection instead of six times, never for tables as they happen to be at
 * that moment (they may be empty, and hold a million rows a second later), and never compiled.
 */
const HOT_SETTINGS = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off";

/** Postgres over the network or a socket. Nothing here relies on session state, so a transaction pooler may sit between. */
export function pgDriver(options: PgOptions): Driver {
  const { max: most = DEFAULT_POOL, ...config } = options.config;
  const file = findPg();
  const Client = clientWith(loadPg(file), options.password);
  const forHot = shareOf(most);
  const forOthers = most - forHot.enqueue - forHot.claim - forHot.settle;
  const connections = (max: number, how: pg.PoolConfig) => new Connections({ ...how, query_timeout: options.statementTimeout, max, Client });
  const main = connections(forOthers, config);
  const apart = (kind: Hot) => connections(forHot[kind], hotConfig(config));
  const hot: Readonly<Record<Hot, Connections>> = { enqueue: apart("enqueue"), claim: apart("claim"), settle: apart("settle") };
  // Transactions leave some connections to the statements that their own work may wait for.
  const transactions = new ConcurrencyLimiter(Math.max(1, forOthers - 2));
  let prepare = options.prepare !== false;
  /** Poolers may take no settings with a connection: then those without can be had, and those with them never. */
  let mayBeHot = forHot.claim > 0;

  async function send(
    on: Connections,
    client: pg.PoolClient,
    statement: Statement,
    values: readonly unknown[],
    inside = false,
  ): Promise<readonly DriverRow[]> {
    const named = prepare;
    const query = named
      ? { name: statement.name, text: statement.text, values: values as unknown[] }
      : { text: statement.text, values: values as unknown[] };
    try {
      const result = await client.query(query);
      on.check(client);
      return result.rows as DriverRow[];
    } catch (error) {
      if (error instanceof DriverError) throw error;
      const code = sqlState(error);
      if (named && (code === "26000" || code === "42P05")) {
        // A pooler gave this statement to another server connection: nothing ran. Go on without names.
        prepare = false;
        // A transaction is lost with it, and begun again by whoever began it.
        if (!inside) return send(on, client, statement, values);
      }
      throw new DriverError(code === undefined || code.startsWith("57P") || code.startsWith("08") ? "unknown" : "refused", code, error);
    }
  }

  const ask = <R extends DriverRow>(on: Connections, statement: Statement, values: readonly unknown[]): Promise<readonly R[]> =>
    on.use((client) => send(on, client, statement, values)) as Promise<readonly R[]>;

  return {
    kind: "pg",
    async query<R extends DriverRow>(statement: Statement, values: readonly unknown[] = []): Promise<readonly R[]> {
      if (statement.hot === undefined || !mayBeHot) return ask<R>(main, statement, values);
      const on = hot[statement.hot];
      try {
        return await ask<R>(on, statement, values);
      } catch (error) {
        const taken = Object.values(hot).some(({ connected }) => connected);
        if (taken || !(error instanceof DriverError && error.fate === "unsent")) throw error;
        const answer = await ask<R>(main, statement, values);
        mayBeHot = false;
        return answer;
      }
    },

    transaction<T>(work: (tx: DriverTransaction) => Promise<T>): Promise<T> {
      const asked = performance.now();
      return transactions.run(async () => {
        const client = await main.take(asked);
        const use = { open: true };
        let broken = true;
        try {
          await plain(client, "begin isolation level read committed");
          const result = await work(transactionOn(client, use, (statement, values) => send(main, client, statement, values, true)));
          use.open = false;
          const ended = await plain(client, "commit");
          if (ended.command !== "COMMIT") throw new DriverError("refused", "25P02", new Error("the transaction was rolled back"));
          main.check(client);
          broken = false;
          return result;
        } catch (error) {
          use.open = false;
          if (!(error instanceof DriverError && poisonsConnection(error.code))) {
            broken = await plain(client, "rollback").then(
              () => false,
              () => true,
            );
          }
          throw error;
        } finally {
          main.giveBack(client, broken);
        }
      });
    },

    reading<T>(work: (on: Queryable) => Promise<T>): Promise<T> {
      return main.use(async (client) => {
        await plain(client, "begin isolation level read committed");
        try {
          const result = await work(transactionOn(client, { open: true }, (statement, values) => send(main, client, statement, values, true)));
          await plain(client, "commit");
          return result;
        } catch (error) {
          if (!(error instanceof DriverError && poisonsConnection(error.code))) await plain(client, "rollback");
          throw error;
        }
      });
    },

    async script(text: string): Promise<void> {
      const client = await main.take(performance.now());
      let broken = true;
      try {
        await plain(client, text);
        broken = false;
      } finally {
        main.giveBack(client, broken);
      }
    },

    listen(channel: string, listener: Listener) {
      return pgListen(Client, options.listenConfig ?? options.config, channel, listener);
    },

    // A thread cannot ask: it is started with the password of now, and again where that is refused.
    renewalLink: async () => ({
      kind: "pg",
      file,
      config: { ...(options.config as Record<string, unknown>) },
      ...(options.password === undefined ? {} : { password: await options.password() }),
    }),

    async close(): Promise<void> {
      await Promise.all([main, ...Object.values(hot)].map((one) => one.close()));
    },
  };
}

/** `use` ends with the transaction: whoever kept hold of it would write into what the connection is used for next. */
function transactionOn(
  client: pg.PoolClient,
  use: { readonly open: boolean },
  send: (statement: Statement, values: readonly unknown[]) => Promise<readonly DriverRow[]>,
): DriverTransaction {
  const checkOpen = () => {
    if (!use.open) throw pawlError("closed", { what: "the transaction" });
  };
  return {
    query: async <R extends DriverRow>(statement: Statement, values: readonly unknown[] = []) => {
      checkOpen();
      return (await send(statement, values)) as readonly R[];
    },
    run: async (text, values = []) => {
      checkOpen();
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

/** Of few connections none is set apart; of some, one for each kind. */
function shareOf(most: number): Readonly<Record<Hot, number>> {
  if (most >= 12) return FOR_HOT;
  const each = most >= 6 ? 1 : 0;
  return { enqueue: each, claim: each, settle: each };
}

function hotConfig(config: pg.PoolConfig): pg.PoolConfig {
  const [address, query = ""] = (config.connectionString ?? "").split("?", 2);
  const parameters = new URLSearchParams(query);
  const inUrl = parameters.get("options");
  // What the URL says wins over the rest, so it has to be said there.
  if (inUrl !== null) {
    parameters.set("options", `${inUrl} ${HOT_SETTINGS}`);
    return { ...config, connectionString: `${address}?${parameters}` };
  }
  return { ...config, options: config.options === undefined ? HOT_SETTINGS : `${config.options} ${HOT_SETTINGS}` };
}
