import type { MessagePort } from "node:worker_threads";
import type { Answer, PortRequest, Request, Rows, ThreadMessage } from "./pglite-protocol.js";

/**
 * One side of a port to PGlite's thread: asks and hears. It needs nothing of the thread that opened the database, so
 * any thread that was given a port can run statements, also while the main one is blocked.
 */
export class PgliteClient {
  readonly #port: MessagePort;
  readonly #pending = new Map<number, { resolve(answer: Answer): void; reject(error: unknown): void }>();
  readonly #notified: (channel: string, payload: string) => void;
  #last = 0;
  #ended: Error | undefined;

  constructor(port: MessagePort, notified: (channel: string, payload: string) => void = () => {}) {
    this.#port = port;
    this.#notified = notified;
    port.on("message", (message: ThreadMessage) => this.#hear(message));
    port.on("close", () => this.end(new Error("PGlite's thread has ended")));
    // Only waiting for an answer keeps a process alive.
    port.unref();
  }

  ask(request: Request): Promise<Answer> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#port.postMessage({ id, request } satisfies PortRequest); // throws for what cannot be sent: a function, say
      if (this.#pending.size === 0) this.#port.ref();
      this.#pending.set(id, { resolve, reject });
    });
  }

  /** What was not answered yet fails, and so does everything asked from now on. */
  end(reason: Error): void {
    this.#ended ??= reason;
    for (const { reject } of this.#pending.values()) reject(this.#ended);
    this.#pending.clear();
    this.#port.close();
  }

  #hear(message: ThreadMessage): void {
    if (message.kind === "notification") {
      this.#notified(message.channel, message.payload);
      return;
    }
    const waiting = this.#pending.get(message.id);
    if (!this.#pending.delete(message.id)) return;
    if (this.#pending.size === 0) this.#port.unref();
    if (message.kind === "answer") waiting?.resolve(message.answer);
    else waiting?.reject(Object.assign(new Error(message.error.message), message.error));
  }
}

/** For a thread that was given a port: runs a statement and answers its rows. */
export function portConnection(port: MessagePort): (text: string, values: readonly unknown[]) => Promise<Rows> {
  const client = new PgliteClient(port);
  return async (text, values) => (await client.ask({ kind: "query", text, values })).rows;
}
