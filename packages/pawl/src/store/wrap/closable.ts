import { isPawlError, type PawlError, pawlError } from "../../core/values/error.js";
import type { Store } from "../port/index.js";
import { wrapStore } from "./wrap-store.js";

export interface ClosableStore extends Store {
  /** Throws if it is closed: for calls that would ask it nothing. */
  checkOpen(): void;
}

/**
 * A store that, once it is closed, says so to whoever asks: its driver would say that the database is away, and who hears
 * that tries again. What its end broke off hears the same, unless it may have been carried out: that is told as it is.
 */
export function closable(store: Store): ClosableStore {
  let closing: Promise<void> | undefined;
  const checkOpen = () => {
    if (closing !== undefined) throw closedError();
  };
  const wrapped = wrapStore(store, async (_, call) => {
    checkOpen();
    try {
      return await call();
    } catch (error) {
      throw closing !== undefined && isPawlError(error, "store_unreachable") ? closedError(error) : error;
    }
  });
  return {
    ...wrapped,
    checkOpen,
    get engine() {
      return store.engine;
    },
    close() {
      closing ??= store.close();
      return closing;
    },
  };
}

export function closedError(cause?: unknown): PawlError {
  return pawlError("closed", { what: "pawl" }, cause);
}
