import type { IncomingMessage, Server } from "node:http";
import type { ServerOptions as TlsOptions } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Pawl, PawlError, Scheduler } from "pawl";
import { blockOf, pawlError, type Replies, serviceOf, VERSION } from "pawl/service";
import type { Networks } from "../net/network.js";
import { MAX_SESSIONS_PER_CREDENTIAL, WorkerSessions } from "../pull/worker-sessions.js";
import { certificateNames } from "../tls/certificate-names.js";
import { DenialAudit } from "./access/audit-denials.js";
import { type AuditContext, type AuditLog, denialEntry, denialIn } from "./access/audit-request.js";
import { authorizeRoute } from "./access/authorize.js";
import { clientAddress } from "./access/client-address.js";
import { crossOriginReason } from "./access/cross-origin.js";
import { type Access, type Credential, OPEN_ACCESS, type Principal } from "./access/principal.js";
import type { BodyCaller } from "./budgets/body-budget.js";
import { type ExportLimits, Exports } from "./budgets/exports.js";
import { shareOwner } from "./budgets/fair-share.js";
import { type LongPollLimits, LongPolls } from "./budgets/long-polls.js";
import { ValueBudget, type ValueLimits } from "./budgets/value-budget.js";
import type { AnyRoute } from "./contract/route.js";
import { EventHub, type HubOptions } from "./events/hub.js";
import type { HandledRoute, HandlerDeps } from "./handler.js";
import { type PipelineAnswer, pipeline } from "./pipeline.js";
import { asPawlError, isFault, problemOf, retryAfterOf } from "./problem.js";
import { Readiness } from "./ready.js";
import { ambiguityReason } from "./request/ambiguous-head.js";
import { type BodyLimits, BodyReader } from "./request/body.js";
import { abortedOnDisconnect, stopController } from "./request/disconnect.js";
import { parseJson, shapeOf } from "./request/json.js";
import { noteOf, pathOf, type RequestObserver } from "./request/request-facts.js";
import { inTrace, type RequestTracing, requestTrace } from "./request/request-trace.js";
import { routes as CONTRACTED } from "./routes/index.js";

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
  readonly routes?: readonly HandledRoute[];
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

const MAX_BODY_BYTES = 1_048_576;

/** Of a server: ms and counts that a client may take before it is cut off, and what is left to the application. */
export const SERVER_LIMITS = {
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
  const hub = new EventHub(serviceOf(pawl).events, options.streams);
  const sessions = new WorkerSessions(pawl);
  const stopping = stopController();
  const deps: HandlerDeps = {
    pawl,
    version: options.version ?? VERSION,
    sessions,
    waits: new LongPolls("a wait for a job", options.waits),
    // Each of a credential's workers asks once at a time, and may repeat that after its connection was lost.
    claims: new LongPolls("a wait for work", { perCredential: 2 * MAX_SESSIONS_PER_CREDENTIAL, ...options.claims }),
    exports: new Exports(options.exports),
    ready: () => readiness.check(),
    subscribe: (call) => hub.subscribe(call),
  };
  const principals = new WeakMap<FastifyRequest, Principal>();
  /** their bodies were read in part: the connection cannot be used again */
  const unread = new WeakSet<FastifyRequest>();
  const bodies = new BodyReader(options.bodies);
  const values = new ValueBudget(options.values);
  /** gives back what the value of the body was counted for, once nothing is done with it any more */
  const valued = new WeakMap<FastifyRequest, () => void>();
  const leave = (request: FastifyRequest) => {
    valued.get(request)?.();
    valued.delete(request);
  };
  const app = makeServer(options.tls, async (request, payload) => {
    const limit = request.routeOptions.bodyLimit ?? MAX_BODY_BYTES;
    try {
      const bodyOwner = bodyCaller(principals.get(request) ?? UNIDENTIFIED, addressOf(request));
      return await bodies.read(payload, { limit, ...bodyOwner }, async (body, signal) => {
        if (body.length === 0) return undefined;
        const shape = shapeOf(body);
        valued.set(request, await values.enter(bodyOwner.owner, shape.heap, signal));
        return parseJson(body, shape);
      });
    } catch (error) {
      if (payload.readableDidRead && !payload.readableEnded) unread.add(request);
      throw error;
    }
  });
  const schedulerFor = schedulersByCaller(pawl);

  const addressOf = ({ raw, headers }: FastifyRequest) =>
    clientAddress(raw.socket.remoteAddress ?? "", headers["x-forwarded-for"], options.trustedProxies);
  const credentialOf = (request: FastifyRequest): Credential => ({ ...credentialWithoutAddress(request), address: addressOf(request) });
  const auditContextOf = (route: AnyRoute, request: FastifyRequest): AuditContext => ({
    route,
    principal: principals.get(request),
    address: addressOf(request),
    request: request.id,
  });
  const denialAudit = audit === undefined ? undefined : new DenialAudit(audit, (error) => onFault?.({ error, request: undefined, route: "audit" }));
  const recordDenial = async (error: PawlError, route: AnyRoute, request: FastifyRequest) => {
    const denial = denialIn(error);
    if (denial !== undefined) await denialAudit?.record(denialEntry(auditContextOf(route, request), denial));
  };
  const identify = async ({ inOutage }: AnyRoute, request: FastifyRequest): Promise<Principal> => {
    const found = await access.authenticate({ ...credentialOf(request), inOutage });
    if (!("refused" in found)) return found;
    if (found.refused === "mismatch") throw pawlError("certificate_mismatch");
    if (found.refused === "cross_origin") throw pawlError("cross_origin_forbidden", { reason: found.reason });
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
      authorizeRoute(route, principal);
    } catch (error) {
      await recordDenial(asPawlError(error), route, request);
      throw error;
    }
  };

  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    leave(request);
    const failure = asPawlError(error);
    const problem = problemOf(failure, request.id);
    const note = noteOf(request.raw);
    note.code = problem.code;
    if (isFault(failure)) onFault?.({ error: failure.cause ?? failure, request: request.id, route: `${request.method} ${note.route ?? "?"}` });
    const wait = retryAfterOf(failure);
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
    void reply.headers(SECURITY_HEADERS).header("request-id", request.id);
    if (options.tls !== undefined) void reply.header("strict-transport-security", "max-age=31536000");
    const ambiguous = ambiguityReason(request.raw);
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
    await denialAudit?.stop();
  });

  for (const { route, handler } of routes) {
    const serve = pipeline({
      route,
      handler,
      deps,
      ...(options.replies === undefined ? {} : { replies: options.replies }),
      ...(audit === undefined ? {} : { audit }),
    });
    app.route({
      method: route.method,
      url: urlOf(route),
      bodyLimit: route.limits?.body ?? MAX_BODY_BYTES,
      onRequest: admit(route),
      handler: async (request, reply) => {
        const principal = principals.get(request) ?? UNIDENTIFIED;
        try {
          const answer = await serve({
            request,
            principal,
            scheduler: inTrace(schedulerFor(principal), requestTrace(options.tracing, route, principal.tenant, request, reply)),
            auditContext: auditContextOf(route, request),
            signal: () => abortedOnDisconnect(reply.raw, stopping.signal),
            stillAllowed: async () => {
              const now = await access.authenticate(credentialOf(request)).catch(() => principal);
              return !("refused" in now) && now.tenant === principal.tenant;
            },
          });
          noteOf(request.raw).code = answer.code;
          return send(reply, answer);
        } catch (error) {
          await recordDenial(asPawlError(error), route, request);
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

const UNIDENTIFIED: Principal = { name: "anybody", tenant: undefined, grants: [], anonymous: true };

/** Callers without a credential are told apart by their addresses. */
function bodyCaller(principal: Principal, address: string): BodyCaller {
  const { tenant, name, anonymous } = principal;
  const caller = JSON.stringify([tenant, name, anonymous === true ? blockOf(address) : ""]);
  return { caller, owner: anonymous === true ? caller : shareOwner(principal) };
}

const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
} as const;

function makeServer(tls: TlsOptions | undefined, readBody: (request: FastifyRequest, payload: IncomingMessage) => Promise<unknown>): FastifyInstance {
  const common = {
    genReqId: (request: IncomingMessage) => noteOf(request).id,
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    forceCloseConnections: "idle" as const,
    requestTimeout: SERVER_LIMITS.requestTimeout,
    keepAliveTimeout: SERVER_LIMITS.keepAliveTimeout,
    maxRequestsPerSocket: SERVER_LIMITS.maxRequestsPerSocket,
    routerOptions: { maxParamLength: 4_096 },
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => refuseSocket(error, socket),
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      const problem = problemOf(error, request.id);
      noteOf(request.raw).code = problem.code;
      void reply
        .headers(SECURITY_HEADERS)
        .header("request-id", request.id)
        .code(problem.status)
        .type("application/problem+json")
        .send(JSON.stringify(problem));
    },
  };
  const http = {
    headersTimeout: SERVER_LIMITS.headersTimeout,
    maxHeaderSize: SERVER_LIMITS.maxHeaderSize,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: SERVER_LIMITS.requireHostHeader,
  };
  const app = (tls === undefined ? fastify({ ...common, http }) : fastify({ ...common, https: { ...http, ...tls } })) as FastifyInstance;
  (app.server as Server).maxHeadersCount = 100;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^application\/json(\s*;\s*charset="?utf-8"?)?\s*$/i, async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.headers["content-encoding"] !== undefined)
      throw pawlError("media_unsupported", { media: `encoding ${quoted(request.headers["content-encoding"])}` });
    return readBody(request, payload);
  });
  app.addContentTypeParser("*", async ({ headers }: FastifyRequest) => {
    throw pawlError("media_unsupported", { media: `type ${quoted(headers["content-type"] ?? "")}` });
  });
  return app;
}

/** What a caller sent, as far as anybody needs to see it. */
function quoted(header: string): string {
  return JSON.stringify(header.slice(0, 100));
}

/** What is no HTTP, or comes too slowly, gets one line and no second chance. */
export function refuseSocket(error: NodeJS.ErrnoException, socket: Socket, follower?: RequestObserver): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const slow = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  const problem = problemOf(slow ? pawlError("request_timeout") : pawlError("request_malformed", { reason: "its headers or framing" }));
  follower?.onRefused(socket, problem.status, problem.code);
  const body = JSON.stringify(problem);
  const head = [`HTTP/1.1 ${problem.status} ${slow ? "Request Timeout" : "Bad Request"}`, "content-type: application/problem+json"];
  socket.end([...head, `content-length: ${Buffer.byteLength(body)}`, "connection: close", "", body].join("\r\n"));
}

function send(reply: FastifyReply, { status, media, body, replayed }: PipelineAnswer): FastifyReply {
  if (replayed) void reply.header("idempotency-replayed", "true");
  if (media.startsWith("text/html"))
    void reply.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  // A stream is the last thing on its connection: when it ends, so does that.
  if (media.startsWith("text/event-stream")) void reply.header("connection", "close");
  if (status === 204) return reply.code(204).send();
  return reply.code(status).type(media).send(body);
}

function credentialWithoutAddress(request: FastifyRequest): Omit<Credential, "address"> {
  const socket = request.raw.socket as Partial<TLSSocket>;
  const names = socket.authorized === true ? (socket.getPeerCertificate?.().subjectaltname ?? "") : "";
  const { method, headers } = request;
  return { authorization: headers.authorization, certificate: certificateNames(names), crossOrigin: crossOriginReason(method, headers) };
}

/** The scheduler of each caller is kept: it remembers how the options of tasks are resolved. */
function schedulersByCaller(pawl: Pawl): (principal: Principal) => Scheduler {
  const schedulers = new Map<string, Scheduler>();
  return (principal) => {
    const caller = shareOwner(principal);
    let scheduler = schedulers.get(caller);
    if (scheduler === undefined) {
      if (schedulers.size >= 1_000) schedulers.clear();
      scheduler = serviceOf(pawl).forCaller(caller, principal.tenant);
      schedulers.set(caller, scheduler);
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
  routes: readonly AnyRoute[],
  fail: (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply,
): void {
  for (const path of new Set(routes.map((route) => route.path))) {
    const allowed = routes.filter((route) => route.path === path).map(({ method }) => method);
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
