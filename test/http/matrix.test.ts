import { ACCESS, ROLES } from "pawl/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tenantPaths } from "../../packages/server/src/http/access/authorize.ts";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import type { AnyRoute } from "../../packages/server/src/http/contract/route.ts";
import { routes } from "../../packages/server/src/http/routes/index.ts";
import { openApp, type TestApp } from "./support.ts";

const JOB = "01890000-0000-7000-8000-000000000000";

/** A request that gets as far as its caller may: past the policy it may well be refused for what it says. */
function requestOf(route: AnyRoute): { url: string; body?: object } {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name === "job" ? JOB : name === "tenant" ? "acme" : name === "code" ? "internal" : "some",
  );
  // A stream would not end by itself.
  const url = route.id === "events" ? `${path}?event=none` : path;
  return route.body === undefined
    ? { url }
    : { url, body: { ...(route.example as object | undefined), ...(route.id === "leases.claim" ? { wait: 0 } : {}) } };
}

describe("S15: routes × roles", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp({ pawl: {} });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const statusOf = async (route: AnyRoute, key: string) => {
    const { url, body } = requestOf(route);
    return (await api.request(route.method, url, { key, ...(body === undefined ? {} : { body }) })).statusCode;
  };

  test("every route of the contract has a handler, an id of its own and a policy, and nothing else is served", () => {
    expect(routes.map(({ route }) => route.id).sort()).toEqual(CONTRACT.map(({ id }) => id).sort());
    expect(new Set(CONTRACT.map(({ id }) => id)).size).toBe(CONTRACT.length);
    expect(new Set(CONTRACT.map(({ method, path }) => `${method} ${path}`)).size).toBe(CONTRACT.length);
    for (const { policy } of CONTRACT) expect("open" in policy ? policy.open : ACCESS[policy.action]).toBeTruthy();
  });

  test("a route without a policy does not compile", async () => {
    const { route } = await import("../../packages/server/src/http/contract/route.ts");
    // @ts-expect-error: no policy
    route({ id: "x", method: "GET", path: "/v1/x", summary: "x", status: 200, answer: { means: "x" } });
  });

  test("every tenant that a request can name is one that is checked against the credential", () => {
    for (const route of CONTRACT) {
      const marked = (["params", "query", "body"] as const).flatMap((part) => tenantPaths(part, route[part])).map((path) => path.join("/"));
      expect(marked, route.id).toEqual(fieldsCalledTenant(route));
    }
  });

  describe.each(CONTRACT.map((route) => [`${route.method} ${route.path}`, route] as const))("%s", (_, route) => {
    const { policy } = route;
    if ("open" in policy) {
      test("is open to anybody", async () => {
        expect([200]).toContain(await statusOf(route, ""));
      });
      return;
    }
    const { roles, whole } = ACCESS[policy.action];

    test.each(["", "expired", "nonsense"])("refuses a caller without a valid key (%j)", async (key) => {
      expect(await statusOf(route, key)).toBe(401);
    });
    test("refuses an address with too many wrong keys, and says until when", async () => {
      expect(await statusOf(route, "too-often")).toBe(429);
    });
    for (const role of ROLES) {
      const allowed = (roles as readonly string[]).includes(role);
      test(`${allowed ? "lets" : "does not let"} a ${role} of all tenants`, async () => {
        const status = await statusOf(route, `all-${role}`);
        if (allowed) expect([401, 403]).not.toContain(status);
        else expect(status).toBe(403);
      });
      const ofOne = allowed && whole !== true && policy.scope === "tenant";
      test(`${ofOne ? "lets" : "does not let"} a ${role} of one tenant`, async () => {
        const status = await statusOf(route, `acme-${role}`);
        if (ofOne) expect([401, 403]).not.toContain(status);
        else expect(status).toBe(403);
      });
    }
  });
});

/** By name, whatever its schema: in the order of the paths. */
function fieldsCalledTenant(route: AnyRoute): string[] {
  const found: string[] = [];
  const walk = (path: string, schema: { properties?: Record<string, object>; items?: object } | undefined) => {
    for (const [name, inner] of Object.entries(schema?.properties ?? {})) {
      if (/tenant$/i.test(name)) found.push(`${path}/${name}`);
      else if (name === "tenants") found.push(`${path}/${name}/*`);
      else walk(`${path}/${name}`, inner);
    }
    if (schema?.items !== undefined) walk(`${path}/*`, schema.items as { properties?: Record<string, object> });
  };
  for (const part of ["params", "query", "body"] as const) walk(part, route[part]);
  return found;
}
