import { createRequire } from "node:module";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { PGlite } from "@electric-sql/pglite";
import type { Answer, Attach, ErrorFields, Opened, PgliteThreadData, PortRequest, Request, ThreadMessage } from "./pglite-protocol.js";

/**
 * The thread PGlite lives in, since it blocks the one it runs in. It is one connection, so here is the one place
 * where whoever wants it waits for a turn.
 */

/** Runs one piece of work after the other, in the order they came. */
class Turns {
  #last: Promise<unknown> = Promise.resolve();
  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** int8 as text, as `pg` answers it. */
const INT8 = 20;
const parsers = { [INT8]: (text: string) => text };

const connection = new Turns();

class Session {
  readonly #database: PGlite;
  readonly #port: MessagePort;
  /** the open transaction's own queue, and how to let the others go on */
  #transaction: { readonly turns: Turns; end(): void } | undefined;
  readonly #channels = new Set<string>();
  readonly #unsubscribe: () => void;

  constructor(database: PGlite, port: MessagePort) {
    this.#database = database;
    this.#port = port;
    port.on("message", (request: PortRequest) => this.#serve(request));
    port.on("close", () => void this.#abandon());
    this.#unsubscribe = database.onNotification((channel, payload) => {
      if (this.#channels.has(channel)) port.postMessage({ kind: "notification", channel, payload } satisfies ThreadMessage);
    });
  }

  #serve({ id, request }: PortRequest): void {
    const tell = (message: ThreadMessage) => this.#port.postMessage(message);
    this.#do(request).then(
      (answer) => tell({ kind: "answer", id, answer }),
      (error: unknown) => tell({ kind: "error", id, error: fieldsOf(error) }),
    );
  }

  #do(request: Request): Promise<Answer> {
    switch (request.kind) {
      case "query": {
        const query = () => this.#query(request.text, request.values);
        return request.inside ? this.#inside(query) : connection.take(query);
      }
      case "script":
        return connection.take(() => this.#script(request.text));
      case "begin":
        return this.#begin();
      case "commit":
        return this.#inside(() => this.#finish("commit"));
      case "rollback":
        return this.#inside(() => this.#finish("rollback"));
      case "listen":
        return connection.take(() => this.#listen(request.channel));
      case "unlisten":
        return connection.take(() => this.#unlisten(request.channel));
      case "close":
        return connection.take(() => this.#close());
    }
  }

  async #query(text: string, values: readonly unknown[]): Promise<Answer> {
    const { rows, command } = await this.#database.query<Record<string, unknown>>(text, [...values], { parsers });
    return { rows, command: command ?? "" };
  }

  async #script(text: string): Promise<Answer> {
    try {
      await this.#database.exec(text);
      return done;
    } catch (error) {
      // If the script had begun a transaction of its own, everyone after it would be inside.
      await this.#database.exec("rollback");
      throw error;
    }
  }

  /** Answers when the connection is ours, and keeps it until the transaction is finished. */
  #begin(): Promise<Answer> {
    return new Promise((begun, failed) => {
      const held = connection.take(async () => {
        await this.#database.exec("begin isolation level read committed");
        await new Promise<void>((end) => {
          this.#transaction = { turns: new Turns(), end };
          begun(done);
        });
      });
      held.catch(failed);
    });
  }

  #inside<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#transaction) return Promise.reject(new Error("no transaction is open"));
    return this.#transaction.turns.take(work);
  }

  async #finish(how: "commit" | "rollback"): Promise<Answer> {
    try {
      return await this.#query(how, []);
    } finally {
      this.#transaction?.end();
      this.#transaction = undefined;
    }
  }

  async #listen(channel: string): Promise<Answer> {
    await this.#database.exec(`listen ${quoted(channel)}`);
    this.#channels.add(channel);
    return done;
  }

  async #unlisten(channel: string): Promise<Answer> {
    this.#channels.delete(channel);
    await this.#database.exec(`unlisten ${quoted(channel)}`);
    return done;
  }

  async #close(): Promise<Answer> {
    await this.#database.close();
    return done;
  }

  /** Whoever held this port is gone: what it left open must not block the others. */
  async #abandon(): Promise<void> {
    this.#unsubscribe();
    if (this.#transaction) await this.#inside(() => this.#finish("rollback")).catch(() => {});
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

const done: Answer = { rows: [], command: "" };

/** PGlite adds the whole query and its values, which may be large or not fit through a port. */
function fieldsOf(error: unknown): ErrorFields {
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(error as object)) {
    if (typeof value === "string" && name !== "query") fields[name] = value;
  }
  return { ...fields, message: error instanceof Error ? error.message : String(error) };
}

async function main(port: MessagePort, { file, folder }: PgliteThreadData): Promise<void> {
  const { PGlite } = createRequire(file)(file) as typeof import("@electric-sql/pglite");
  const database = await PGlite.create({ ...(folder === undefined ? {} : { dataDir: folder }), relaxedDurability: false });
  port.on("message", ({ attach }: Attach) => void new Session(database, attach));
  port.postMessage({ opened: true } satisfies Opened);
}

if (parentPort) {
  const port = parentPort;
  main(port, workerData as PgliteThreadData).catch((error: unknown) => port.postMessage({ opened: false, error: fieldsOf(error) } satisfies Opened));
}
