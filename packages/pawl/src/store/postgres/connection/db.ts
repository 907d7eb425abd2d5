import type { Transaction } from "../../../core/jobs/transaction.js";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import type { StoreTransaction } from "../../port/index.js";
import type { Driver, DriverRow, DriverTransaction, Hot, Queryable, Statement } from "../drivers/driver.js";
import { sqlState } from "../drivers/sql-state.js";
import { asDriverError, DriverError, errorOfHandlers, isTransient, storeError } from "./errors.js";

/** What every operation of the store works with. */
export interface Db extends Queryable {
  /** the clock of the tests, or null: the server's */
  now(): number | null;
  readonly location: string;
  readonly driver: Driver;
  readonly schema: string;
  inSchema(sql: Statement): Statement;
  /** READ COMMITTED; tried again from the start when the server asks for that (serialization, deadlock). */
  transaction<T>(work: (tx: DriverTransaction) => Promise<T>): Promise<T>;
  /** The same for work that may write limit checks, which the caller gets with the answer. */
  commit<T>(work: (tx: WriteTransaction) => Promise<T>): Promise<Committed<T>>;
  /** The same for reads alone; it counts as one statement, so nothing else of the store may be waited for inside. */
  reading<T>(work: (on: Queryable) => Promise<T>): Promise<T>;
  /** between tenants, where the database has one: tenant-role.ts */
  tenantRole?: TenantRole | undefined;
}

/**
 * A transaction that gathers the limit keys for which it writes limit checks: jobs are admitted at them once it has committed. The rows in
 * `pawl.limit_check` are for processes that end before that.
 */
export interface WriteTransaction extends DriverTransaction {
  readonly limitChecks: Set<LimitKeyId>;
}

export interface Committed<T> {
  readonly answer: T;
  readonly limitChecks: ReadonlySet<LimitKeyId>;
}

/** A `Db` whose transactions are followed by the admission at the limit keys that they wrote limit checks for. */
export interface StoreDb extends Db {
  transaction<T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T>;
}

export function storeDb(db: Db, afterCommit: (limitChecks: ReadonlySet<LimitKeyId>) => Promise<void>): StoreDb {
  return {
    ...db,
    async transaction(work) {
      const { answer, limitChecks } = await db.commit(work);
      if (limitChecks.size > 0) await afterCommit(limitChecks);
      return answer;
    },
  };
}

/** `whole`: every table it should have a policy for has one. */
export interface TenantRole {
  readonly complete: boolean;
}

const SCHEMA = "pawl";
const MAX_TRIES = 6;
const ALIVE = statement("alive", "select");

export function statement(name: string, text: string): Statement {
  return { name: `pawl_${name}`, text: text.trim() };
}

/** One that runs for every job. */
export function hotStatement(hot: Hot, name: string, text: string): Statement {
  return { ...statement(name, text), hot };
}

/** Which server answers: a standby that was promoted is another one, and so is one that was restarted. */
export const SERVER = "extract(epoch from pg_postmaster_start_time())::text";

/** The store's instant in a statement whose first parameter is `Db.now()`. */
export const NOW = "coalesce(to_timestamp($1::float8 / 1000), statement_timestamp())";
/** An instant as JavaScript's ms. */
export function ms<const Instant extends string>(instant: Instant) {
  return `(extract(epoch from ${instant}) * 1000)::float8` as const;
}

export function openDb(driver: Driver, options: { schema?: string; now?: () => number; location: string }): Db {
  const schema = options.schema ?? SCHEMA;
  const inSchema = schemaOf(schema);
  const readable = (on: Queryable): Queryable => ({ query: (sql, values) => on.query<never>(inSchema(sql), values).catch(rethrow) });
  const named = (tx: DriverTransaction): DriverTransaction => {
    const isAlive = () =>
      tx.query(ALIVE).then(
        () => true,
        (error: unknown) => sqlState(error) !== undefined,
      );
    return {
      ...readable(tx),
      run: (text, values) =>
        tx.run(text, values).catch(async (error: unknown) => {
          throw await errorOfHandlers(error, options.location, isAlive);
        }),
    };
  };
  const db: Db = {
    driver,
    schema,
    inSchema,
    location: options.location,
    now: () => options.now?.() ?? null,
    query: (sql, values) => withRetries(sql.name, options.location, () => driver.query<never>(inSchema(sql), values).catch(rethrow)),
    reading: (work) => withRetries("reading", options.location, () => driver.reading((on) => work(readable(on)))),
    transaction: (work) => withRetries("transaction", options.location, () => driver.transaction((tx) => work(named(tx)))),
    commit: (work) =>
      withRetries("transaction", options.location, async () => {
        const limitChecks = new Set<LimitKeyId>();
        const answer = await driver.transaction((tx) => work({ ...named(tx), limitChecks }));
        return { answer, limitChecks };
      }),
  };
  return db;
}

function rethrow(error: unknown): never {
  throw asDriverError(error);
}

/** A handle of a transaction is what runs the store's statements in it; nobody else can see that. */
export function transactionHandle(tx: WriteTransaction): StoreTransaction {
  return tx as unknown as StoreTransaction;
}

export function insideTransaction(handle: StoreTransaction): WriteTransaction {
  return handle as unknown as WriteTransaction;
}

/** The store's own transaction as a handler is given it. */
export class HandlerTransaction implements Transaction {
  readonly #own: WriteTransaction;
  readonly query: Transaction["query"];

  constructor(own: WriteTransaction) {
    this.#own = own;
    this.query = (text, values) => own.run(text, values);
  }

  /** Of a transaction that is somebody else's nobody takes them: the poll finds the rows. */
  static limitChecksOf(tx: Transaction): Set<LimitKeyId> {
    return #own in tx ? tx.#own.limitChecks : new Set();
  }
}

/** Runs the store's statements on a transaction of the caller's own: any client with a query function. */
export function foreignDb(db: Db, tx: Transaction): WriteTransaction {
  const inSchema = schemaOf(db.schema);
  return {
    limitChecks: HandlerTransaction.limitChecksOf(tx),
    query: async <R extends DriverRow>(sql: Statement, values: readonly unknown[] = []) =>
      (await tx.query(inSchema(sql).text, values)).rows as readonly DriverRow[] as readonly R[],
    run: (text, values = []) => tx.query(text, values),
  };
}

/** Statements are written for the schema `pawl`; another name is put in once per statement. */
function schemaOf(schema: string): (sql: Statement) => Statement {
  if (schema === SCHEMA) return (sql) => sql;
  const renamed = new Map<string, Statement>();
  return (sql) => {
    let own = renamed.get(sql.name);
    if (own === undefined) {
      own = { ...sql, name: `${schema}_${sql.name}`, text: renameSchema(sql.text, schema) };
      renamed.set(sql.name, own);
    }
    return own;
  };
}

export function renameSchema(text: string, schema: string): string {
  return text.replace(/\bpawl\./g, `${schema}.`).replace(/\bschema( if not exists)? pawl\b/g, `schema$1 ${schema}`);
}

async function withRetries<T>(operation: string, location: string, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (isTransient(error) && tries < MAX_TRIES) continue;
      // What a handler threw inside its transaction is its own.
      throw error instanceof DriverError ? storeError(error, operation, location) : error;
    }
  }
}
