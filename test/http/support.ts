import { Ajv, type ErrorObject } from "ajv";
import formats from "ajv-formats";
import type { LightMyRequestResponse } from "fastify";
import { type OpenOptions, open, type Pawl } from "pawl";
import { type NewAudit, type Replies, type Reply, ROLES, type Role } from "pawl/service";
import type { Access, Principal, Refusal } from "../../packages/server/src/http/access/principal.ts";
import { type App, type AppOptions, createApp } from "../../packages/server/src/http/app.ts";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import type { AnyRoute, Method } from "../../packages/server/src/http/contract/route.ts";

/** A key of each role for tenant acme, of each for all tenants, and some that open nothing. */
export function principals(): Map<string, Principal | Refusal> {
  const callers = new Map<string, Principal | Refusal>();
  for (const role of ROLES) {
    callers.set(`acme-${role}`, { name: `acme-${role}`, tenant: "acme", grants: [{ role }] });
    callers.set(`all-${role}`, { name: `all-${role}`, tenant: undefined, grants: [{ role }] });
  }
  callers.set("other-admin", { name: "other-admin", tenant: "other", grants: [{ role: "admin" }] });
  callers.set("expired", { refused: "unauthenticated" });
  callers.set("too-often", { refused: "limited", retryAfter: 2_500 });
  return callers;
}

export const keyOf = (role: Role, tenant: "acme" | "all" = "acme") => `${tenant}-${role}`;

export function accessOf(callers: ReadonlyMap<string, Principal | Refusal>): Access {
  return {
    authenticate: async ({ authorization }) => callers.get(authorization?.replace(/^Bearer /, "") ?? "") ?? { refused: "unauthenticated" },
  };
}

/** As a store would keep them. `pending`: those begun and not finished. */
export function repliesInMemory(): Replies & { readonly pending: Map<string, { hash: string; reply?: Reply }> } {
  const pending = new Map<string, { hash: string; reply?: Reply }>();
  return {
    pending,
    async begin({ credential, key, hash }) {
      const at = `${credential}\n${key}`;
      const begun = pending.get(at);
      if (begun === undefined) {
        pending.set(at, { hash });
        return {
          kind: "begun",
          async finish(reply) {
            pending.set(at, { hash, reply });
            return "kept";
          },
          async abandon() {
            pending.delete(at);
          },
        };
      }
      if (begun.hash !== hash) return { kind: "different" };
      return begun.reply === undefined ? { kind: "in_flight", retryIn: 1_000 } : { kind: "replied", reply: begun.reply };
    },
  };
}

export interface Asking {
  readonly key?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly raw?: string;
}

export interface TestApp extends AsyncDisposable {
  readonly app: App;
  readonly pawl: Pawl;
  readonly audit: NewAudit[];
  readonly faults: unknown[];
  readonly replies: ReturnType<typeof repliesInMemory>;
  readonly callers: Map<string, Principal | Refusal>;
  /** Asks, and holds what is answered against the contract. */
  request(method: Method, url: string, options?: Asking): Promise<LightMyRequestResponse>;
}

export async function openApp({
  pawl: options = {},
  ...app
}: Partial<Omit<AppOptions, "pawl">> & { readonly pawl?: OpenOptions | Pawl } = {}): Promise<TestApp> {
  const pawl = "enqueue" in options ? options : await open("memory:", { maintenance: false, ...options });
  const audit: NewAudit[] = [];
  const faults: unknown[] = [];
  const callers = principals();
  const replies = repliesInMemory();
  const made = createApp({
    pawl,
    access: accessOf(callers),
    replies,
    audit: {
      async record(entry) {
        audit.push(entry);
      },
    },
    onFault: ({ error }) => faults.push(error),
    ...app,
  });
  return {
    app: made,
    pawl,
    audit,
    faults,
    replies,
    callers,
    async request(method, url, { key = "all-admin", body, headers = {}, raw } = {}) {
      const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
      const response = await made.inject({
        method,
        url,
        headers: {
          ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
          ...(payload === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(payload === undefined ? {} : { payload }),
      });
      holdAgainstContract(method, url, response);
      return response;
    },
    async [Symbol.asyncDispose]() {
      await made.close();
      await pawl.close();
    },
  };
}

const ajv = new Ajv({ strict: false, allErrors: true });
formats.default(ajv);
const byRoute = new Map<AnyRoute, ReturnType<typeof ajv.compile>>();

export function routeAt(method: string, url: string): AnyRoute | undefined {
  const path = url.split("?")[0] as string;
  const fits = (route: AnyRoute) => route.method === method && new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path);
  return CONTRACT.filter(fits).sort((a, b) => count(a.path) - count(b.path))[0];
}
const count = (path: string) => path.split("{").length;

/** An answer that went well is what its route says, and has no field that its route does not know; an error is a problem. */
function holdAgainstContract(method: string, url: string, response: LightMyRequestResponse): void {
  const summary = `${method} ${url} → ${response.statusCode} ${response.body.slice(0, 400)}`;
  if (response.statusCode >= 400) {
    const problem = response.json();
    if (
      !String(response.headers["content-type"]).startsWith("application/problem+json") ||
      problem.status !== response.statusCode ||
      typeof problem.code !== "string" ||
      problem.requestId === undefined
    )
      throw new Error(`no problem as it should be: ${summary}`);
    return;
  }
  const route = routeAt(method, url);
  if (route === undefined) throw new Error(`an answer without a route: ${summary}`);
  if (response.statusCode !== route.status && !Object.hasOwn(route.otherStatuses ?? {}, response.statusCode))
    throw new Error(`not the status of its route: ${summary}`);
  if (route.answer.body === undefined) return;
  let check = byRoute.get(route);
  if (check === undefined) {
    check = ajv.compile(sealed(route.answer.body));
    byRoute.set(route, check);
  }
  if (!check(response.json())) throw new Error(`not what its route answers: ${summary}: ${ajv.errorsText(check.errors as ErrorObject[])}`);
}

/** Objects whose fields are told have no others. */
function sealed(schema: unknown): object {
  if (Array.isArray(schema)) return schema.map(sealed);
  if (typeof schema !== "object" || schema === null) return schema as never;
  const copy: Record<string, unknown> = Object.fromEntries(Object.entries(schema).map(([name, inner]) => [name, sealed(inner)]));
  const fields = (schema as { properties?: object }).properties;
  return fields !== undefined &&
    Object.keys(fields).length > 0 &&
    !("kind" in fields && Object.keys(fields).length === 1) &&
    !("policy" in fields && Object.keys(fields).length === 1)
    ? { ...copy, additionalProperties: false }
    : copy;
}
