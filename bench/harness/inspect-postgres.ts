import pg from "pg";
import type { Counts, Inspector } from "../contract/inspector.js";
import type { StoreLocation } from "../contract/system.js";
import { familyCpuMs } from "./cpu.js";

interface CountStatements {
  readonly unfinished: string;
  readonly finished?: string;
  readonly unsettled?: string;
}

/** Of the commit in `before.ts`: its tables stay as they are, whatever becomes of ours. */
const BEFORE: CountStatements = {
  unfinished: `select (select count(*) from pawl.any_ready) + (select count(*) from pawl.scheduled)
      + (select count(*) from pawl.parked) + (select count(*) from pawl.blocked) + (select coalesce(sum(open), 0) from pawl.lease) as count`,
  unsettled: "select coalesce(sum(open), 0) from pawl.lease",
  finished: `select count(distinct j.id) from pawl.job j join (select job from pawl.attempt where outcome = 0
      union all select unnest(jobs) from pawl.bundle) a on a.job = j.id`,
};

/** How each system's tables say what is not finished, and what is. */
const STATEMENTS: Readonly<Record<string, CountStatements>> = {
  pawl: {
    unfinished: `select (select count(*) from pawl.any_ready) + (select count(*) from pawl.scheduled)
      + (select count(*) from pawl.parked) + (select count(*) from pawl.blocked) + (select coalesce(sum(unsettled), 0) from pawl.lease) as count`,
    unsettled: "select coalesce(sum(unsettled), 0) from pawl.lease",
    // A job has one attempt with that outcome.
    finished: `select count(distinct u.job) from pawl.history h cross join lateral unnest(coalesce(h.jobs, array[h.first])) with ordinality as u(job, index)
      where not exists (select from generate_series(1, cardinality(h.outcomes), 5) as at where h.outcomes[at] = u.index and h.outcomes[at + 1] <> 0)`,
  },
  "graphile-worker": { unfinished: "select count(*) from graphile_worker._private_jobs" },
  "pg-boss": {
    unfinished: "select count(*) from pgboss.job where name = 'bench' and state < 'completed'",
    finished: "select count(*) from pgboss.job where name = 'bench' and state = 'completed'",
  },
  "bullmq-postgres": {
    unfinished: "select count(*) from bullmq.job where state not in ('completed', 'failed')",
    finished: "select count(*) from bullmq.job where state = 'completed'",
  },
};

export async function inspectPostgres(
  location: StoreLocation & { readonly kind: "postgres" },
  system: string,
  postmaster: number | undefined,
): Promise<Inspector & { close(): Promise<void> }> {
  const { host, port, user, database } = location;
  const connect = async () => {
    const client = new pg.Client({ host, port, user, database, application_name: "bench-inspector" });
    client.on("error", () => {}); // it also rejects the calls
    await client.connect();
    return client;
  };
  const client = await connect();
  const number = async (sql: string) => Number(Object.values((await client.query<Record<string, string>>(sql)).rows[0] ?? {})[0]);
  const statements = system.endsWith("-before") ? BEFORE : (STATEMENTS[system] ?? STATEMENTS.pawl);

  return {
    shared: true,
    async counts(): Promise<Counts> {
      if (statements === undefined) throw new Error(`nobody knows the tables of ${system}`);
      const unfinished = await number(statements.unfinished);
      return { unfinished, finished: statements.finished === undefined ? undefined : await number(statements.finished) };
    },
    async unfinished() {
      if (statements === undefined) throw new Error(`nobody knows the tables of ${system}`);
      return number(statements.unfinished);
    },
    async unsettled() {
      if (statements?.unsettled === undefined) throw new Error(`nobody knows the leases of ${system}`);
      return number(statements.unsettled);
    },
    async usage() {
      // A backend tells its counters after a second at the latest; ours shall not wait for that.
      await client.query("select pg_stat_clear_snapshot(), pg_stat_force_next_flush()");
      const counting = await number("select count(*) from pg_extension where extname = 'pg_stat_statements'");
      return {
        cpuMs: (postmaster === undefined ? undefined : familyCpuMs(postmaster)) ?? Number.NaN,
        logBytes: await number("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"),
        dataBytes: await number("select pg_database_size(current_database())"),
        commits: await number("select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"),
        statements:
          counting === 0
            ? Number.NaN
            : await number(
                "select coalesce(sum(calls), 0) from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())",
              ),
      };
    },
    async pin() {
      const holder = await connect();
      await holder.query("begin isolation level repeatable read");
      await holder.query("select count(*) from pg_class"); // the first statement takes the snapshot
      return () => holder.end();
    },
    async query<Row extends object>(sql: string) {
      return (await client.query(sql)).rows as readonly Row[];
    },
    close: () => client.end(),
  };
}
