import type { Transaction } from "../../core/jobs/transaction.js";
import { pawlError } from "../../core/values/error.js";
import type { EngineStore, StoreTransaction } from "../../store/port/index.js";

/** The store's handle of a transaction of the caller's. A store without transactions refuses. */
export function joinTransaction({ transactions, engine }: EngineStore, tx: Transaction): StoreTransaction {
  if (transactions === undefined) throw pawlError("transaction_unsupported", { engine: engine.engine });
  return transactions.join(tx);
}
