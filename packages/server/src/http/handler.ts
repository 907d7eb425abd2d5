import type { Readable } from "node:stream";
import type { Pawl, Scheduler } from "pawl";
import type { PageOptions } from "pawl/service";
import type { WorkerSessions } from "../pull/worker-sessions.js";
import type { Principal } from "./access/principal.js";
import type { Exports } from "./budgets/exports.js";
import type { LongPolls } from "./budgets/long-polls.js";
import type { AnswerOf, AnyRoute, BodyOf, ParamsOf, QueryOf } from "./contract/route.js";

/** What the application gives to handlers besides the request. */
export interface HandlerDeps {
  readonly pawl: Pawl;
  /** of Pawl itself */
  readonly version: string;
  /** those who wait for jobs to finish, and workers that wait for jobs */
  readonly waits: LongPolls;
  readonly claims: LongPolls;
  readonly exports: Exports;
  /** the workers that pull their jobs from this process */
  readonly sessions: WorkerSessions;
  /** throws while requests cannot be served */
  ready(): Promise<void>;
  /** opens a stream of events for a caller, from after the event with this id */
  subscribe(call: StreamCall): Promise<Readable>;
}

export interface StreamCall {
  readonly principal: Principal;
  readonly filter: { readonly event?: string; readonly queue?: string; readonly task?: string };
  readonly lastEventId: string | undefined;
  /** whether the caller is still who it was: asked every few seconds */
  stillAllowed(): Promise<boolean>;
}

/** One request, checked: it is what its route says, and its caller may do it. */
export interface RouteCall<R extends AnyRoute> {
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
  /** sees and changes what the caller may: one tenant, or all */
  readonly scheduler: Scheduler;
  readonly pawl: Pawl;
  readonly principal: Principal;
  readonly deps: HandlerDeps;
  /** aborted when the caller has gone */
  readonly signal: AbortSignal;
  /** the same whenever the caller repeats the request with its Idempotency-Key: for enqueues, so that they make one job */
  readonly idempotencyKey: string | undefined;
  readonly lastEventId: string | undefined;
  stillAllowed(): Promise<boolean>;
}

/** An answer that is not JSON. */
export class RawAnswer {
  constructor(
    readonly media: string,
    readonly body: string | Readable,
  ) {}
}

/** An answer with another status than the usual one of its route: one of its `otherStatuses`. */
export class StatusAnswer<Answer> {
  constructor(
    readonly status: 200 | 201 | 202,
    readonly answer: Answer,
  ) {}
}

/** An answer that was given before, to the same request. */
export class RepeatedAnswer<Answer> {
  constructor(readonly answer: Answer) {}
}

/** Of a route without a body to answer with, whatever its handler returns is nothing. */
type HandlerReturn<R extends AnyRoute> = AnswerOf<R> extends undefined ? unknown : HandlerAnswer<AnswerOf<R>> | Promise<HandlerAnswer<AnswerOf<R>>>;
type HandlerAnswer<Answer> = Answer | RawAnswer | RepeatedAnswer<Answer> | StatusAnswer<Answer>;

export type Handler<R extends AnyRoute> = (call: RouteCall<R>) => HandlerReturn<R>;

export interface HandledRoute {
  readonly route: AnyRoute;
  readonly handler: Handler<AnyRoute>;
}

/** Parses nothing, decides nothing: calls the library and answers. */
export function on<R extends AnyRoute>(route: R, handler: Handler<R>): HandledRoute {
  return { route, handler: handler as unknown as Handler<AnyRoute> };
}

/** ms a request is answered on what its credential was worth when it came */
const CREDENTIAL_MAX_AGE_MS = 2_000;

/** Whether who waited since then may still hear what came of it: a key may have been revoked meanwhile. */
export async function isStillAllowed(since: number, { stillAllowed }: Pick<RouteCall<AnyRoute>, "stillAllowed">): Promise<boolean> {
  return performance.now() - since <= CREDENTIAL_MAX_AGE_MS || stillAllowed();
}

/** The tenant a caller means where one must be named: its own, the one it asked for, or the default one. */
export function tenantOf({ tenant }: Principal, requested: string | undefined): string {
  return tenant ?? requested ?? "default";
}

interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

/** Parts the query of a list: what is asked for, and the page of it. */
export function filterAndPage<Q extends PageQuery>({ limit, cursor, ...filter }: Q): readonly [filter: Omit<Q, keyof PageQuery>, page: PageOptions] {
  return [filter, { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) }];
}
