import type { Lane } from "../../core/lane.js";
import type { GateKey } from "../../core/limit.js";
import type { ForeignTransaction } from "../port.js";
import type { Driver, Hot, Queryable, Row, Statement, Transaction } from "./drivers/driver.js";
import { sqlState } from "./drivers/sql-state.js";
import { asDriverError, DriverError, errorOfHandlers, isTransient, storeError } from "./errors.js";
import { listenForKnocks, sameKnocks } from "./knocks.js";

/** What every operation of the store works with. */
export interface Db extends Queryable {
  /** the clock of the tests, or null: the server's */
  now(): number | null;
  readonly place: string;
  readonly driver: Driver;
  readonly schema: string;
  inSchema(asked: Statement): Statement;
  /** READ COMMITTED; tried again from the start when the server asks for that (serialization, deadlock) */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** The same for reads alone; it counts as one statement, so nothing else of the store may be waited for inside. */
  reading<T>(work: (on: Queryable) => Promise<T>): Promise<T>;
  /** between tenants, where the database has one: wall.ts */
  wall?: Wall | undefined;
  /** tells of lanes at whose front there are jobs now, which waited; set by the store */
  onFronts?: (lanes: readonly Lane[]) => void;
  /** looks at gates that a committed transaction knocked at; set by the store */
  onKnock?: (gates: ReadonlySet<GateKey>, how?: { readonly made: boolean }) => Promise<void>;
}

/** `whole`: every table it should have a policy for has one. */
export interface Wall {
  readonly whole: boolean;
}

const SCHEMA = "pawl";
const MOST_TRIES = 6;
const ALIVE = statement("alive", "select");

export function statement(name: string, text: string): Statement {
  return { name: `pawl_${name}`, text: text.trim() };
}

/** One that runs for every job. */
export function hotStatement(hot: Hot, name: string, text: string): Statement {
  return { ...statement(name, text), hot };
}

/** The store's instant in a statement whose first parameter is `Db.now()`. */
/** Which server answers: a standby that was promoted is another one, and so is one that was restarted. */
export const SERVER = "extract(epoch from pg_postmaster_start_time())::text";

export const NOW = "coalesce(to_timestamp($1::float8 / 1000), statement_timestamp())";
/** An instant as JavaScript's ms. */
export function ms(instant: string): string {
  return `(extract(epoch from ${instant}) * 1000)::float8`;
}

export function openDb(driver: Driver, options: { schema?: string; now?: () => number; place: string }): Db {
  const schema = options.schema ?? SCHEMA;
  const inSchema = schemaOf(schema);
  const readable = (on: Queryable): Queryable => ({ query: (asked, values) => on.query<never>(inSchema(asked), values).catch(rethrow) });
  const named = (tx: Transaction): Transaction => {
    const isAlive = () =>
      tx.query(ALIVE).then(
        () => true,
        (error: unknown) => sqlState(error) !== undefined,
      );
    return {
      ...readable(tx),
      run: (text, values) =>
        tx.run(text, values).catch(async (error: unknown) => {
          throw await errorOfHandlers(error, options.place, isAlive);
        }),
    };
  };
  const db: Db = {
    driver,
    schema,
    inSchema,
    place: options.place,
    now: () => options.now?.() ?? null,
    query: (asked, values) => patiently(asked.name, options.place, () => driver.query<never>(inSchema(asked), values).catch(rethrow)),
    reading: (work) => patiently("reading", options.place, () => driver.reading((on) => work(readable(on)))),
    async transaction(work) {
      let gates = new Set<GateKey>();
      const answer = await patiently("transaction", options.place, () => {
        gates = new Set();
        return driver.transaction((tx) => work(listenForKnocks(named(tx), gates)));
      });
      if (gates.size > 0) await db.onKnock?.(gates);
      return answer;
    },
  };
  return db;
}

function rethrow(error: unknown): never {
  throw asDriverError(error);
}

/** Runs the store's statements on a transaction of the caller's own: any client with a query function. */
export function foreignDb(db: Db, tx: ForeignTransaction): Transaction {
  const inSchema = schemaOf(db.schema);
  return sameKnocks(tx, {
    query: async <R extends Row>(asked: Statement, values: readonly unknown[] = []) =>
      (await tx.query(inSchema(asked).text, values)).rows as readonly Row[] as readonly R[],
    run: (text, values = []) => tx.query(text, values),
  });
}

/** Statements are written for the schema `pawl`; another name is put in once per statement. */
function schemaOf(schema: string): (asked: Statement) => Statement {
  if (schema === SCHEMA) return (asked) => asked;
  const known = new Map<string, Statement>();
  return (asked) => {
    let own = known.get(asked.name);
    if (own === undefined) {
      own = { ...asked, name: `${schema}_${asked.name}`, text: renameSchema(asked.text, schema) };
      known.set(asked.name, own);
    }
    return own;
  };
}

export function renameSchema(text: string, schema: string): string {
  return text.replace(/\bpawl\./g, `${schema}.`).replace(/\bschema( if not exists)? pawl\b/g, `schema$1 ${schema}`);
}

async function patiently<T>(operation: string, place: string, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (isTransient(error) && tries < MOST_TRIES) continue;
      // What a handler threw inside its transaction is its own.
      throw error instanceof DriverError ? storeError(error, operation, place) : error;
    }
  }
}
