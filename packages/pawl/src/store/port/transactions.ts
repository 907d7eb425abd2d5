import type { Transaction } from "../../core/jobs/transaction.js";

/** The handle of a transaction. Only the store that made it can see into it. */
export interface StoreTransaction {
  readonly __transaction: unique symbol;
}

/**
 * Transactions, where the store has them. Verbs that take a handle do their step inside that transaction, on its connection. The step
 * is done when the transaction commits.
 */
export interface StoreTransactions {
  /** The handle of a transaction that the caller has open in the database of the store. */
  join(tx: Transaction): StoreTransaction;
  /** Runs user code in a transaction of the store: it gets the transaction to write in, and the handle. */
  run<T>(work: (tx: Transaction, handle: StoreTransaction) => Promise<T>): Promise<T>;
}
