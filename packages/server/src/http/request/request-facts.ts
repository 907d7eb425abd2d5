import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** One request and its answer, for a log: who asked for what, what came of it, and nothing of what was sent. */
export interface RequestFacts {
  /** as callers have it from the header `Request-Id` and from problems; undefined: it was no request that could be read */
  readonly request: string | undefined;
  readonly method: string | undefined;
  /** the path as the contract has it; undefined: there is no such route */
  readonly route: string | undefined;
  /** the path that was asked for, without its query */
  readonly path: string | undefined;
  /** where it comes from: the other end of the connection, or what a trusted proxy saw */
  readonly address: string;
  /** the id of a key or the name in a certificate; undefined: nobody was asked who calls, or nobody was believed */
  readonly caller: string | undefined;
  /** undefined: the caller is none of a tenant */
  readonly tenant: string | undefined;
  /** undefined: the caller had gone before there was an answer */
  readonly status: number | undefined;
  /** of the problem that was answered */
  readonly code: string | undefined;
  /** ms until the last byte of the answer was handed over, or the caller had gone */
  readonly duration: number;
  /** bytes over the connection, headers included */
  readonly received: number;
  readonly sent: number;
}

/** What those who serve a request add to what is told of it. */
export type RequestNote = { -readonly [F in "route" | "address" | "caller" | "tenant" | "status" | "code"]?: RequestFacts[F] | undefined } & {
  readonly id: string;
};

const notes = new WeakMap<IncomingMessage, RequestNote>();

/** Where facts of a request are noted: from its first byte on, whoever comes to serve it. */
export function noteOf(request: IncomingMessage): RequestNote {
  let note = notes.get(request);
  if (note === undefined) {
    note = { id: `req_${randomUUID()}` };
    notes.set(request, note);
  }
  return note;
}

interface OpenRequest {
  readonly note: RequestNote;
  open: boolean;
}

/** Tells of every request once it is over, and of what was refused before it was one. */
export class RequestObserver {
  readonly #latest = new WeakMap<Socket, OpenRequest>();
  readonly #counted = new WeakMap<Socket, { received: number; sent: number }>();

  constructor(private readonly onFinished: (facts: RequestFacts) => void) {}

  observe(request: IncomingMessage, response: ServerResponse): void {
    const { socket, method } = request;
    const address = socket.remoteAddress ?? "";
    const begun = performance.now();
    const note = noteOf(request);
    const current = { note, open: true };
    this.#latest.set(socket, current);
    response.once("close", () => {
      current.open = false;
      this.onFinished({
        request: note.id,
        method,
        route: note.route,
        path: pathOf(request),
        address: note.address ?? address,
        caller: note.caller,
        tenant: note.tenant,
        status: response.headersSent ? response.statusCode : note.status,
        code: note.code,
        duration: performance.now() - begun,
        ...this.#bytesOf(socket),
      });
    });
  }

  /** A connection was refused by itself: what was going on on it, or what never became a request, was answered so. */
  onRefused(socket: Socket, status: number, code: string): void {
    const current = this.#latest.get(socket);
    if (current?.open === true) {
      current.note.status = status;
      current.note.code = code;
      return;
    }
    const nothing = { request: undefined, method: undefined, route: undefined, path: undefined, caller: undefined, tenant: undefined };
    this.onFinished({ ...nothing, address: socket.remoteAddress ?? "", status, code, duration: 0, ...this.#bytesOf(socket) });
  }

  /** Since the request before it on the same connection. */
  #bytesOf(socket: Socket): Pick<RequestFacts, "received" | "sent"> {
    const { bytesRead, bytesWritten } = socket;
    const before = this.#counted.get(socket) ?? { received: 0, sent: 0 };
    this.#counted.set(socket, { received: bytesRead, sent: bytesWritten });
    return { received: bytesRead - before.received, sent: bytesWritten - before.sent };
  }
}

const MAX_PATH_CHARACTERS = 200;

/** What is asked for, without its query: that holds what callers look for, and what they should not have put there. */
export function pathOf({ url = "/" }: Pick<IncomingMessage, "url">): string {
  return (url.split(/[?#]/)[0] as string).slice(0, MAX_PATH_CHARACTERS);
}
