import { type IncomingMessage, Agent as PlainAgent, request as plainRequest, type RequestOptions } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";

/** What a call shares connections with. Those of one pool never wait for one that a call of another holds. */
export type HttpPool = "calls" | "waits" | "work";

/** Connections to one HTTP server, kept open between calls: `node:http` costs a fraction of what `fetch` does. */
export class HttpConnections {
  readonly #url: URL;
  readonly #agents: Readonly<Record<HttpPool, PlainAgent | SecureAgent>>;
  readonly #request: typeof plainRequest;
  #closed = false;

  constructor(url: URL, tls: SecureOptions = {}) {
    this.#url = url;
    const secure = url.protocol === "https:";
    const agent = () =>
      secure ? new SecureAgent({ keepAlive: true, maxSockets: MAX_SOCKETS, ...tls }) : new PlainAgent({ keepAlive: true, maxSockets: MAX_SOCKETS });
    this.#agents = { calls: agent(), waits: agent(), work: agent() };
    this.#request = secure ? secureRequest : plainRequest;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Sends a request and answers with the whole body. Rejects if the connection fails, or nothing comes for `timeout` ms. */
  async send(call: HttpCall): Promise<HttpAnswer> {
    const response = await this.open(call);
    return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
  }

  /** The same, with the body as it comes. */
  open({ method, path, headers, body, timeout, signal, pool = "calls" }: HttpCall): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options: RequestOptions = {
        method,
        agent: this.#agents[pool],
        headers: { ...headers, ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }) },
        timeout,
      };
      const sent = this.#request(new URL(path, this.#url), { ...options, ...(signal === undefined ? {} : { signal }) }, resolve);
      sent.on("timeout", () => sent.destroy(new Error(`no answer within ${timeout} ms`)));
      sent.on("error", (error) => reject(new HttpFailure(error, sent.reusedSocket)));
      sent.end(body);
    });
  }

  close(): void {
    this.#closed = true;
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }
}

/** All of it; a connection that breaks halfway is one that failed. */
export async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch (error) {
    throw new HttpFailure(error as Error, false);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The connection failed. `reused`: it was an old one, which the server may have closed before it saw the request. */
export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  constructor(
    override readonly cause: Error & { readonly code?: string },
    readonly reused: boolean,
  ) {
    super(cause.message);
  }

  /** Whether the request cannot have reached the server. */
  get unsent(): boolean {
    return UNSENT_CODES.has(this.cause.code ?? "");
  }
}

export interface HttpCall {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** ms without a sign of the server */
  readonly timeout: number;
  readonly signal?: AbortSignal;
  readonly pool?: HttpPool;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/** What a server's certificate is checked against, and what is shown of one's own: as `node:tls` names them. */
export interface SecureOptions {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
}

const MAX_SOCKETS = 64;
const UNSENT_CODES = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
]);
