import { open } from "../../packages/pawl/src/open.js";
import { type EmbeddedServer, startEmbedded } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import type { Inspector } from "../contract/inspector.js";
import { inspectPostgres } from "./inspect-postgres.js";

type Closable = Inspector & { close(): Promise<void> };

/** Joins the embedded server when first asked: it is the system's to start, from nothing. */
export function inspectEmbedded(folder: string): Closable {
  let joined: Promise<{ readonly server: EmbeddedServer; readonly inspect: Closable }> | undefined;
  const join = async () => {
    const server = await startEmbedded(folder);
    const { host, port, user, database } = server.connection;
    return { server, inspect: await inspectPostgres({ kind: "postgres", url: "", host, port, user, database }, "pawl", server.pid) };
  };
  const ask = async () => {
    joined ??= join();
    return (await joined).inspect;
  };
  return {
    shared: true,
    counts: async () => (await ask()).counts(),
    unfinished: async () => (await ask()).unfinished(),
    unsettled: async () => (await ask()).unsettled(),
    usage: async () => (await ask()).usage(),
    pin: async () => (await ask()).pin(),
    query: async (sql) => (await ask()).query(sql),
    async close() {
      if (joined === undefined) return;
      const { server, inspect } = await joined;
      await inspect.close();
      await server.release();
    },
  };
}

/** PGlite is one process's at a time: it can be looked into when its worker has stopped, through the public API. */
export function inspectPGlite(folder: string): Closable {
  const counts = async () => {
    await using pawl = await open(folder, { engine: "pglite", maintenance: false });
    const { ready, scheduled, parked, blocked, running, succeeded } = await pawl.counts();
    return { unfinished: ready + scheduled + parked + blocked + running, finished: succeeded };
  };
  const cannot = () => Promise.reject(new Error("PGlite has no server to ask"));
  return {
    shared: false,
    counts,
    unfinished: async () => (await counts()).unfinished,
    unsettled: cannot,
    usage: cannot,
    pin: cannot,
    query: cannot,
    async close() {},
  };
}
