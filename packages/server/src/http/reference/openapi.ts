import { ProblemShape } from "../contract/problem.js";
import type { AnyRoute } from "../contract/route.js";
import { STATUS } from "../status.js";

/** The contract as OpenAPI 3.1, whose schemas are JSON Schemas: ours as they are. */
export function openapiOf(contract: readonly AnyRoute[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of contract) {
    paths[route.path] ??= {};
    (paths[route.path] as Record<string, object>)[route.method.toLowerCase()] = operationOf(route);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Pawl", version, summary: "A distributed task scheduler", license: { name: "MIT", identifier: "MIT" } },
    paths,
    components: {
      schemas: { Problem: ProblemShape },
      securitySchemes: { key: { type: "http", scheme: "bearer", description: "An API key. Its tenant, roles and patterns say what it may do." } },
      responses: {
        Problem: { description: "What went wrong.", content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } } },
      },
    },
  };
}

function operationOf(route: AnyRoute): object {
  const { id, summary, description, policy, params, query, body, bodyOptional, status, otherStatuses = {}, answer, method, example } = route;
  const open = "open" in policy;
  return {
    operationId: id,
    tags: [nounOf(route)],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(open ? {} : { "x-pawl-action": policy.action }),
    security: open ? [] : [{ key: [] }],
    parameters: [...parametersOf("path", params), ...parametersOf("query", query), ...(method === "GET" ? [] : [IDEMPOTENCY])],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: bodyOptional !== true,
            content: { "application/json": { schema: body, ...(example === undefined ? {} : { example }) } },
          },
        }),
    responses: {
      [status]: { description: answer.means, ...contentOf(answer) },
      ...Object.fromEntries(Object.entries(otherStatuses).map(([other, means]) => [other, { description: means, ...contentOf(answer) }])),
      default: { $ref: "#/components/responses/Problem" },
    },
  };
}

function contentOf({ body, media }: AnyRoute["answer"]): object {
  if (media !== undefined) return { content: { [media]: { schema: { type: "string" } } } };
  return body === undefined ? {} : { content: { "application/json": { schema: body } } };
}

const IDEMPOTENCY = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  schema: { type: "string", maxLength: 255 },
  description: "repeated with the same key and body, the request is done once and answered alike, for a day",
};

function parametersOf(location: "path" | "query", schema: AnyRoute["params"]): object[] {
  const { properties = {}, required = [] } = (schema ?? {}) as { properties?: Readonly<Record<string, object>>; required?: readonly string[] };
  return Object.entries(properties).map(([name, inner]) => ({
    name,
    in: location,
    required: location === "path" || required.includes(name),
    schema: inner,
  }));
}

/** The part of the reference a route belongs to. */
export function nounOf({ id, path }: AnyRoute): string {
  return path.startsWith("/v1/") && id.includes(".") ? (id.split(".")[0] as string) : "service";
}

/** Codes by status, for the list of errors. */
export const CODES = Object.entries(STATUS).sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
