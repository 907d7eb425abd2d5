import type { Static, TObject, TSchema } from "typebox";
import type { Policy } from "./policy.js";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** One answer of a route: its body, and what it means. Without a body it is empty; `media` is for what is not JSON. */
export interface RouteAnswer<Body extends TSchema | undefined = TSchema | undefined> {
  readonly means: string;
  readonly body?: Body;
  readonly media?: string;
}

/** What a route is called with and answers, as data: handlers, checks, docs and tests are made of it. */
export interface Route<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema | undefined = TSchema | undefined,
  Result extends TSchema | undefined = TSchema | undefined,
> {
  /** noun and verb, such as `jobs.cancel`: the operationId of OpenAPI, and how an audit names it */
  readonly id: string;
  readonly method: Method;
  /** as OpenAPI writes it: `/v1/jobs/{job}` */
  readonly path: string;
  readonly summary: string;
  /** more than one line has room for */
  readonly description?: string;
  /** who may call it; a route cannot be written without one */
  readonly policy: Policy;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /** what the body may be left out for */
  readonly bodyOptional?: true;
  /** the answer when all went well; every error is a problem */
  readonly status: 200 | 201 | 202 | 204;
  readonly answer: RouteAnswer<Result>;
  /** other statuses of an answer that went well, with the same body, and what each of them means */
  readonly otherStatuses?: Readonly<Partial<Record<200 | 201 | 202, string>>>;
  readonly limits?: RouteLimits;
  /** answered while the store is away, too: callers are believed by what that last told of them */
  readonly inOutage?: true;
  /** its handler sees to the Idempotency-Key, by what it stores (`wait`: of a request with this parameter); otherwise answers are kept */
  readonly once?: "handler" | "wait";
  /** an example body for the reference */
  readonly example?: unknown;
}

export interface RouteLimits {
  /** bytes of the body; 1 MB unless set */
  readonly body?: number;
}

/** Gives a route its types. What a route has too much, or lacks, does not compile. */
export function route<
  Params extends TObject = TObject<Record<never, never>>,
  Query extends TObject = TObject<Record<never, never>>,
  Body extends TSchema | undefined = undefined,
  Result extends TSchema | undefined = undefined,
>(definition: Route<Params, Query, Body, Result>): Route<Params, Query, Body, Result> {
  return definition;
}

export type ParamsOf<R> = R extends Route<infer P, infer _Q, infer _B, infer _R> ? Static<P> : never;
export type QueryOf<R> = R extends Route<infer _P, infer Q, infer _B, infer _R> ? Static<Q> : never;
export type BodyOf<R> = R extends Route<infer _P, infer _Q, infer B, infer _R> ? (B extends TSchema ? Static<B> : undefined) : never;
export type AnswerOf<R> = R extends Route<infer _P, infer _Q, infer _B, infer A> ? (A extends TSchema ? Static<A> : undefined) : never;

/** A route of whatever types, as lists hold it. */
// biome-ignore lint/suspicious/noExplicitAny: a handler's call is contravariant, so only `any` admits every route
export type AnyRoute = Route<any, any, any, any>;
