import type { Transaction } from "../../core/jobs/transaction.js";

/**
 * Transactions of the libraries people use, as `EnqueueOptions.tx` takes them. `pg` (and whatever else has
 * `query(text, values)` answering `{ rows }`) needs none of this. The types are structural: nothing is imported, so
 * nothing has to be installed.
 */

type QueryAnswer = Transaction extends { query(...parameters: never[]): Promise<infer Answer> } ? Answer : never;

interface KnexTransaction {
  raw(sql: string, bindings: readonly never[]): PromiseLike<unknown>;
}

/** `knex.transaction((trx) => pawl.enqueue(task, input, { tx: fromKnex(trx) }))`, on Postgres */
export function fromKnex(trx: KnexTransaction): Transaction {
  return {
    async query(text, values) {
      // Knex counts question marks where Postgres numbers its parameters, so one used twice is given twice.
      const bindings: unknown[] = [];
      const sql = text.replaceAll("?", "\\?").replace(/\$(\d+)/g, (_, number: string) => {
        bindings.push(values[Number(number) - 1] ?? null);
        return "?";
      });
      return rowsOf(await trx.raw(sql, bindings as never[]));
    },
  };
}

interface KyselyTransaction {
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>;
}

/** `db.transaction().execute((trx) => pawl.enqueue(task, input, { tx: fromKysely(trx) }))`, on Postgres */
export function fromKysely(trx: KyselyTransaction): Transaction {
  return {
    async query(text, values) {
      // What its own CompiledQuery.raw makes.
      const query = { kind: "RawNode", sqlFragments: [text], parameters: [] };
      const compiled = { sql: text, parameters: values, query, queryId: { queryId: "pawl" } };
      return rowsOf(await trx.executeQuery(compiled as never));
    },
  };
}

interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
}

/** `db.transaction((tx) => pawl.enqueue(task, input, { tx: fromDrizzle(tx) }))`, on Postgres with any of its drivers */
export function fromDrizzle(tx: DrizzleTransaction): Transaction {
  return {
    async query(text, values) {
      // Anything that answers getSQL() is a query to it, and this one is already in the words of the dialect.
      const query = { getSQL: () => ({ toQuery: () => ({ sql: text, params: values }) }) };
      return rowsOf(await tx.execute(query as never));
    },
  };
}

interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...values: never[]): PromiseLike<unknown>;
}

/** `prisma.$transaction((tx) => pawl.enqueue(task, input, { tx: fromPrisma(tx) }))`, on Postgres */
export function fromPrisma(tx: PrismaTransaction): Transaction {
  return {
    // "Unsafe" means that the text is not checked for values pasted into it; ours has none, they go beside it.
    query: async (text, values) => rowsOf(await tx.$queryRawUnsafe(text, ...(values as never[]))),
  };
}

/** Some answer with the rows, others with an object around them. */
function rowsOf(answer: unknown): QueryAnswer {
  return (Array.isArray(answer) ? { rows: answer } : answer) as QueryAnswer;
}
