import { open, type Pawl } from "pawl";
import { apiKeyText, parseApiKey, serviceOf } from "pawl/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { keyAccess } from "../../packages/server/src/access/key-access.ts";
import { type Network, Networks, networkOf } from "../../packages/server/src/net/network.ts";
import { openApp, type TestApp } from "../http/support.ts";

describe("the API with keys of its own", () => {
  let pawl: Pawl;
  let api: TestApp;
  let root: string;
  let acme: string;

  beforeAll(async () => {
    pawl = await open("memory:", { maintenance: false, apiKeys: { pepper: "a pepper of sixteen bytes or more" } });
    api = await openApp({ pawl, access: keyAccess(serviceOf(pawl).apiKeys), audit: serviceOf(pawl).audit, replies: serviceOf(pawl).idempotency });
    root = (await serviceOf(pawl).apiKeys.create({ name: "root", grants: [{ role: "admin" }] })).secret;
    acme = (await serviceOf(pawl).apiKeys.create({ name: "acme", tenant: "acme", grants: [{ role: "admin" }] })).secret;
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const make = (key: string, body: object, headers: Record<string, string> = {}) => api.request("POST", "/v1/api-keys", { key, body, headers });
  const VIEWER = { name: "v", grants: [{ role: "viewer" }] };
  const entries = async (tenant?: string) => (await serviceOf(pawl).audit.list({ tenant }, { limit: 1_000 })).items;

  test("a key is made, used, rotated and revoked over HTTP", async () => {
    const made = (await make(acme, VIEWER)).json();
    expect(made.key).toMatchObject({ tenant: "acme", grants: [{ role: "viewer" }] });
    expect((await api.request("GET", "/v1/jobs", { key: made.secret })).statusCode).toBe(200);
    expect((await api.request("POST", "/v1/jobs", { key: made.secret, body: { task: "t" } })).statusCode).toBe(403);
    const rotated = (await api.request("POST", `/v1/api-keys/${made.key.id}/rotate`, { key: acme, body: { keepOldFor: "1h" } })).json();
    expect((await api.request("GET", "/v1/jobs", { key: made.secret })).statusCode).toBe(200);
    expect((await api.request("GET", "/v1/jobs", { key: rotated.secret })).statusCode).toBe(200);
    const read = await api.request("GET", `/v1/api-keys/${made.key.id}`, { key: acme });
    expect(read.json()).toMatchObject({ id: made.key.id });
    expect(read.body).not.toContain(parseApiKey(rotated.secret)?.secret);
    expect((await api.request("POST", `/v1/api-keys/${made.key.id}/revoke`, { key: acme })).json()).toMatchObject({ revokedAt: expect.any(String) });
    expect((await api.request("POST", `/v1/api-keys/${made.key.id}/rotate`, { key: acme })).json().code).toBe("api_key_revoked");
  });

  test("whatever is wrong with a key, the answer is the same (S4)", async () => {
    const revoked = (await make(acme, VIEWER)).json();
    await serviceOf(pawl).apiKeys.revoke(revoked.key.id);
    const answers = [];
    for (const key of [undefined, "nonsense", revoked.secret, root.replace(/.$/, (last) => (last === "x" ? "y" : "x"))]) {
      const { statusCode, headers, body } = await api.request("GET", "/v1/jobs", { key: key ?? "" });
      answers.push([statusCode, headers["www-authenticate"], body.replace(/"requestId":"[^"]*"/, "")]);
    }
    expect(answers[0]?.slice(0, 2)).toEqual([401, expect.stringContaining("Bearer")]);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  test("behind a proxy everybody has an address of their own, and without one named nobody is believed (S6)", async () => {
    const proxies = new Networks([networkOf("127.0.0.1") as Network]);
    const store = await open("memory:", { maintenance: false, apiKeys: { pepper: "a pepper of sixteen bytes or more" } });
    const { secret } = await serviceOf(store).apiKeys.create({ name: "ci", tenant: "acme", grants: [{ role: "viewer" }] });
    const wrong = apiKeyText({ ...(parseApiKey(secret) as NonNullable<ReturnType<typeof parseApiKey>>), secret: "0".repeat(43) });
    const from = (app: TestApp, key: string, address: string) =>
      app.request("GET", "/v1/jobs", { key, headers: { "x-forwarded-for": `203.0.113.9, ${address}` } }).then(({ statusCode }) => statusCode);
    await using behind = await openApp({ pawl: store, access: keyAccess(serviceOf(store).apiKeys), trustedProxies: proxies });
    for (let n = 0; n < 20; n++) expect(await from(behind, wrong, "192.0.2.1")).toBe(401);
    expect(await from(behind, wrong, "192.0.2.1")).toBe(429);
    expect(await from(behind, wrong, "192.0.2.2"), "another caller of the same proxy").toBe(401);
    expect(await from(behind, secret, "192.0.2.1"), "a good key where others guess").toBe(200);
    await using alone = await openApp({ pawl: store, access: keyAccess(serviceOf(store).apiKeys) });
    for (let n = 0; n < 20; n++) expect(await from(alone, wrong, `192.0.2.${n}`)).toBe(401);
    expect(await from(alone, wrong, "192.0.2.99"), "whatever it says").toBe(429);
  });

  test("a tenant's admin makes and sees keys of that tenant only, and another's is as one that does not exist", async () => {
    expect((await make(acme, { ...VIEWER, tenant: "umbrella" })).json().code).toBe("tenant_mismatch");
    const theirs = (await make(root, { ...VIEWER, tenant: "umbrella" })).json();
    expect(theirs.key.tenant).toBe("umbrella");
    const seen = [];
    for (const [method, url] of [
      ["GET", ""],
      ["POST", "/rotate"],
      ["POST", "/revoke"],
    ] as const) {
      for (const id of [theirs.key.id, "0".repeat(16)]) {
        const { statusCode, body } = await api.request(method, `/v1/api-keys/${id}${url}`, { key: acme });
        seen.push([statusCode, body.replaceAll(id, "ID").replace(/"requestId":"[^"]*"/, "")]);
      }
    }
    for (const answer of seen) expect(answer).toEqual([404, seen[0]?.[1]]);
    expect(
      (await api.request("GET", "/v1/api-keys?limit=1000", { key: acme })).json().items.every(({ tenant }: { tenant: string }) => tenant === "acme"),
    ).toBe(true);
    const narrow = (await make(root, { name: "n", tenant: "acme", grants: [{ role: "admin", tasks: ["a"] }] })).json();
    expect((await make(narrow.secret, VIEWER)).statusCode, "an admin of one task hands out nothing").toBe(403);
  });

  test("a key that is asked for twice is made once, and shown once (S2, S31)", async () => {
    const headers = { "idempotency-key": "one" };
    const first = await make(acme, VIEWER, headers);
    const again = await make(acme, VIEWER, headers);
    expect([again.statusCode, again.headers["idempotency-replayed"]]).toEqual([201, "true"]);
    expect(again.json()).toEqual({ ...first.json(), secret: "(shown once)" });
    expect((await make(acme, { ...VIEWER, name: "other" }, headers)).json().code).toBe("idempotency_key_reused");
  });

  test("every change of keys and every denial is one entry of the caller's log, and reads are none (S72)", async () => {
    await api.request("GET", "/v1/jobs", { key: "nonsense" });
    const strangers = (await entries()).length;
    const before = (await entries("acme")).length;
    const { key } = (await make(acme, VIEWER)).json();
    await api.request("GET", `/v1/api-keys/${key.id}`, { key: acme });
    await api.request("POST", `/v1/api-keys/${key.id}/revoke`, { key: acme });
    await make(acme, { ...VIEWER, tenant: "umbrella" });
    const fresh = (await entries("acme")).slice(0, -before || undefined);
    expect(fresh.map(({ action, outcome }) => [action, outcome])).toEqual([
      ["apiKeys.create", "denied"],
      ["apiKeys.revoke", "allowed"],
      ["apiKeys.create", "allowed"],
    ]);
    expect(fresh[1]).toMatchObject({ actor: `key:${parseApiKey(acme)?.id}`, subject: `key:${key.id}` });
    for (let n = 0; n < 3; n++) await api.request("GET", "/v1/jobs", { key: "nonsense" });
    const anonymous = (await entries()).filter(({ actor }) => actor === "anonymous");
    expect(anonymous).toMatchObject([{ outcome: "denied", action: "jobs.list" }]);
    expect((await entries()).length, "this address had its entry of the minute").toBe(strangers);
    expect((await serviceOf(pawl).audit.verify()).ok).toBe(true);
  });

  test("a tenant reads its own log, and no other", async () => {
    const own = (await api.request("GET", "/v1/audit?outcome=denied&limit=1", { key: acme })).json();
    expect(own.items).toMatchObject([{ tenant: "acme", outcome: "denied" }]);
    expect((await api.request("GET", `/v1/audit${own.next === undefined ? "" : `?cursor=${own.next}`}`, { key: acme })).statusCode).toBe(200);
    expect((await api.request("GET", "/v1/audit?tenant=umbrella", { key: acme })).json().code).toBe("tenant_mismatch");
    expect((await api.request("GET", "/v1/audit?tenant=acme&limit=1", { key: root })).json().items).toHaveLength(1);
  });
});
