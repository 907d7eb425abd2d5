import type { IncomingMessage, Server } from "node:http";
import type { ServerOptions as TlsOptions } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { blockOf, type Pawl, type PawlError, pawlError, type Replies, type Scheduler } from "pawl";
import type { Networks } from "../net/network.js";
import { MOST_OF_ONE, Sessions } from "../pull/sessions.js";
import { namesIn } from "../tls/names.js";
import { type Access, type Credential, OPEN_ACCESS, type Principal } from "./access.js";
import { Bodies, type BodyLimits } from "./bodies.js";
import type { BodyCaller } from "./body-budget.js";
import { clientAddress } from "./client-address.js";
import type { AnyRoute } from "./contract/route.js";
import { Denials } from "./denials.js";
import { EventHub, type HubOptions } from "./events/hub.js";
import { type ExportLimits, Exports } from "./exports.js";
import { shareOwner } from "./fair-share.js";
import { whyForeign } from "./foreign.js";
import { goneOrStopping, willStop } from "./gone.js";
import { type AuditLog, denialIn, denialOf, type Told } from "./guard.js";
import type { Handled, Parts } from "./handler.js";
import { parseJson, shapeOf } from "./json.js";
import { type LongPollLimits, LongPolls } from "./long-polls.js";
import { type Answered, pipeline } from "./pipeline.js";
import { asPawlError, isFault, problemOf, retryAfterOf } from "./problem.js";
import { mayAsk } from "./reach.js";
import { Readiness } from "./ready.js";
import { noteOf, pathOf, type RequestFollower } from "./request-facts.js";
import { whyAmbiguous } from "./request-head.js";
import { inTrace, type RequestTracing, requestTrace } from "./request-trace.js";
import { routes as CONTRACTED } from "./routes/index.js";
import { ValueBudget, type ValueLimits } from "./value-budget.js";

export interface AppOptions {
  readonly pawl: Pawl;
  /** who calls; left out: everybody is an admin of all tenants, which is for loopback only */
  readonly access?: Access;
  /** answers by Idempotency-Key; left out: the header is refused, since it would promise something */
  readonly replies?: Replies;
  readonly audit?: AuditLog;
  readonly tls?: TlsOptions;
  /** where proxies before it are; left out: there are none, and `X-Forwarded-For` is nobody's word */
  readonly trustedProxies?: Networks;
  readonly version?: string;
  readonly streams?: HubOptions;
  readonly waits?: LongPollLimits;
  readonly claims?: LongPollLimits;
  readonly exports?: ExportLimits;
  readonly bodies?: BodyLimits;
  readonly values?: ValueLimits;
  /** what it serves; left out: the contract */
  readonly routes?: readonly Handled[];
  /** follows requests; left out: only what callers' headers say of their trace goes with what they enqueue */
  readonly tracing?: RequestTracing;
  /** hears of what went wrong with the service itself, which callers are not told */
  readonly onFault?: (fault: Fault) => void;
}

export interface Fault {
  readonly error: unknown;
  /** undefined: it is of no single request */
  readonly request: string | undefined;
  readonly route: string;
}

export interface App extends FastifyInstance {
  /** From here on `/readyz` says no; what is asked is still served. */
  drain(): void;
}

const BODY_LIMIT = 1_048_576;

/** Of a server: ms and counts that a client may take before it is cut off, and what is left to the application. */
export const PATIENCE = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 60_000,
  maxRequestsPerSocket: 100_000,
  maxHeaderSize: 16_384,
  // Node's own answer has no body: the application says what is missing.
  requireHostHeader: false,
};

/** The API on an open store. It listens when told to; `inject` is for tests. */
export function createApp(options: AppOptions): App {
  const { pawl, access = OPEN_ACCESS, audit, onFault, routes = CONTRACTED } = options;
  const readiness = new Readiness(pawl);
  const hub = new EventHub(pawl, options.streams);
  const sessions = new Sessions(pawl);
  const stopping = willStop();
  const parts: Parts = {
    pawl,
    version: options.version ?? "0.1.0",
    sessions,
    waits: new LongPolls("a wait for a job", options.waits),
    // Each of a credential's workers asks once at a time, and may repeat that after its connection was lost.
    claims: new LongPolls("a wait for work", { perCredential: 2 * MOST_OF_ONE, ...options.claims }),
    exports: new Exports(options.exports),
    ready: () => readiness.check(),
    subscribe: (call) => hub.subscribe(call),
  };
  const principals = new WeakMap<FastifyRequest, Principal>();
  /** their bodies were read in part: the connection cannot be used again */
  const unread = new WeakSet<FastifyRequest>();
  const bodies = new Bodies(options.bodies);
  const values = new ValueBudget(options.values);
  /** gives back what the value of the body was counted for, once nothing is done with it any more */
  const valued = new WeakMap<FastifyRequest, () => void>();
  const leave = (request: FastifyRequest) => {
    valued.get(request)?.();
    valued.delete(request);
  };
  const app = makeServer(options.tls, async (request, payload) => {
    const limit = request.routeOptions.bodyLimit ?? BODY_LIMIT;
    try {
      const whose = bodyCaller(principals.get(request) ?? NOBODY, addressOf(request));
      return await bodies.read(payload, { limit, ...whose }, async (body, signal) => {
        if (body.length === 0) return undefined;
        const shape = shapeOf(body);
        valued.set(request, await values.enter(whose.owner, shape.heap, signal));
        return parseJson(body, shape);
      });
    } catch (error) {
      if (payload.readableDidRead && !payload.readableEnded) unread.add(request);
      throw error;
    }
  });
  const schedulerFor = scopes(pawl);

  const addressOf = ({ raw, headers }: FastifyRequest) =>
    clientAddress(raw.socket.remoteAddress ?? "", headers["x-forwarded-for"], options.trustedProxies);
  const credentialOf = (request: FastifyRequest): Credential => ({ ...shownBy(request), address: addressOf(request) });
  const toldOf = (route: AnyRoute, request: FastifyRequest): Told => ({
    route,
    principal: principals.get(request),
    address: addressOf(request),
    request: request.id,
  });
  const denials = audit === undefined ? undefined : new Denials(audit, (error) => onFault?.({ error, request: undefined, route: "audit" }));
  const deny = async (error: PawlError, route: AnyRoute, request: FastifyRequest) => {
    const denial = denialIn(error);
    if (denial !== undefined) await denials?.tell(denialOf(toldOf(route, request), denial));
  };
  const identify = async ({ inOutage }: AnyRoute, request: FastifyRequest): Promise<Principal> => {
    const found = await access.authenticate({ ...credentialOf(request), inOutage });
    if (!("refused" in found)) return found;
    if (found.refused === "mismatch") throw pawlError("identity_mismatch");
    if (found.refused === "foreign") throw pawlError("caller_foreign", { reason: found.reason });
    throw found.refused === "limited"
      ? pawlError("too_many_requests", { what: "a wrong credential", retryAfter: found.retryAfter })
      : pawlError("unauthenticated");
  };

  /** Before the body is read: who it is, and whether they may do this to anything at all. */
  const admit = (route: AnyRoute) => async (request: FastifyRequest) => {
    const note = noteOf(request.raw);
    note.route = route.path;
    if ("open" in route.policy) return;
    try {
      const principal = await identify(route, request);
      principals.set(request, principal);
      note.caller = principal.name;
      note.tenant = principal.tenant;
      mayAsk(route, principal);
    } catch (error) {
      await deny(asPawlError(error), route, request);
      throw error;
    }
  };

  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    leave(request);
    const known = asPawlError(error);
    const problem = problemOf(known, request.id);
    const note = noteOf(request.raw);
    note.code = problem.code;
    if (isFault(known)) onFault?.({ error: known.cause ?? known, request: request.id, route: `${request.method} ${note.route ?? "?"}` });
    const wait = retryAfterOf(known);
    if (wait !== undefined) void reply.header("retry-after", String(wait));
    if (problem.status === 401) void reply.header("www-authenticate", 'Bearer realm="pawl"');
    // What is left of a refused body is not worth reading.
    if (unread.has(request) || (request.body === undefined && request.headers["transfer-encoding"] !== undefined))
      void reply.header("connection", "close");
    return reply.code(problem.status).type("application/problem+json").send(JSON.stringify(problem));
  };

  app.setErrorHandler(fail);
  app.setNotFoundHandler((request, reply) => fail(pawlError("route_unknown", { method: request.method, path: pathOf(request.raw) }), request, reply));
  app.addHook("onRequest", async (request, reply) => {
    noteOf(request.raw).address = addressOf(request);
    void reply.headers(HEADERS).header("request-id", request.id);
    if (options.tls !== undefined) void reply.header("strict-transport-security", "max-age=31536000");
    const ambiguous = whyAmbiguous(request.raw);
    if (ambiguous === undefined) return;
    // Where the next request on this connection begins may be as unclear.
    void reply.header("connection", "close");
    throw pawlError("request_malformed", { reason: ambiguous });
  });
  app.addHook("onSend", async (_, reply) => {
    // Or the connection would be kept open for a request that is not going to be served.
    if (stopping.signal.aborted) void reply.header("connection", "close");
  });
  app.addHook("preClose", async () => {
    readiness.stop();
    stopping.abort(pawlError("service_stopping"));
    await hub.close();
    await sessions.stop();
    await denials?.stop();
  });

  for (const { route, handler } of routes) {
    const serve = pipeline({
      route,
      handler,
      parts,
      ...(options.replies === undefined ? {} : { replies: options.replies }),
      ...(audit === undefined ? {} : { audit }),
    });
    app.route({
      method: route.method,
      url: urlOf(route),
      bodyLimit: route.limits?.body ?? BODY_LIMIT,
      onRequest: admit(route),
      handler: async (request, reply) => {
        const principal = principals.get(request) ?? NOBODY;
        try {
          const answer = await serve({
            request,
            principal,
            scheduler: inTrace(schedulerFor(principal), requestTrace(options.tracing, route, principal.tenant, request, reply)),
            told: toldOf(route, request),
            signal: () => goneOrStopping(reply.raw, stopping.signal),
            stillAllowed: async () => {
              const now = await access.authenticate(credentialOf(request)).catch(() => principal);
              return !("refused" in now) && now.tenant === principal.tenant;
            },
          });
          noteOf(request.raw).code = answer.code;
          return send(reply, answer);
        } catch (error) {
          await deny(asPawlError(error), route, request);
          throw error;
        } finally {
          leave(request);
        }
      },
    });
  }
  refuseOtherMethods(
    app,
    routes.map(({ route }) => route),
    fail,
  );
  return Object.assign(app, { drain: () => readiness.stop() }) as App;
}

const NOBODY: Principal = { name: "anybody", tenant: undefined, grants: [], anonymous: true };

/** Callers without a credential are told apart by their addresses. */
function bodyCaller(principal: Principal, address: string): BodyCaller {
  const { tenant, name, anonymous } = principal;
  const caller = JSON.stringify([tenant, name, anonymous === true ? blockOf(address) : ""]);
  return { caller, owner: anonymous === true ? caller : shareOwner(principal) };
}

const HEADERS = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
} as const;

function makeServer(tls: TlsOptions | undefined, readBody: (request: FastifyRequest, payload: IncomingMessage) => Promise<unknown>): FastifyInstance {
  const common = {
    genReqId: (request: IncomingMessage) => noteOf(request).id,
    bodyLimit: BODY_LIMIT,
    exposeHeadRoutes: false,
    forceCloseConnections: "idle" as const,
    requestTimeout: PATIENCE.requestTimeout,
    keepAliveTimeout: PATIENCE.keepAliveTimeout,
    maxRequestsPerSocket: PATIENCE.maxRequestsPerSocket,
    routerOptions: { maxParamLength: 4_096 },
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => refuseSocket(error, socket),
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      const problem = problemOf(error, request.id);
      noteOf(request.raw).code = problem.code;
      void reply
        .headers(HEADERS)
        .header("request-id", request.id)
        .code(problem.status)
        .type("application/problem+json")
        .send(JSON.stringify(problem));
    },
  };
  const http = {
    headersTimeout: PATIENCE.headersTimeout,
    maxHeaderSize: PATIENCE.maxHeaderSize,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: PATIENCE.requireHostHeader,
  };
  const app = (tls === undefined ? fastify({ ...common, http }) : fastify({ ...common, https: { ...http, ...tls } })) as FastifyInstance;
  (app.server as Server).maxHeadersCount = 100;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^application\/json(\s*;\s*charset="?utf-8"?)?\s*$/i, async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.headers["content-encoding"] !== undefined)
      throw pawlError("media_unsupported", { media: `encoding ${told(request.headers["content-encoding"])}` });
    return readBody(request, payload);
  });
  app.addContentTypeParser("*", async ({ headers }: FastifyRequest) => {
    throw pawlError("media_unsupported", { media: `type ${told(headers["content-type"] ?? "")}` });
  });
  return app;
}

/** What a caller sent, as far as anybody needs to see it. */
function told(header: string): string {
  return JSON.stringify(header.slice(0, 100));
}

/** What is no HTTP, or comes too slowly, gets one line and no second chance. */
export function refuseSocket(error: NodeJS.ErrnoException, socket: Socket, follower?: RequestFollower): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const slow = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  const problem = problemOf(slow ? pawlError("request_timeout") : pawlError("request_malformed", { reason: "its headers or framing" }));
  follower?.refused(socket, problem.status, problem.code);
  const body = JSON.stringify(problem);
  const head = [`HTTP/1.1 ${problem.status} ${slow ? "Request Timeout" : "Bad Request"}`, "content-type: application/problem+json"];
  socket.end([...head, `content-length: ${Buffer.byteLength(body)}`, "connection: close", "", body].join("\r\n"));
}

function send(reply: FastifyReply, { status, media, body, replayed }: Answered): FastifyReply {
  if (replayed) void reply.header("idempotency-replayed", "true");
  if (media.startsWith("text/html"))
    void reply.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  // A stream is the last thing on its connection: when it ends, so does that.
  if (media.startsWith("text/event-stream")) void reply.header("connection", "close");
  if (status === 204) return reply.code(204).send();
  return reply.code(status).type(media).send(body);
}

function shownBy(request: FastifyRequest): Omit<Credential, "address"> {
  const socket = request.raw.socket as Partial<TLSSocket>;
  const names = socket.authorized === true ? (socket.getPeerCertificate?.().subjectaltname ?? "") : "";
  const { method, headers } = request;
  return { authorization: headers.authorization, certificate: namesIn(names), foreign: whyForeign(method, headers) };
}

/** The scheduler of each caller is kept: it remembers how the options of tasks are resolved. */
function scopes(pawl: Pawl): (principal: Principal) => Scheduler {
  const known = new Map<string, Scheduler>();
  return (principal) => {
    const caller = shareOwner(principal);
    let scheduler = known.get(caller);
    if (scheduler === undefined) {
      if (known.size >= 1_000) known.clear();
      const { tenant } = principal;
      scheduler = pawl.as(tenant === undefined ? { caller } : { caller, tenant });
      known.set(caller, scheduler);
    }
    return scheduler;
  };
}

export function urlOf({ path }: Pick<AnyRoute, "path">): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** A path that exists says which methods it knows, to whoever asks. */
function refuseOtherMethods(
  app: FastifyInstance,
  known: readonly AnyRoute[],
  fail: (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply,
): void {
  for (const path of new Set(known.map((route) => route.path))) {
    const allowed = known.filter((route) => route.path === path).map(({ method }) => method);
    app.route({
      method: METHODS.filter((method) => !(allowed as readonly string[]).includes(method)),
      url: urlOf({ path }),
      onRequest: async (request, reply) => {
        void reply.header("allow", allowed.join(", "));
        noteOf(request.raw).route = path;
        await fail(pawlError("method_unknown", { path: pathOf(request.raw), method: request.method, allowed: allowed.join(", ") }), request, reply);
        return reply;
      },
      handler: () => {},
    });
  }
}
