import type { Transaction } from "../src/core/jobs/transaction.js";
import type { EngineStore, StoreTransaction } from "../src/store/port/index.js";
import type { StoreTransactions } from "../src/store/port/transactions.js";

/** The transactions of a store that has them. */
export function transactionsOf({ transactions, engine }: EngineStore): StoreTransactions {
  if (transactions === undefined) throw new Error(`the ${engine.engine} store has no transactions`);
  return transactions;
}

/** Does some steps of the store in one transaction of its own. */
export function inTransaction<T>(store: EngineStore, work: (tx: StoreTransaction) => Promise<T>): Promise<T> {
  return transactionsOf(store).run((_, handle) => work(handle));
}

/** The handle of a transaction of the caller's. */
export function joined(store: EngineStore, tx: Transaction): StoreTransaction {
  return transactionsOf(store).join(tx);
}
