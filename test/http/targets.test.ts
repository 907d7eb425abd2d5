import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { targetChecker } from "../../packages/server/src/push/registered-targets.ts";
import { openApp, type TestApp } from "./support.ts";

const BODY = { url: "https://billing.example.com/hook", concurrency: 3, timeout: "5s" };

describe("targets over HTTP", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp({ pawl: { encryption: { masterKeys: [Buffer.alloc(32, 7).toString("base64")] }, checkTarget: targetChecker({}) } });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const put = (task: string, body: object = BODY, key = "acme-admin", headers = {}) =>
    api.request("PUT", `/v1/targets/${task}`, { key, body, headers });

  test("one is made with a secret that is shown this once, changed, listed and removed", async () => {
    const put201 = await put("bill");
    const made = put201.json();
    expect(put201.statusCode).toBe(201);
    expect(made).toMatchObject({ target: { tenant: "acme", task: "bill", url: BODY.url, concurrency: 3, timeout: 5_000 } });
    expect(made.secret).toMatch(/^whsec_/);
    const put200 = await put("bill", { url: "https://other.example.com/" });
    const changed = put200.json();
    expect(put200.statusCode).toBe(200);
    expect(changed.target).toMatchObject({ url: "https://other.example.com/", concurrency: 10, timeout: 15_000 });
    expect(changed.secret).toBeUndefined();
    const key = "acme-operator";
    const [one, all] = [await api.request("GET", "/v1/targets/bill", { key }), await api.request("GET", "/v1/targets", { key })];
    expect(all.json()).toEqual({ items: [one.json()] });
    for (const { body } of [one, all]) expect(body).not.toContain("whsec_");
    expect((await api.request("DELETE", "/v1/targets/bill", { key: "acme-admin" })).statusCode).toBe(204);
    expect((await api.request("GET", "/v1/targets/bill", { key })).json()).toMatchObject({ status: 404, code: "target_unknown" });
  });

  test.each([
    ["a line break", "https://billing.example\n.com/hook", "U+000A"],
    ["a tab", "https://billing.example.com/ho\tok", "U+0009"],
    ["an escape", "https://billing.example.com/\u001b[31mhook", "U+001B"],
    ["a DEL", "https://billing.example.com/hook\u007f", "U+007F"],
    ["a control of C1", "https://billing.example.com/\u0085hook", "U+0085"],
    ["a line break at its end", "https://billing.example.com/hook\n", "U+000A"],
    ["a blank before it", " https://billing.example.com/hook", "U+0020"],
    ["a mark of direction", "https://billing.example.com/\u202ekooh", "U+202E"],
  ])("a URL with %s in it is refused, and nothing is stored", async (_, url, part) => {
    const refused = await put("unseen", { ...BODY, url });
    expect(refused.json()).toMatchObject({ status: 422, code: "option_invalid", pointer: "/url" });
    expect(refused.json().detail).toContain(part);
    expect((await api.request("GET", "/v1/targets/unseen", { key: "acme-operator" })).statusCode).toBe(404);
  });

  test("a URL with the same written percent-encoded is taken as it is", async () => {
    const url = "https://billing.example.com/a%0Ab?c=%09";
    expect((await put("encoded", { ...BODY, url })).json()).toMatchObject({ target: { url } });
    await api.request("DELETE", "/v1/targets/encoded", { key: "acme-admin" });
  });

  test("a rotation shows another secret", async () => {
    const first = (await put("rotated")).json().secret;
    const second = (await api.request("POST", "/v1/targets/rotated/rotate", { key: "acme-admin", body: { keepOldFor: "1h" } })).json().secret;
    expect(second).toMatch(/^whsec_/);
    expect(second).not.toBe(first);
    expect((await api.request("POST", "/v1/targets/nobody/rotate", { key: "acme-admin" })).json()).toMatchObject({ code: "target_unknown" });
  });

  test("repeated with its Idempotency-Key it is made once, and the secret is not shown, nor kept, a second time (S31)", async () => {
    const headers = { "idempotency-key": "make" };
    const first = (await put("once", BODY, "acme-admin", headers)).json();
    const again = (await put("once", BODY, "acme-admin", headers)).json();
    expect(again).toEqual({ ...first, secret: "(shown once)" });
    expect(JSON.stringify([...api.replies.pending])).not.toContain(first.secret);
  });

  test("tenants see and change their own; one of another is as one that does not exist (S13)", async () => {
    await put("mine");
    const theirs = await api.request("GET", "/v1/targets/mine", { key: "other-admin" });
    const none = await api.request("GET", "/v1/targets/none", { key: "other-admin" });
    expect([theirs.statusCode, theirs.json().code]).toEqual([none.statusCode, none.json().code]);
    for (const [method, url] of [
      ["DELETE", "/v1/targets/mine"],
      ["POST", "/v1/targets/mine/rotate"],
    ] as const)
      expect((await api.request(method, url, { key: "other-admin" })).statusCode).toBe(404);
    expect((await put("mine", { ...BODY, tenant: "acme" }, "other-admin")).json()).toMatchObject({ status: 403, code: "tenant_mismatch" });
    expect((await api.request("GET", "/v1/targets/mine?tenant=acme", { key: "other-admin" })).statusCode).toBe(403);
    expect((await api.request("GET", "/v1/targets", { key: "other-admin" })).json()).toEqual({ items: [] });
    await put("mine", BODY, "other-admin");
    const all = (await api.request("GET", "/v1/targets?limit=1000")).json().items;
    expect(all.filter(({ task }: { task: string }) => task === "mine").map(({ tenant }: { tenant: string }) => tenant)).toEqual(["acme", "other"]);
  });

  test("a key that is for some tasks is not for the targets of others (S15)", async () => {
    api.callers.set("mailer", { name: "mailer", tenant: "acme", grants: [{ role: "admin", tasks: ["mail.*"] }] });
    expect((await put("mail.send", BODY, "mailer")).statusCode).toBe(201);
    expect((await put("pay", BODY, "mailer")).json()).toMatchObject({ status: 403, code: "forbidden" });
    expect((await api.request("DELETE", "/v1/targets/mine", { key: "mailer" })).statusCode).toBe(403);
  });

  test.each([
    [{ url: "https://127.0.0.1/" }, "target_forbidden"],
    [{ url: "http://example.com/" }, "target_forbidden"],
    [{ url: "nowhere" }, "option_invalid"],
    [{ ...BODY, timeout: "1d" }, "option_invalid"],
    [{ ...BODY, concurrency: 0 }, "field_invalid"],
    [{ ...BODY, secret: "whsec_mine" }, "field_unknown"],
    [{}, "field_invalid"],
  ])("%j is refused as %s (S42)", async (body, code) => {
    expect((await put("refused", body)).json()).toMatchObject({ status: 422, code });
    expect((await api.request("GET", "/v1/targets/refused", { key: "acme-admin" })).statusCode).toBe(404);
  });

  test("tasks of Pawl's own have none", async () => {
    expect((await put("pawl.bulk")).json()).toMatchObject({ status: 403, code: "task_reserved" });
  });

  test("each change is told to the audit log once, without its secret (S72)", async () => {
    const before = api.audit.length;
    await put("told");
    await api.request("POST", "/v1/targets/told/rotate", { key: "acme-admin" });
    await api.request("DELETE", "/v1/targets/told", { key: "acme-admin" });
    await api.request("GET", "/v1/targets", { key: "acme-admin" });
    const entries = api.audit.slice(before);
    expect(entries.map(({ action, tenant, outcome }) => [action, tenant, outcome])).toEqual(
      ["targets.put", "targets.rotate", "targets.delete"].map((action) => [action, "acme", "allowed"]),
    );
    expect(JSON.stringify(entries)).not.toContain("whsec_");
    expect(JSON.stringify(entries)).toContain("told");
  });

  test("pages go on where the last one ended", async () => {
    for (const task of ["p1", "p2", "p3"]) await put(task, BODY, "other-admin");
    const seen: string[] = [];
    let query = "limit=2";
    for (;;) {
      const { items: targets, next } = (await api.request("GET", `/v1/targets?${query}`, { key: "other-admin" })).json();
      seen.push(...targets.map(({ task }: { task: string }) => task));
      if (next === undefined) break;
      query = `limit=2&cursor=${next}`;
    }
    expect(seen).toEqual(["mine", "p1", "p2", "p3"]);
  });
});
