import type { Pawl } from "pawl";
import { pawlError } from "pawl/service";

/** ms for which one look at the store is believed, and after which it counts as away */
const CHECK_MAX_AGE_MS = 500;
const CHECK_TIMEOUT_MS = 2_000;

/** Whether requests can be served: by a cheap read of the store, shared by all who ask at about the same time. */
export class Readiness {
  #stopping = false;
  #pending: Promise<unknown> | undefined;

  constructor(readonly pawl: Pawl) {}

  /** From now on it is not ready, so that load balancers send nobody here while what is running ends. */
  stop(): void {
    this.#stopping = true;
  }

  /** Throws the reason while it is not. */
  async check(): Promise<void> {
    if (this.#stopping) throw pawlError("service_stopping");
    for (const worker of this.pawl.workers.local()) {
      const { stuck, name, overrun } = worker.status();
      if (stuck) throw pawlError("worker_stuck", { worker: name, overrun });
    }
    this.#pending ??= this.#readStore();
    await this.#pending;
  }

  #readStore(): Promise<unknown> {
    const read = within(CHECK_TIMEOUT_MS, this.pawl.tenants.get("default"));
    const forget = () => {
      setTimeout(() => {
        this.#pending = undefined;
      }, CHECK_MAX_AGE_MS).unref();
    };
    read.then(forget, forget);
    return read;
  }
}

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(pawlError("store_unreachable", { store: "its place", reason: `no answer within ${ms} ms` })), ms);
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
