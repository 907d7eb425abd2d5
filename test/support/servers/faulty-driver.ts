import { DriverError } from "../../../packages/pawl/src/store/postgres/connection/errors.js";
import type { Driver, DriverTransaction } from "../../../packages/pawl/src/store/postgres/drivers/driver.js";

export interface FaultyDriver {
  readonly driver: Driver;
  /** The k-th statement inside transactions, from 0, goes wrong, once: the server refuses it, or ends the connection. */
  breakAt(k: number, how: "refused" | "connection lost"): void;
  heal(): void;
}

/** A driver whose transactions fail at one statement. */
export function faultyDriver(inner: Driver): FaultyDriver {
  let left = Number.POSITIVE_INFINITY;
  let how: "refused" | "connection lost" = "refused";

  const breaking = (tx: DriverTransaction): DriverTransaction => ({
    run: (text, values) => tx.run(text, values),
    async query(statement, values) {
      if (left-- === 0) {
        if (how === "refused") throw new DriverError("refused", "XX000", new Error("made to fail"));
        await tx.run("select pg_terminate_backend(pg_backend_pid())").catch(() => {});
      }
      return tx.query(statement, values);
    },
  });
  return {
    driver: { ...inner, transaction: (work) => inner.transaction((tx) => work(breaking(tx))) },
    breakAt(k, what) {
      left = k;
      how = what;
    },
    heal() {
      left = Number.POSITIVE_INFINITY;
    },
  };
}
