import type { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { type ErrorCode, isPawlError, pawlError, type Replies, type Scheduler } from "pawl";
import type { Principal } from "./access.js";
import type { Problem } from "./contract/problem.js";
import type { AnyRoute } from "./contract/route.js";
import { type AuditLog, denialIn, type Told, tellAction } from "./guard.js";
import { type Call, type Handler, type Parts, Raw, Repeated } from "./handler.js";
import { checkKey, once, requestIdOf } from "./idempotency.js";
import { located } from "./pointer.js";
import { asPawlError, problemOf } from "./problem.js";
import { reachCheck } from "./reach.js";
import { errorWithoutOthers, withoutOthers } from "./sight.js";
import { type Asked, reader } from "./validate.js";

export interface PipelineParts {
  readonly route: AnyRoute;
  readonly handler: Handler<AnyRoute>;
  readonly parts: Parts;
  readonly replies?: Replies;
  readonly audit?: AuditLog;
}

/** A request whose caller is known. */
export interface Arrived {
  readonly request: FastifyRequest;
  readonly principal: Principal;
  readonly scheduler: Scheduler;
  readonly told: Told;
  signal(): AbortSignal;
  stillAllowed(): Promise<boolean>;
}

export interface Answered {
  readonly status: number;
  readonly media: string;
  readonly body: string | Readable;
  readonly replayed?: true;
  /** of the problem that it is, where a refusal is repeated */
  readonly code?: string;
}

/** One request, in the order it is written: read it, check its reach, do it once, tell the audit, call the library, answer. */
export function pipeline({ route, handler, parts, replies, audit }: PipelineParts): (arrived: Arrived) => Promise<Answered> {
  const read = reader(route);
  const checkReach = reachCheck(route);
  const writes = route.method !== "GET";

  return async (arrived) => {
    const { request, principal, scheduler } = arrived;
    const asked = read(request as unknown as Asked);
    await checkReach(principal, asked, scheduler, parts.pawl);
    const key = writes ? checkKey(request.headers["idempotency-key"]) : undefined;
    const act = async (): Promise<Answered> => {
      if (audit !== undefined) await tellAction(audit, arrived.told, asked);
      try {
        return answered(route, await withoutOthers(await handler(callOf(arrived, asked, key)), route, principal, parts.pawl));
      } catch (failed) {
        const error = await errorWithoutOthers(failed, route, principal, parts.pawl);
        throw located(key === undefined ? error : keyReused(error, requestIdOf(principal, key)), route);
      }
    };
    if (key === undefined) return act();
    if (route.once === "handler") return act();
    if (replies === undefined)
      throw pawlError("field_invalid", { field: "Idempotency-Key", reason: "is not kept by this service", pointer: "Idempotency-Key" });
    const { method, url } = request;
    return media(await once(replies, { principal, key, method, url, body: asked.body }, () => keepable(act, request.id)));
  };

  function callOf(
    { request, principal, scheduler, signal, stillAllowed }: Arrived,
    { params, query, body }: Asked,
    key: string | undefined,
  ): Call<AnyRoute> {
    return {
      params: params as Call<AnyRoute>["params"],
      query: query as Call<AnyRoute>["query"],
      body: body as Call<AnyRoute>["body"],
      scheduler,
      pawl: parts.pawl,
      principal,
      parts,
      get signal() {
        return signal();
      },
      requestId: key === undefined ? undefined : requestIdOf(principal, key),
      lastEventId: textOf(request.headers["last-event-id"]),
      stillAllowed,
    };
  }
}

/** A request id that was made of the key is the key, to its caller. */
function keyReused(error: unknown, request: string): unknown {
  return isPawlError(error, "request_reused") && error.details.request === request ? pawlError("idempotency_key_reused", {}, error) : error;
}

function answered(route: AnyRoute, answer: unknown): Answered {
  if (answer instanceof Repeated) return { ...answered(route, answer.answer), replayed: true };
  const { status } = route;
  if (answer instanceof Raw) return { status, media: answer.media, body: answer.body };
  return { status, media: JSON_MEDIA, body: status === 204 ? "" : JSON.stringify(answer) };
}

const JSON_MEDIA = "application/json; charset=utf-8";
const PROBLEM_MEDIA = "application/problem+json";

const NOT_KEPT: ReadonlySet<string> = new Set<ErrorCode>(["idempotency_key_reused", "input_too_costly"]);

/**
 * A refusal is an answer too: repeated, it is the same. A denial is not kept: the audit is to hear of it, every time. Nor is
 * that the key was used for another job, whose own answer was lost: that one may still be repeated. Nor that an input took too long to
 * check: the machine may have been busy.
 */
async function keepable(act: () => Promise<Answered>, request: string): Promise<{ status: number; body: string }> {
  try {
    const { status, body } = await act();
    return { status, body: body as string };
  } catch (error) {
    const problem = problemOf(error, request);
    if (problem.status >= 500 || problem.status === 429 || NOT_KEPT.has(problem.code) || denialIn(asPawlError(error)) !== undefined) throw error;
    return { status: problem.status, body: JSON.stringify(problem) };
  }
}

function media(reply: { readonly status: number; readonly body: string; readonly replayed?: true }): Answered {
  if (reply.status < 400) return { ...reply, media: JSON_MEDIA };
  return { ...reply, media: PROBLEM_MEDIA, code: (JSON.parse(reply.body) as Problem).code };
}

function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
