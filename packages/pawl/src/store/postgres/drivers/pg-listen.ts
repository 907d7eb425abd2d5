import type pg from "pg";
import type { Listener, Subscription } from "./driver.js";
import { hangUp } from "./pg-hang-up.js";

const SHORTEST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;

/**
 * LISTEN on a connection of its own, re-established for as long as it is wanted. The connection may be open and deaf
 * (a pooler, a blackhole): whoever uses this probes it and calls for a new one by closing this one.
 */
export function pgListen(Client: typeof pg.Client, config: pg.ClientConfig, channel: string, listener: Listener): Subscription {
  const channels = new Set([channel]);
  let closed = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  let hears = false;

  function lost(which: pg.Client, error: unknown): void {
    if (which !== client) return;
    client = undefined;
    hears = false;
    which.removeAllListeners("notification");
    void hangUp(which);
    if (closed) return;
    listener.down(error);
    const longest = Math.min(LONGEST_RETRY_MS, SHORTEST_RETRY_MS * 2 ** failures++);
    timer = setTimeout(connect, SHORTEST_RETRY_MS + Math.random() * longest);
    timer.unref();
  }

  function connect(): void {
    const next = new Client({ keepAlive: true, application_name: "pawl listen", connectionTimeoutMillis: 5_000, ...config });
    client = next;
    next.on("error", (error) => lost(next, error));
    next.on("end", () => lost(next, new Error("the connection ended")));
    next.on("notification", (message) => {
      if (channels.has(message.channel)) listener.message(message.payload ?? "", message.channel);
    });
    next
      .connect()
      .then(() => hear(next))
      .catch((error: unknown) => lost(next, error));
  }

  /** Says `listen` for all of them, which is harmless to repeat. */
  async function hear(on: pg.Client): Promise<void> {
    const names = [...channels];
    await on.query(names.map((name) => `listen ${on.escapeIdentifier(name)}`).join(";"));
    // What was asked last can be seen by whoever watches the server, and not everybody may know the names.
    await on.query("select 1");
    if (on !== client) return;
    if (names.length < channels.size) return hear(on);
    failures = 0;
    hears = true;
    listener.up((on as pg.Client & { readonly processID?: number | null }).processID ?? undefined);
  }

  connect();
  return {
    also(name) {
      channels.add(name);
      const current = client;
      if (current !== undefined && hears) hear(current).catch((error: unknown) => lost(current, error));
    },
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
