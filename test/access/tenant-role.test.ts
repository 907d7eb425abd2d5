import { afterAll, beforeAll, expect, test } from "vitest";
import { type Pawl, task } from "../../packages/pawl/src/index.js";
import { rolesScript } from "../../packages/pawl/src/store/postgres/connection/roles.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { openApp, type TestApp } from "../http/support.ts";
import { describeOn } from "../support/servers/servers.js";
import { RolesFixture, type Tenant, type TenantData, withoutTenantConditions } from "./roles-fixture.js";

const KEY = "acme-admin";
/** as many as a store of four connections has at a time */
const TRANSACTIONS = 2;

/** All that an API tells one tenant, asked for with what is another's. */
function reads({ jobs, key }: TenantData): readonly string[] {
  const ids = Object.entries(jobs).flatMap(([, id]) => ["", "/explain", "?wait=1"].map((what) => `/v1/jobs/${id}${what}`));
  return [
    ...ids,
    `/v1/jobs/${jobs.succeeded}/history`,
    `/v1/jobs/${jobs.succeeded}/logs`,
    "/v1/jobs?limit=1000",
    ...["ready", "scheduled", "succeeded", "dead", "blocked"].map((state) => `/v1/jobs?limit=1000&state=${state}`),
    "/v1/dead",
    "/v1/dead/groups",
    "/v1/api-keys",
    `/v1/api-keys/${key}`,
    "/v1/schedules",
    "/v1/schedules/only-u",
    "/v1/schedules/only-u/ticks",
    "/v1/audit",
    "/v1/breakers",
    "/v1/limits",
  ];
}

function changes({ jobs, key }: TenantData): readonly (readonly ["POST" | "DELETE", string, object?])[] {
  return [
    ["POST", `/v1/jobs/${jobs.scheduled}/promote`],
    ["POST", `/v1/jobs/${jobs.ready}/pause`],
    ["POST", `/v1/jobs/${jobs.ready}/cancel`, {}],
    ["POST", `/v1/jobs/${jobs.dead}/redrive`, {}],
    ["DELETE", `/v1/jobs/${jobs.succeeded}`],
    ["POST", `/v1/api-keys/${key}/rotate`, {}],
    ["POST", `/v1/api-keys/${key}/revoke`],
  ];
}

describeOn("embedded18", () => {
  let fixture: RolesFixture;
  let own: Readonly<Record<Tenant, TenantData>>;
  beforeAll(async () => {
    fixture = await RolesFixture.open("embedded18");
    own = await fixture.fill();
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  const appOn = async (change?: (driver: Driver) => Driver): Promise<TestApp> => openApp({ pawl: await fixture.api(change) });

  /** Answers that have something of umbrella in them, beside what was asked for by name. */
  async function leaksOf(api: TestApp): Promise<readonly string[]> {
    const leaks: string[] = [];
    for (const url of reads(own.umbrella)) {
      const { statusCode, body } = await api.request("GET", url, { key: KEY });
      const named = url.includes(own.umbrella.key) || Object.values(own.umbrella.jobs).some((id) => url.includes(id)) || url.includes("only-u");
      if (named ? statusCode !== 404 : /umbrella/.test(body) || statusCode !== 200) leaks.push(url);
    }
    return leaks;
  }

  test("a tenant's counts are of its own jobs as the tenant's role, whatever a statement forgot; without the tenant role they are of all", async () => {
    const counted = async (change?: (driver: Driver) => Driver): Promise<unknown> => {
      await using api = await appOn(change);
      return (await api.request("GET", "/v1/counts", { key: KEY })).json();
    };
    const counts = await counted();
    expect(counts).toMatchObject({ ready: expect.any(Number), blocked: 1 });
    expect(await counted(withoutTenantConditions({ tenantRole: true }))).toEqual(counts);
    expect(await counted(withoutTenantConditions({ tenantRole: false }))).not.toEqual(counts);
  });

  test("an API reads for a tenant as the tenant's role, and finds what is the tenant's", async () => {
    await using api = await appOn();
    for (const url of reads(own.acme)) {
      const { statusCode, body } = await api.request("GET", url.replace("only-u", "only-a"), { key: KEY });
      expect([url, statusCode]).toEqual([url, 200]);
      expect(body).not.toMatch(/umbrella/);
    }
    const { items: jobs } = (await api.request("GET", "/v1/jobs?limit=1000", { key: KEY })).json();
    expect(jobs.map(({ id }: { id: string }) => id)).toEqual(expect.arrayContaining(Object.values(own.acme.jobs)));
    const { items: attempts } = (await api.request("GET", `/v1/jobs/${own.acme.jobs.succeeded}/history`, { key: KEY })).json();
    expect(attempts).toMatchObject([{ outcome: "succeeded", worker: expect.any(String) }]);
    expect(await leaksOf(api)).toEqual([]);
  });

  test("statements that forgot their conditions on tenants show and change nothing of another's (S18)", async () => {
    await using api = await appOn(withoutTenantConditions({ tenantRole: true }));
    expect(await leaksOf(api)).toEqual([]);
    for (const [method, url, body] of changes(own.umbrella))
      expect([url, (await api.request(method, url, { key: KEY, ...(body === undefined ? {} : { body }) })).statusCode]).toEqual([url, 404]);
    // It is the conditions that are gone, and not what they let through.
    expect((await api.request("GET", `/v1/jobs/${own.acme.jobs.ready}`, { key: KEY })).statusCode).toBe(200);
    expect(await api.pawl.jobs.get(own.umbrella.jobs.ready)).toMatchObject({ state: "ready", tenant: expect.any(String) });
  });

  test("and not without the tenant role: then each of them tells what is another's", async () => {
    await using api = await appOn(withoutTenantConditions({ tenantRole: false }));
    expect(await leaksOf(api)).toEqual(reads(own.umbrella));
    for (const [method, url, body] of changes(own.umbrella))
      expect([url, (await api.request(method, url, { key: KEY, ...(body === undefined ? {} : { body }) })).statusCode]).not.toEqual([url, 404]);
  });

  test("who holds one of few connections for a transaction may read for a tenant meanwhile, all of them at once", async () => {
    let inside = 0;
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const looks = task("looks", async (_: number, ctx) =>
      ctx.transaction(async () => {
        if (++inside === TRANSACTIONS) arrive();
        await arrived;
        return (await pawl.forTenant("acme").jobs.get(own.acme.jobs.ready)).id;
      }),
    );
    const pawl: Pawl = await fixture.api(undefined, { tasks: [looks] });
    try {
      await pawl.work({ concurrency: TRANSACTIONS });
      for (const job of await Promise.all(Array.from({ length: TRANSACTIONS }, (_, n) => pawl.enqueue(looks, n))))
        expect(await job.result("60s")).toBe(own.acme.jobs.ready);
    } finally {
      await pawl.close();
    }
  });

  test("half a tenant role is none: nothing is read for a tenant until the script was run again, and all else goes on", async () => {
    await fixture.owner.query(fixture.sql("drop policy own on pawl.log"));
    await using api = await appOn();
    const url = `/v1/jobs/${own.acme.jobs.blocked}`;
    expect((await api.request("GET", url, { key: KEY })).json()).toMatchObject({ status: 503, code: "roles_outdated" });
    expect((await api.request("POST", `${url}/cancel`, { key: KEY, body: {} })).json()).toMatchObject({ code: "roles_outdated" });
    expect((await api.request("GET", url)).statusCode).toBe(200);
    await fixture.owner.query(rolesScript(fixture.schema));
    expect((await api.request("GET", url, { key: KEY })).statusCode).toBe(200);
  });
});
