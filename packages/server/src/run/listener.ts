import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { pawlError } from "pawl/service";
import type { Address } from "../config/kinds.js";
import { ConfigError, reasonOf } from "../config/problem.js";
import { refuseSocket, SERVER_LIMITS } from "../http/app.js";
import { asPawlError, problemOf, retryAfterOf } from "../http/problem.js";
import { noteOf, pathOf, type RequestFacts, RequestObserver } from "../http/request/request-facts.js";

/** Certificates of the service, and whether clients must show one. */
export interface ListenerTls {
  readonly secure: SecureContextOptions;
  readonly requestClientCertificates: boolean;
}

/** As the API has them: slow and silent clients are cut off. */
const LISTENER_LIMITS = { ...SERVER_LIMITS, connectionsCheckingInterval: 1_000 };
const MAX_HEADERS = 100;

/**
 * The HTTP listener of the service: it is open before there is a store and until the last request is answered, and tells the truth
 * about it. `/livez` says that the process lives, `/readyz` that it serves; all else goes to whoever was handed over to.
 */
export class HttpListener {
  readonly #server: Server | TlsServer;
  #state: "starting" | "up" | "stopping" = "starting";
  #handler: RequestListener = answerStarting;
  readonly #observer: RequestObserver | undefined;

  /** `onRequest` hears of every request once it is over, whoever answered it. */
  constructor(tls?: ListenerTls, onRequest?: (facts: RequestFacts) => void) {
    this.#observer = onRequest && new RequestObserver(onRequest);
    const listener: RequestListener = (request, response) => this.#answer(request, response);
    this.#server =
      tls === undefined
        ? createServer(LISTENER_LIMITS, listener)
        : createTlsServer(
            { ...LISTENER_LIMITS, ...tls.secure, requestCert: tls.requestClientCertificates, rejectUnauthorized: tls.requestClientCertificates },
            listener,
          );
    this.#server.maxHeadersCount = MAX_HEADERS;
    this.#server.maxRequestsPerSocket = SERVER_LIMITS.maxRequestsPerSocket;
    this.#server.on("clientError", (error, socket) => refuseSocket(error, socket as Socket, this.#observer));
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
  setHandler(handler: RequestListener): void {
    this.#handler = handler;
    if (this.#state === "starting") this.#state = "up";
  }

  /** New connections are made with these; those that are open go on with theirs. */
  renew(secure: SecureContextOptions): void {
    if ("setSecureContext" in this.#server) this.#server.setSecureContext(secure);
  }

  /** Says that it is not ready, so that whoever sends requests sends them elsewhere. Those that come are still served. */
  markNotReady(): void {
    this.#state = "stopping";
  }

  /** Takes no more connections, and waits for the requests under way: until the signal, then they are cut off. */
  async close(deadline: AbortSignal): Promise<void> {
    this.markNotReady();
    const cutOff = () => this.#server.closeAllConnections();
    deadline.addEventListener("abort", cutOff, { once: true });
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      if (deadline.aborted) cutOff();
    });
    deadline.removeEventListener("abort", cutOff);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.#observer?.observe(request, response);
    // Or the client would send its next request on a connection that is about to go.
    if (this.#state === "stopping") response.setHeader("connection", "close");
    if ("setSecureContext" in this.#server) response.setHeader("strict-transport-security", "max-age=31536000");
    if (this.#state === "stopping" && pathOf(request) === "/readyz") refuse(request, response, pawlError("service_stopping"));
    else this.#handler(request, response);
  }
}

/** What is answered before there is a store. */
const answerStarting: RequestListener = (request, response) => {
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
