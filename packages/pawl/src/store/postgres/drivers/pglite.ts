import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { MessageChannel, type MessagePort, type Worker } from "node:worker_threads";
import { pawlError } from "../../../core/values/error.js";
import { spawnThread } from "../../../runtime/io/thread.js";
import { DriverError, storeClosed } from "../connection/errors.js";
import { findEmbedded } from "../embedded/package.js";
import type { Driver, DriverRow, DriverTransaction, Statement } from "./driver.js";
import { lockFolder } from "./folder-lock.js";
import { PgliteClient } from "./pglite-client.js";
import { PgliteChannels } from "./pglite-listen.js";
import type { Answer, Attach, Opened, PgliteThreadData, Request } from "./pglite-protocol.js";

const PGLITE = "@electric-sql/pglite";

/**
 * Postgres in WASM, in a thread, for where the native one cannot run. In a folder it survives kill -9, not power loss
 * (it never fsyncs); without one it lives in memory.
 */
export async function openPglite(folder?: string): Promise<Driver> {
  const file = findEmbedded(PGLITE);
  if (file === undefined) throw pawlError("driver_missing", { package: PGLITE });
  const lock = folder === undefined ? undefined : await lockFolder(folder);
  try {
    const worker = await startThread({ file, folder: lock?.folder.data });
    return pgliteDriver(worker, async () => lock?.release());
  } catch (error) {
    await lock?.release();
    throw error;
  }
}

async function startThread(workerData: PgliteThreadData): Promise<Worker> {
  const worker = spawnThread(import.meta.url, "./pglite-thread.js", { name: "pglite", workerData });
  const received = await Promise.race([once(worker, "message"), once(worker, "exit").then(() => [ended])]);
  const opened = received[0] as Opened;
  if (opened.opened) return worker;
  await worker.terminate();
  throw pawlError("store_failed", { operation: "open", reason: opened.error.message });
}

const ended = { opened: false, error: { message: "PGlite's thread has ended" } } satisfies Opened;

/** One use of the connection: while it is open, whatever its own callers ask for outside of it would wait for ever. */
interface Use {
  open: boolean;
}

function pgliteDriver(worker: Worker, release: () => Promise<void>): Driver {
  const channels = new PgliteChannels();
  const client = new PgliteClient(attach(worker), (channel, payload) => channels.notify(channel, payload));
  const current = new AsyncLocalStorage<Use>();
  let closed: Promise<void> | undefined;

  worker.unref();
  worker.once("error", (error) => fail(error));
  worker.once("exit", () => fail(new Error(ended.error.message)));

  function fail(error: Error): void {
    client.end(error);
    channels.end(error);
  }

  async function ask(request: Request): Promise<Answer> {
    if (closed) throw storeClosed();
    if (current.getStore()?.open) throw pawlError("transaction_nested");
    return await send(client, request);
  }

  async function close(): Promise<void> {
    await client.ask({ kind: "close" }).catch(() => {}); // it ends all the same
    worker.removeAllListeners("exit");
    await worker.terminate();
    client.end(storeClosed());
    await release();
  }

  const driver: Driver = {
    kind: "pglite",

    async query<R extends DriverRow>({ text }: Statement, values: readonly unknown[] = []) {
      const { rows } = await ask({ kind: "query", text, values: values.map(sendable) });
      return rows as readonly R[];
    },

    async transaction(work) {
      await ask({ kind: "begin" });
      const use: Use = { open: true };
      try {
        const result = await current.run(use, () => work(transactionOn(client, use)));
        use.open = false;
        const { command } = await send(client, { kind: "commit" });
        if (command !== "COMMIT") throw new DriverError("refused", "25P02", new Error("the transaction was rolled back"));
        return result;
      } catch (error) {
        if (use.open) await client.ask({ kind: "rollback" }).catch(() => {});
        use.open = false;
        throw error;
      }
    },

    // There is one connection, and everybody waits for it anyhow.
    reading: (work) => driver.transaction(work),

    async script(text) {
      await ask({ kind: "script", text });
    },

    listen: (channel, listener) => channels.listen(client, channel, listener),

    renewalLink: async () => ({ kind: "port", port: attach(worker) }),

    async close() {
      if (current.getStore()?.open) throw pawlError("transaction_nested");
      closed ??= close();
      await closed;
    },
  };
  return driver;
}

/** A new port to the thread, which can be sent on to any other. */
function attach(worker: Worker): MessagePort {
  const { port1, port2 } = new MessageChannel();
  worker.postMessage({ attach: port2 } satisfies Attach, [port2]);
  return port1;
}

function transactionOn(client: PgliteClient, use: Use): DriverTransaction {
  const request = (text: string, values: readonly unknown[]): Request => {
    if (!use.open) throw pawlError("closed", { what: "the transaction" });
    return { kind: "query", text, values: values.map(sendable), inside: true };
  };
  return {
    async query<R extends DriverRow>({ text }: Statement, values: readonly unknown[] = []) {
      const { rows } = await send(client, request(text, values));
      return rows as readonly R[];
    },
    // Handlers get the server's own errors, as from `pg`.
    run: async (text, values = []) => ({ rows: (await client.ask(request(text, values))).rows }),
  };
}

/** Statements that failed were refused by the server; without an SQLSTATE, the thread died with the answer. */
async function send(client: PgliteClient, request: Request): Promise<Answer> {
  try {
    return await client.ask(request);
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    throw typeof code === "string" ? new DriverError("refused", code, error) : new DriverError("unknown", undefined, error);
  }
}

/** As `pg` does it: an int8 may come as a BigInt, and what is undefined is null. */
function sendable(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return value === undefined ? null : value;
}
