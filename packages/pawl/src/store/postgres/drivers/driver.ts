/**
 * What the Postgres store needs of a database: the same for a server reached by `pg` and for PGlite in a thread.
 * Statements return texts, float8, int4, bool and uuid only (bigint and json are cast to text), so that every driver
 * answers with the same JavaScript values. Array parameters are passed as array literals (`arrays.ts`).
 */
export interface Statement {
  /** unique per text; the name of its prepared form where those are used */
  readonly name: string;
  readonly text: string;
  /** one of the few that run for every job: planned once, on connections of their kind where there are enough */
  readonly hot?: Hot;
}

/** Kinds of hot statements. Each keeps to its own connections, so that it meets one that has planned it already. */
export type Hot = "enqueue" | "claim" | "settle";

export type DriverRow = object;

export interface Queryable {
  query<R extends DriverRow>(statement: Statement, values?: readonly unknown[]): Promise<readonly R[]>;
}

/** A transaction, also as handlers see it: `run` takes any SQL. */
export interface DriverTransaction extends Queryable {
  run(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

export interface Subscription {
  /** Hears another channel as well, for as long as this lasts; `up` says from when on. */
  also(channel: string): void;
  close(): Promise<void>;
}

export interface Listener {
  message(payload: string, channel: string): void;
  /** Hearing (again): anything may have been missed while deaf. `listener`: the server's process, which ends with this connection. */
  up(listener?: number): void;
  down(error: unknown): void;
}

export interface Driver extends Queryable {
  readonly kind: "pg" | "pglite";
  /** READ COMMITTED. Resolves only if the commit really committed. Retried by the caller, not here. */
  transaction<T>(work: (tx: DriverTransaction) => Promise<T>): Promise<T>;
  /** One that only reads. It counts as a statement: who holds a transaction of the above may wait for it. */
  reading<T>(work: (on: Queryable) => Promise<T>): Promise<T>;
  /** Several statements in one text, without parameters, on one connection. */
  script(text: string): Promise<void>;
  /** Keeps listening through lost connections until closed. */
  listen(channel: string, listener: Listener): Subscription;
  /** What another thread needs to renew leases without this one; undefined if it cannot. */
  renewalLink(): Promise<RenewalLink | undefined>;
  close(): Promise<void>;
}

/** Can be posted to a thread. */
export type RenewalLink =
  | {
      readonly kind: "pg";
      /** of the package `pg`: a thread does not know where the application is */
      readonly file: string;
      readonly config: Readonly<Record<string, unknown>>;
      readonly password?: string;
    }
  | { readonly kind: "port"; readonly port: import("node:worker_threads").MessagePort };
