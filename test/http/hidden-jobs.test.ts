import { task } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import type { AnyRoute } from "../../packages/server/src/http/contract/route.ts";
import { openApp, type TestApp } from "./support.ts";

const TENANT = { tenant: "acme" };
const LATER = { ...TENANT, delay: "1h" } as const;
/** Keys of one tenant and of all, for tasks and for queues: each may do everything, with these alone. */
const KEYS = {
  mailer: { tenant: "acme", grants: [{ role: "admin", tasks: ["mail.*"] }] },
  "all-mailer": { tenant: undefined, grants: [{ role: "admin", tasks: ["mail.*"] }] },
  "mail-room": { tenant: "acme", grants: [{ role: "admin", queues: ["mail"] }] },
} as const;
const LIMITED = Object.keys(KEYS) as readonly (keyof typeof KEYS)[];

const send = task("mail.send", { queue: "mail" }, () => "sent");
const keyed = task("mail.keyed", { queue: "mail", limits: [{ name: "one", key: () => "k", concurrency: 1 }] }, () => "sent");
const pay = task("pay", { queue: "money", limits: [{ name: "one", key: () => "k", concurrency: 1 }] }, () => "paid");

describe("a key for some tasks or queues", () => {
  let api: TestApp;
  /** of the other task */
  let secret: string;
  const own = { waits: "", doomed: "", retried: "", limited: "" };

  beforeAll(async () => {
    api = await openApp({
      pawl: { tasks: [send, keyed, pay], allowUnknownTasks: true, maintenance: { pollInterval: "10ms", reapInterval: "10ms" } },
    });
    for (const [name, key] of Object.entries(KEYS)) api.callers.set(name, { name, ...key });
    const { pawl } = api;
    secret = (await pawl.enqueue("pay", 1, LATER)).id;
    const cancelled = await pawl.enqueue("pay", 1, LATER);
    own.waits = (await pawl.enqueue("mail.send", 1, { ...TENANT, dependsOn: [secret] })).id;
    own.doomed = (await pawl.enqueue("mail.send", 1, { ...TENANT, dependsOn: [cancelled.id] })).id;
    await cancelled.cancel();
    await pawl.jobs.wait(own.doomed, "30s");
    // The parent that it died of is still there.
    expect((await pawl.jobs.get(own.doomed)).failure?.message).toContain(cancelled.id);
    // It has the place at a key that is the tenant's, whatever the task.
    await pawl.enqueue(pay, undefined, TENANT);
    own.limited = (await pawl.enqueue(keyed, undefined, TENANT)).id;
    await pawl.schedules.put("rent", "pay", { ...TENANT, every: "1h" });
    await pawl.schedules.put("was-rent", "pay", { ...TENANT, every: "1h" });
    await pawl.schedules.trigger({ name: "was-rent", ...TENANT });
    await pawl.schedules.put("was-rent", "mail.send", { ...TENANT, every: "1h", job: { queue: "mail" } });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  /** Ids of jobs that are neither its own nor what it asked for. */
  async function others(): Promise<readonly string[]> {
    const { items: jobs } = await api.pawl.jobs.list({}, { limit: 1_000 });
    return jobs.filter((job) => job.task === "pay").map(({ id }) => id);
  }

  const bodyOf = (route: AnyRoute) => (route.body === undefined ? {} : { body: route.id === "schedules.backfill" ? RANGE : (route.example ?? {}) });
  const RANGE = { from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z" };
  /** What differs from answer to answer. */
  const plain = ({ statusCode, headers, body }: Awaited<ReturnType<TestApp["request"]>>, id: string) => ({
    statusCode,
    headers: { ...headers, "request-id": "", date: "" },
    body: body.replaceAll(id, "ID").replace(/req_[-0-9a-f]+/, "REQ"),
  });

  test("for some queues is not told which job of another queue has its key or idempotency key", async () => {
    const elsewhere = { ...LATER, queue: "money" };
    const [first, second] = [
      await api.pawl.enqueue("mail.send", 1, { ...elsewhere, idempotencyKey: "shared" }),
      await api.pawl.enqueue("mail.send", 1, { ...elsewhere, unique: "shared" }),
    ];
    const batched = { task: "mail.send", input: 1, delay: "1h" };
    const batch = await api.pawl.forTenant("acme").enqueueAll([{ task: "mail.send", input: 2, ...elsewhere }], { idempotencyKey: "shared batch" });
    const theirs = [first.id, second.id, ...batch.results.map((answer) => ("id" in answer ? answer.id : ""))];
    const unique = (onConflict: string) => ({ unique: { key: "shared", onConflict } });
    const request = (path: string, body: object) => api.request("POST", path, { key: "mail-room", body });
    const seen = [];
    for (const more of [{ idempotencyKey: "shared" }, { unique: "shared" }, unique("existing"), unique("reject")]) {
      const alone = await request("/v1/jobs", { ...batched, queue: "mail", ...more });
      expect([more, alone.json()]).toMatchObject([more, { status: 403, code: "forbidden" }]);
      const among = await request("/v1/jobs/many", { jobs: [{ ...batched, queue: "mail", ...more }] });
      expect([more, among.json()]).toMatchObject([more, { results: [{ error: { status: 403, code: "forbidden" } }] }]);
      seen.push(alone.body, among.body);
    }
    const repeated = await request("/v1/jobs/many", { idempotencyKey: "shared batch", jobs: [{ task: "mail.send", input: 2, queue: "mail" }] });
    expect(repeated.json()).toMatchObject({ results: [{ error: { code: "forbidden" } }] });
    const replacing = await request("/v1/jobs", { ...batched, queue: "mail", ...unique("replace") });
    expect(replacing.json()).toMatchObject({ enqueued: "created" });
    for (const body of [...seen, repeated.body, replacing.body]) for (const id of theirs) expect(body).not.toContain(id);
    // Of its own it is told all.
    const own = replacing.json().id;
    expect((await request("/v1/jobs", { ...batched, queue: "mail", unique: "shared" })).json()).toMatchObject({ id: own, enqueued: "existing" });
  });

  test.each(LIMITED)("is told of another's job and schedule what it would be told if there were none, on every route (%s)", async (key) => {
    const random = secret.replace(/.{4}$/, secret.endsWith("0000") ? "1111" : "0000");
    const checkedRoutes: string[] = [];
    for (const [param, theirs, none] of [
      ["job", secret, random],
      ["schedule", "rent", "none"],
    ] as const)
      for (const route of CONTRACT.filter(({ path, id }) => path.includes(`{${param}}`) && id !== "schedules.put")) {
        const request = (name: string) => {
          const tenant = param === "schedule" ? "?tenant=acme" : "";
          return api.request(route.method, `${route.path.replace(`{${param}}`, name)}${tenant}`, { key, ...bodyOf(route) });
        };
        const [there, nowhere] = [plain(await request(theirs), theirs), plain(await request(none), none)];
        expect([route.id, there.statusCode]).toEqual([route.id, 404]);
        expect(there, route.id).toEqual(nowhere);
        checkedRoutes.push(route.id);
      }
    expect(checkedRoutes.length).toBeGreaterThan(19);
    expect((await api.pawl.jobs.get(secret)).state).toBe("scheduled");
  });

  test("does not hear whether a schedule of that name exists but by wanting the name: then it is refused", async () => {
    const put = await api.request("PUT", "/v1/schedules/rent", { key: "mailer", body: { task: "mail.send", every: "1h" } });
    expect([put.statusCode, put.json().code]).toEqual([403, "forbidden"]);
  });

  test("is told that it may not, and not that there is none, where it may read and not change", async () => {
    const grants = [{ role: "viewer" as const }, { role: "operator" as const, tasks: ["mail.*"] }];
    api.callers.set("onlooker", { name: "onlooker", tenant: "acme", grants });
    expect((await api.request("GET", `/v1/jobs/${secret}`, { key: "onlooker" })).statusCode).toBe(200);
    for (const path of [`/v1/jobs/${secret}/cancel`, "/v1/schedules/rent/pause"])
      expect((await api.request("POST", path, { key: "onlooker" })).json()).toMatchObject({ status: 403, code: "forbidden" });
  });

  test("is still told to the audit when it asks for another's: as denied", async () => {
    // Of one caller not every denial is told: this one has had none.
    api.callers.set("curious", { ...KEYS.mailer, name: "curious" });
    const before = api.audit.length;
    await api.request("POST", `/v1/jobs/${secret}/cancel`, { key: "curious" });
    await api.request("DELETE", "/v1/schedules/rent", { key: "curious" });
    expect(api.audit.slice(before)).toMatchObject([
      { actor: "curious", action: "jobs.cancel", outcome: "denied", details: { reason: "forbidden" } },
      { actor: "curious", action: "schedules.delete", outcome: "denied", details: { reason: "forbidden" } },
    ]);
  });

  test("finds no id of another's job in any answer about its own", async () => {
    const urls = [
      ...Object.values(own)
        .filter(Boolean)
        .flatMap((id) => ["", "/history", "/logs", "/explain", "?wait=1ms"].map((part) => `/v1/jobs/${id}${part}`)),
      "/v1/jobs?task=mail.send&queue=mail",
      "/v1/dead?task=mail.send&queue=mail",
      "/v1/dead/groups?task=mail.send&queue=mail",
      "/v1/schedules/was-rent/ticks?tenant=acme",
      "/v1/schedules/was-rent?tenant=acme",
      "/v1/counts?task=mail.send&queue=mail",
      "/v1/breakers?task=mail.send",
      "/v1/limits",
    ];
    const theirs = await others();
    expect(theirs).toContain(secret);
    for (const key of LIMITED)
      for (const url of urls) {
        const answer = await api.request("GET", url, { key });
        expect([key, url, theirs.filter((id) => answer.body.includes(id))]).toEqual([key, url, []]);
        expect([key, url, [200, 403]]).toEqual([key, url, expect.arrayContaining([answer.statusCode])]);
      }
    // A key for everything is told all of it, so there was something to find.
    const all = await Promise.all(urls.map(async (url) => [url, (await api.request("GET", url, { key: "acme-admin" })).body] as const));
    const urlsWithIds = all.filter(([, body]) => theirs.some((id) => body.includes(id))).map(([url]) => url.replace(/[0-9a-f-]{36}/, "ID"));
    expect(new Set(urlsWithIds)).toEqual(
      new Set([
        ...["/v1/jobs/ID", "/v1/jobs/ID/history", "/v1/jobs/ID/explain", "/v1/jobs/ID?wait=1ms", "/v1/jobs?task=mail.send&queue=mail"],
        ...["/v1/dead?task=mail.send&queue=mail", "/v1/dead/groups?task=mail.send&queue=mail", "/v1/schedules/was-rent/ticks?tenant=acme"],
      ]),
    );
  });

  test("reads in words what is left of an explanation", async () => {
    const text = async (id: string) => (await api.request("GET", `/v1/jobs/${id}/explain`, { key: "mailer" })).json();
    const waits = await text(own.waits);
    expect(waits.reasons[0]).toEqual({ kind: "blocked", on: [], count: 1 });
    expect(waits.text).toMatch(/^It waits for 1 other job\. /);
    expect((await text(own.doomed)).text).toContain("a job, which it depends on, did not succeed");
    const limited = await text(own.limited);
    expect(limited.reasons[0]).not.toHaveProperty("holders");
    expect(limited.text).toMatch(/^Key k of limit one has 1 of its 1 slots taken/);
  });

  test("cannot let its own job wait for another's, and is told what it would be told of none", async () => {
    const random = secret.replace(/.{4}$/, secret.endsWith("0000") ? "1111" : "0000");
    const before = (await api.pawl.jobs.list({}, { limit: 1_000 })).items.length;
    const job = { task: "mail.send", queue: "mail", delay: "1h", tenant: "acme" };
    const bodies = (parent: string) =>
      [
        ["/v1/jobs", { ...job, dependsOn: [own.waits, parent] }],
        ["/v1/jobs/many", { jobs: [job, { ...job, dependsOn: [parent.toUpperCase()] }] }],
        ["/v1/jobs/many", { task: "mail.send", inputs: [1], options: { queue: "mail", tenant: "acme", dependsOn: [parent] } }],
      ] as const;
    for (const key of LIMITED)
      for (const [param, [url, body]] of bodies(secret).entries()) {
        const there = plain(await api.request("POST", url, { key, body, headers: { "idempotency-key": `${key}${param}` } }), secret);
        const none = plain(
          await api.request("POST", url, { key, body: bodies(random)[param]?.[1], headers: { "idempotency-key": `none${key}${param}` } }),
          random,
        );
        expect([url, there.statusCode, JSON.parse(there.body).code]).toEqual([url, 422, "dependency_unknown"]);
        expect(there).toEqual(none);
      }
    expect((await api.pawl.jobs.list({}, { limit: 1_000 })).items.length).toBe(before);
    expect((await api.request("POST", "/v1/jobs", { key: "mailer", body: { ...job, dependsOn: [own.waits] } })).statusCode).toBe(201);
  });

  test("hears of an idempotency key that another task has used no more than that it is taken", async () => {
    await api.pawl.enqueue("pay", 1, { ...LATER, idempotencyKey: "r" });
    const refused = await api.request("POST", "/v1/jobs", { key: "mailer", body: { task: "mail.send", input: 1, idempotencyKey: "r" } });
    expect([refused.statusCode, refused.json().code, refused.json().details]).toEqual([422, "idempotency_key_reused", { idempotencyKey: "r" }]);
  });

  test("looks after the bulk operation that it started, and no other", async () => {
    const start = async (key: string, task: string) =>
      (await api.request("POST", "/v1/bulk", { key, body: { verb: "cancel", filter: { task } } })).json().id as string;
    const [mine, theirs] = [await start("mailer", "mail.none"), await start("acme-admin", "pay.none")];
    expect((await api.request("GET", `/v1/jobs/${mine}`, { key: "mailer" })).statusCode).toBe(200);
    expect((await api.request("POST", `/v1/jobs/${mine}/cancel`, { key: "mailer" })).statusCode).toBe(200);
    expect((await api.request("GET", `/v1/jobs/${theirs}`, { key: "mailer" })).statusCode).toBe(404);
  });
});
