import type { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { type ErrorCode, isPawlError, type Scheduler } from "pawl";
import { pawlError, type Replies } from "pawl/service";
import { type AuditContext, type AuditLog, auditAction, denialIn } from "./access/audit-request.js";
import { authorizer } from "./access/authorize.js";
import { errorWithoutHiddenJobs, withoutHiddenJobs } from "./access/hidden-jobs.js";
import type { Principal } from "./access/principal.js";
import type { ProblemDetails } from "./contract/problem.js";
import type { AnyRoute } from "./contract/route.js";
import { type Handler, type HandlerDeps, RawAnswer, RepeatedAnswer, type RouteCall, StatusAnswer } from "./handler.js";
import { asPawlError, problemOf } from "./problem.js";
import { checkKey, handleOnce, idempotencyKeyOf } from "./request/idempotency.js";
import { withPointer } from "./request/pointer.js";
import { type RequestFields, reader } from "./request/validate.js";

export interface PipelineDeps {
  readonly route: AnyRoute;
  readonly handler: Handler<AnyRoute>;
  readonly deps: HandlerDeps;
  readonly replies?: Replies;
  readonly audit?: AuditLog;
}

/** A request whose caller is known. */
export interface IncomingRequest {
  readonly request: FastifyRequest;
  readonly principal: Principal;
  readonly scheduler: Scheduler;
  readonly auditContext: AuditContext;
  signal(): AbortSignal;
  stillAllowed(): Promise<boolean>;
}

export interface PipelineAnswer {
  readonly status: number;
  readonly media: string;
  readonly body: string | Readable;
  readonly replayed?: true;
  /** of the problem that it is, where a refusal is repeated */
  readonly code?: string;
}

/** One request, in the order it is written: read it, check its reach, do it once, tell the audit, call the library, answer. */
export function pipeline({ route, handler, deps, replies, audit }: PipelineDeps): (incoming: IncomingRequest) => Promise<PipelineAnswer> {
  const read = reader(route);
  const authorize = authorizer(route);
  const writes = route.method !== "GET";

  return async (incoming) => {
    const { request, principal, scheduler } = incoming;
    const fields = read(request as unknown as RequestFields);
    await authorize(principal, fields, scheduler, deps.pawl);
    const key = writes ? checkKey(request.headers["idempotency-key"]) : undefined;
    const act = async (): Promise<PipelineAnswer> => {
      if (audit !== undefined) await auditAction(audit, incoming.auditContext, fields);
      try {
        return toAnswer(route, await withoutHiddenJobs(await handler(callOf(incoming, fields, key)), route, principal, deps.pawl));
      } catch (failed) {
        const error = await errorWithoutHiddenJobs(failed, route, principal, deps.pawl);
        throw withPointer(key === undefined ? error : keyReused(error, principal, key), route);
      }
    };
    if (key === undefined) return act();
    if (route.once === "handler" || (route.once === "wait" && fields.query.wait !== undefined)) return act();
    if (replies === undefined)
      throw pawlError("field_invalid", { field: "Idempotency-Key", reason: "is not kept by this service", pointer: "Idempotency-Key" });
    const { method, url } = request;
    return withMedia(await handleOnce(replies, { principal, key, method, url, body: fields.body }, () => storableReply(act, request.id)));
  };

  function callOf(
    { request, principal, scheduler, signal, stillAllowed }: IncomingRequest,
    { params, query, body }: RequestFields,
    key: string | undefined,
  ): RouteCall<AnyRoute> {
    return {
      params: params as RouteCall<AnyRoute>["params"],
      query: query as RouteCall<AnyRoute>["query"],
      body: body as RouteCall<AnyRoute>["body"],
      scheduler,
      pawl: deps.pawl,
      principal,
      deps,
      get signal() {
        return signal();
      },
      idempotencyKey: key === undefined ? undefined : idempotencyKeyOf(principal, key),
      lastEventId: textOf(request.headers["last-event-id"]),
      stillAllowed,
    };
  }
}

/** The key that was made of the header is the header, to its caller. */
function keyReused(error: unknown, principal: Principal, key: string): unknown {
  return isPawlError(error, "idempotency_key_reused") && error.details.idempotencyKey === idempotencyKeyOf(principal, key)
    ? pawlError("idempotency_key_reused", { idempotencyKey: key }, error)
    : error;
}

function toAnswer(route: AnyRoute, answer: unknown): PipelineAnswer {
  if (answer instanceof RepeatedAnswer) return { ...toAnswer(route, answer.answer), replayed: true };
  if (answer instanceof StatusAnswer) return { ...toAnswer(route, answer.answer), status: answer.status };
  const { status } = route;
  if (answer instanceof RawAnswer) return { status, media: answer.media, body: answer.body };
  return { status, media: JSON_MEDIA, body: status === 204 ? "" : JSON.stringify(answer) };
}

const JSON_MEDIA = "application/json; charset=utf-8";
const PROBLEM_MEDIA = "application/problem+json";

const CODES_NOT_STORED: ReadonlySet<string> = new Set<ErrorCode>(["idempotency_key_reused", "input_too_costly"]);

/**
 * A refusal is an answer too: repeated, it is the same. A denial is not kept: the audit is to hear of it, every time. Nor is
 * that the key was used for another job, whose own answer was lost: that one may still be repeated. Nor that an input took too long to
 * check: the machine may have been busy.
 */
async function storableReply(act: () => Promise<PipelineAnswer>, request: string): Promise<{ status: number; body: string }> {
  try {
    const { status, body } = await act();
    return { status, body: body as string };
  } catch (error) {
    const problem = problemOf(error, request);
    if (problem.status >= 500 || problem.status === 429 || CODES_NOT_STORED.has(problem.code) || denialIn(asPawlError(error)) !== undefined)
      throw error;
    return { status: problem.status, body: JSON.stringify(problem) };
  }
}

function withMedia(reply: { readonly status: number; readonly body: string; readonly replayed?: true }): PipelineAnswer {
  if (reply.status < 400) return { ...reply, media: JSON_MEDIA };
  return { ...reply, media: PROBLEM_MEDIA, code: (JSON.parse(reply.body) as ProblemDetails).code };
}

function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
