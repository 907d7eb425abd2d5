import type pg from "pg";
import { DriverError } from "../connection/errors.js";

/**
 * Commits that the server calls done although no standby has them: somebody cancelled its wait for synchronous
 * replication. It says so in a warning before its answer. What is acknowledged by that may be lost with the server.
 */
export class Unreplicated {
  readonly #clients = new WeakSet<pg.ClientBase>();

  watch(client: pg.ClientBase): void {
    client.on("notice", ({ routine }) => {
      // By the name of the server's function: the message is in the server's language.
      if (routine === "SyncRepWaitForLSN") this.#clients.add(client);
    });
  }

  /** After an answer: of a commit that was warned of, nobody knows what will become. */
  check(client: pg.ClientBase): void {
    if (!this.#clients.delete(client)) return;
    throw new DriverError("unknown", undefined, new Error("the commit was not replicated: the wait for its standby was cancelled"));
  }
}
