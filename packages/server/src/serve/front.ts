import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { pawlError } from "pawl";
import type { Address } from "../config/kinds.js";
import { ConfigError, reasonOf } from "../config/problem.js";
import { PATIENCE, refuseSocket } from "../http/app.js";
import { asPawlError, problemOf, retryAfterOf } from "../http/problem.js";
import { noteOf, pathOf, type RequestFacts, RequestFollower } from "../http/request-facts.js";

/** Certificates of the service, and whether clients must show one. */
export interface FrontTls {
  readonly secure: SecureContextOptions;
  readonly askClients: boolean;
}

/** As the API has them: slow and silent clients are cut off. */
const LIMITS = { ...PATIENCE, connectionsCheckingInterval: 1_000 };
const MOST_HEADERS = 100;

/**
 * The door of the service: it is open before there is a store and until the last request is answered, and tells the truth
 * about it. `/livez` says that the process lives, `/readyz` that it serves; all else goes to whoever was handed over to.
 */
export class Front {
  readonly #server: Server | TlsServer;
  #state: "starting" | "up" | "stopping" = "starting";
  #handler: RequestListener = notYet;
  readonly #follower: RequestFollower | undefined;

  /** `onRequest` hears of every request once it is over, whoever answered it. */
  constructor(tls?: FrontTls, onRequest?: (facts: RequestFacts) => void) {
    this.#follower = onRequest && new RequestFollower(onRequest);
    const listener: RequestListener = (request, response) => this.#answer(request, response);
    this.#server =
      tls === undefined
        ? createServer(LIMITS, listener)
        : createTlsServer({ ...LIMITS, ...tls.secure, requestCert: tls.askClients, rejectUnauthorized: tls.askClients }, listener);
    this.#server.maxHeadersCount = MOST_HEADERS;
    this.#server.maxRequestsPerSocket = PATIENCE.maxRequestsPerSocket;
    this.#server.on("clientError", (error, socket) => refuseSocket(error, socket as Socket, this.#follower));
  }

  /** Answers with where it can be reached. */
  async listen({ host, port }: Address, where = "listen"): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException) => {
        const what = error.code === "EADDRINUSE" ? `${host}:${port} is taken by another process` : reasonOf(error);
        reject(new ConfigError([{ where, what, help: "choose another with --listen host:port (port 0: any that is free)" }]));
      };
      this.#server.once("error", fail);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", fail);
        resolve();
      });
    });
    const { address, port: actual, family } = this.#server.address() as AddressInfo;
    const scheme = "setSecureContext" in this.#server ? "https" : "http";
    return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${actual}`;
  }

  /** From here on the service answers by itself. */
  handOver(handler: RequestListener): void {
    this.#handler = handler;
    if (this.#state === "starting") this.#state = "up";
  }

  /** New connections are made with these; those that are open go on with theirs. */
  renew(secure: SecureContextOptions): void {
    if ("setSecureContext" in this.#server) this.#server.setSecureContext(secure);
  }

  /** Says that it is not ready, so that whoever sends requests sends them elsewhere. Those that come are still served. */
  sayNotReady(): void {
    this.#state = "stopping";
  }

  /** Takes no more connections, and waits for the requests under way: until the signal, then they are cut off. */
  async close(deadline: AbortSignal): Promise<void> {
    this.sayNotReady();
    const cut = () => this.#server.closeAllConnections();
    deadline.addEventListener("abort", cut, { once: true });
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      if (deadline.aborted) cut();
    });
    deadline.removeEventListener("abort", cut);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.#follower?.follow(request, response);
    // Or the client would send its next request on a connection that is about to go.
    if (this.#state === "stopping") response.setHeader("connection", "close");
    if ("setSecureContext" in this.#server) response.setHeader("strict-transport-security", "max-age=31536000");
    if (this.#state === "stopping" && pathOf(request) === "/readyz") refuse(request, response, pawlError("service_stopping"));
    else this.#handler(request, response);
  }
}

/** What is answered before there is a store. */
const notYet: RequestListener = (request, response) => {
  if (pathOf(request) === "/livez") answer(response, 200, { status: "alive" });
  else refuse(request, response, pawlError("service_starting"));
};

/** An error as the API tells it, where there is no API. */
function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const note = noteOf(request);
  const problem = problemOf(error, note.id);
  note.code = problem.code;
  response.setHeader("request-id", note.id);
  const after = retryAfterOf(asPawlError(error));
  if (after !== undefined) response.setHeader("retry-after", after);
  answer(response, problem.status, problem, "application/problem+json");
}

function answer(response: ServerResponse, status: number, body: object, type = "application/json"): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text), "cache-control": "no-store" });
  response.end(text);
}
