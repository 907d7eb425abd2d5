/** The second connection: what the store itself says. */

export interface Counts {
  /** enqueued and not finished, running ones included */
  readonly unfinished: number;
  /** finished well and still there; undefined where the system deletes them */
  readonly finished: number | undefined;
}

/** What a system's server has spent since it was started. Differences count. */
export interface ServerUsage {
  readonly cpuMs: number;
  /** WAL, or the append-only file */
  readonly logBytes: number;
  /** of the database, or the dataset in memory */
  readonly dataBytes: number;
  /** transactions, where there are any */
  readonly commits: number;
  /** statements or commands; on Postgres only counted in a place made with `countStatements` */
  readonly statements: number;
}

export interface Inspector {
  /** false: nobody else can look while a process has it open (PGlite) */
  readonly shared: boolean;
  counts(): Promise<Counts>;
  /** the cheaper half of `counts` */
  unfinished(): Promise<number>;
  /** Pawl on Postgres only: claimed and not settled */
  unsettled(): Promise<number>;
  usage(): Promise<ServerUsage>;
  /** Postgres only: opens a transaction with a snapshot and keeps it until the answer is called */
  pin(): Promise<() => Promise<void>>;
  /** SQL on Postgres */
  query<Row extends object>(sql: string): Promise<readonly Row[]>;
}
