import pg from "pg";
import type { Listener, Subscription } from "./driver.js";
import { hangUp } from "./pg-hang-up.js";

const SHORTEST_RETRY = 100;
const LONGEST_RETRY = 5_000;

/**
 * LISTEN on a connection of its own, re-established for as long as it is wanted. The connection may be open and deaf
 * (a pooler, a blackhole): whoever uses this probes it and calls for a new one by closing this one.
 */
export function pgListen(config: pg.ClientConfig, channel: string, listener: Listener): Subscription {
  let closed = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;

  function lost(which: pg.Client, error: unknown): void {
    if (which !== client) return;
    client = undefined;
    which.removeAllListeners("notification");
    void hangUp(which);
    if (closed) return;
    listener.down(error);
    const longest = Math.min(LONGEST_RETRY, SHORTEST_RETRY * 2 ** failures++);
    timer = setTimeout(connect, SHORTEST_RETRY + Math.random() * longest);
    timer.unref();
  }

  function connect(): void {
    const next = new pg.Client({ keepAlive: true, application_name: "pawl listen", connectionTimeoutMillis: 5_000, ...config });
    client = next;
    next.on("error", (error) => lost(next, error));
    next.on("end", () => lost(next, new Error("the connection ended")));
    next.on("notification", (message) => {
      if (message.channel === channel) listener.message(message.payload ?? "");
    });
    next
      .connect()
      .then(() => next.query(`listen ${pg.escapeIdentifier(channel)}`))
      .then(() => {
        failures = 0;
        if (next === client) listener.up();
      })
      .catch((error: unknown) => lost(next, error));
  }

  connect();
  return {
    async close() {
      closed = true;
      clearTimeout(timer);
      const current = client;
      client = undefined;
      current?.removeAllListeners("notification");
      if (current !== undefined) await hangUp(current);
    },
  };
}
