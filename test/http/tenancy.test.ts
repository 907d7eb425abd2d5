import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import { openApp, type TestApp } from "./support.ts";

describe("tenants over HTTP", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp();
    api.callers.set("mailer", { name: "mailer", tenant: "acme", grants: [{ role: "operator", tasks: ["mail.*"], queues: ["mail"] }] });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const rows = async () => (await api.pawl.jobs.list({}, { limit: 1_000 })).items.length;

  test("S10: a key of one tenant makes jobs of that tenant, and can name no other", async () => {
    const made = await api.request("POST", "/v1/jobs", { key: "acme-producer", body: { task: "a" } });
    expect((await api.pawl.jobs.get(made.json().id)).tenant).toBe("acme");
    const before = await rows();
    for (const [method, url, body] of [
      ["POST", "/v1/jobs", { task: "a", tenant: "other" }],
      ["GET", "/v1/jobs?tenant=other", undefined],
      ["GET", "/v1/dead?tenant=other", undefined],
      ["POST", "/v1/dead/delete", { filter: { tenant: "other" } }],
      ["POST", "/v1/bulk", { verb: "cancel", filter: { tenant: "other" } }],
      ["PUT", "/v1/schedules/s", { task: "a", every: "1h", tenant: "other" }],
      ["DELETE", "/v1/schedules/s?tenant=other", undefined],
      ["POST", "/v1/breakers/a/open?tenant=other", undefined],
      ["GET", "/v1/schedules?tenant=other", undefined],
    ] as const) {
      const refused = await api.request(method, url, { key: "acme-admin", ...(body === undefined ? {} : { body }) });
      expect([url, refused.statusCode, refused.json().code]).toEqual([url, 403, "tenant_mismatch"]);
    }
    expect(await rows()).toBe(before);
    const own = await api.request("POST", "/v1/jobs", {
      key: "acme-producer",
      body: { task: "a", tenant: "acme" },
      headers: { "x-tenant": "other" },
    });
    expect((await api.pawl.jobs.get(own.json().id)).tenant).toBe("acme");
  });

  test("S11: one item of another tenant refuses the whole batch, and nothing is stored", async () => {
    const before = await rows();
    const jobs = [{ task: "a" }, { task: "a", tenant: "other" }];
    const refused = await api.request("POST", "/v1/jobs/many", { key: "acme-producer", body: { jobs } });
    expect([refused.statusCode, refused.json().code]).toEqual([403, "tenant_mismatch"]);
    expect(
      (await api.request("POST", "/v1/jobs/many", { key: "acme-producer", body: { task: "a", inputs: [1], options: { tenant: "other" } } }))
        .statusCode,
    ).toBe(403);
    expect(await rows()).toBe(before);
  });

  test("S13: a job of another tenant is answered as one that does not exist, on every route", async () => {
    const { id } = (await api.request("POST", "/v1/jobs", { key: "other-admin", body: { task: "secret", delay: "1h" } })).json();
    const random = id.replace(/.{4}$/, id.endsWith("0000") ? "1111" : "0000");
    for (const route of CONTRACT.filter(({ path }) => path.includes("{job}"))) {
      const answers = await Promise.all(
        [id, random].map((job) =>
          api.request(route.method, route.path.replace("{job}", job), { key: "acme-admin", ...(route.body === undefined ? {} : { body: {} }) }),
        ),
      );
      const [theirs, none] = answers.map(({ statusCode, headers, body }, index) => ({
        statusCode,
        headers: { ...headers, "request-id": "", date: "" },
        body: body.replaceAll([id, random][index], "ID").replace(/req_[-0-9a-f]+/, "REQ"),
      }));
      expect(theirs?.statusCode, route.id).toBe(404);
      expect(theirs, route.id).toEqual(none);
    }
    expect((await api.pawl.jobs.get(id)).state).toBe("scheduled");
  });

  test("S14: names and keys of another tenant are free", async () => {
    for (const key of ["other-admin", "acme-admin"]) {
      const job = { task: "same", unique: "same", idempotencyKey: "same", delay: "1h" };
      const made = await api.request("POST", "/v1/jobs", { key, body: job, headers: { "idempotency-key": "same" } });
      expect([made.statusCode, made.json().enqueued]).toEqual([201, "created"]);
      expect((await api.request("PUT", "/v1/schedules/same", { key, body: { task: "same", every: "1h" } })).json()).toEqual({ result: "created" });
    }
  });

  test("S16: a key for some tasks and queues reaches no others, item by item", async () => {
    const job = { task: "mail.send", queue: "mail", delay: "1h" };
    const made = await api.request("POST", "/v1/jobs", { key: "mailer", body: job });
    expect(made.statusCode).toBe(201);
    for (const body of [{ ...job, task: "pay" }, { ...job, queue: "money" }, { task: "mail.send" }])
      expect((await api.request("POST", "/v1/jobs", { key: "mailer", body })).json().code).toBe("forbidden");
    const before = await rows();
    expect((await api.request("POST", "/v1/jobs/many", { key: "mailer", body: { jobs: [job, { ...job, task: "pay" }] } })).statusCode).toBe(403);
    expect(await rows()).toBe(before);
    expect((await api.request("POST", `/v1/jobs/${made.json().id}/cancel`, { key: "mailer" })).statusCode).toBe(200);
    const pay = (await api.request("POST", "/v1/jobs", { key: "acme-admin", body: { task: "pay", delay: "1h" } })).json();
    expect((await api.request("POST", `/v1/jobs/${pay.id}/cancel`, { key: "mailer" })).statusCode).toBe(404);
    expect((await api.request("GET", `/v1/jobs/${pay.id}`, { key: "mailer" })).statusCode).toBe(404);
    expect((await api.request("GET", "/v1/jobs", { key: "mailer" })).statusCode).toBe(403);
    expect((await api.request("GET", "/v1/jobs?task=mail.send&queue=mail", { key: "mailer" })).statusCode).toBe(200);
  });

  test("S16: a key for some tasks reaches no schedule of others, neither to replace it nor under another tenant's name", async () => {
    api.callers.set("all-mailer", { name: "all-mailer", tenant: undefined, grants: [{ role: "operator", tasks: ["mail.*"], queues: ["mail"] }] });
    const mail = { task: "mail.send", job: { queue: "mail" }, every: "1h" };
    const put = (key: string, name: string, body: object) => api.request("PUT", `/v1/schedules/${name}`, { key, body });
    for (const [key, name] of [
      ["mailer", "of-mail"],
      ["all-mailer", "rent"],
    ] as const)
      expect([(await put(key, name, mail)).statusCode, (await put(key, name, mail)).statusCode]).toEqual([201, 200]);
    await put("acme-admin", "rent", { task: "pay", every: "1h" });
    expect((await put("mailer", "rent", mail)).json().code).toBe("forbidden");
    expect((await put("all-mailer", "rent", { ...mail, tenant: "acme" })).json().code).toBe("forbidden");
    for (const [method, path] of [
      ["DELETE", ""],
      ["PATCH", ""],
      ["GET", ""],
      ["POST", "/pause"],
      ["POST", "/trigger"],
      ["GET", "/ticks"],
    ] as const) {
      const body = method === "PATCH" ? { body: { every: "2h" } } : {};
      const refused = await api.request(method, `/v1/schedules/rent${path}?tenant=acme`, { key: "all-mailer", ...body });
      expect([method, path, refused.json().code]).toEqual([method, path, "schedule_unknown"]);
    }
    expect(await api.pawl.schedules.get({ name: "rent", tenant: "acme" })).toMatchObject({ task: "pay", every: 3_600_000 });
    expect((await api.request("DELETE", "/v1/schedules/rent", { key: "all-mailer" })).statusCode, "its own").toBe(204);
  });

  test("a key of one tenant is told why it gets no series: they are not kept by tenant", async () => {
    const refused = await api.request("GET", "/v1/series", { key: "acme-viewer" });
    expect([refused.statusCode, refused.json().code]).toEqual([403, "all_tenants_only"]);
    expect(refused.json().detail).toContain("for all tenants together");
    expect((await api.request("GET", "/v1/series", { key: "all-viewer" })).statusCode).toBe(200);
  });

  test("a key of one tenant is told what that tenant has standing, and nothing of others", async () => {
    await api.pawl.enqueueMany("tallied", [1, 2, 3], { tenant: "acme" });
    await api.pawl.enqueueMany("tallied", [1, 2], { tenant: "globex", delay: "1h" });
    const counts = async (query: string, key: string) => (await api.request("GET", `/v1/counts?task=tallied${query}`, { key })).json();
    const none = { blocked: 0, scheduled: 0, ready: 0, parked: 0, running: 0, dead: 0 };
    expect(await counts("", "acme-viewer")).toEqual({ ...none, ready: 3 });
    expect(await counts("&tenant=globex", "all-viewer")).toEqual({ ...none, scheduled: 2 });
    expect(await counts("", "all-viewer")).toEqual({ ...none, ready: 3, scheduled: 2, succeeded: 0, cancelled: 0 });
    expect(await counts("&tenant=globex", "acme-viewer")).toMatchObject({ status: 403, code: "tenant_mismatch" });
  });

  test("S17: fields that are not a caller's to set are refused by name", async () => {
    for (const field of ["state", "epoch", "attempts", "tenant_id", "id"]) {
      const refused = await api.request("POST", "/v1/jobs", { body: { task: "a", [field]: "x" } });
      expect([refused.statusCode, refused.json().code, refused.json().pointer]).toEqual([422, "field_unknown", `/${field}`]);
    }
    const nested = await api.request("POST", "/v1/jobs/many", { body: { jobs: [{ task: "a" }, { task: "a", state: "dead" }] } });
    expect(nested.json()).toMatchObject({ code: "field_unknown", pointer: "/jobs/1/state" });
    expect((await api.request("POST", "/v1/jobs", { body: { taks: "a" } })).json(), "rather than that task is missing").toMatchObject({
      code: "field_unknown",
      pointer: "/taks",
    });
    expect((await api.request("POST", "/v1/jobs", { body: { input: 1 } })).json()).toMatchObject({ code: "field_invalid", pointer: "/task" });
    expect((await api.request("GET", "/v1/jobs?stat=ready")).json()).toMatchObject({ code: "field_unknown", pointer: "query/stat" });
    expect((await api.request("POST", "/v1/queues/q/pause", { body: { force: true } })).json()).toMatchObject({ code: "field_unknown" });
  });

  test("tasks of Pawl's own cannot be enqueued by a caller, nor scheduled, nor claimed", async () => {
    const worker = { name: "w", instance: "6f1c1f5e-0f5a-4b5e-9c58-0a3a4c1b8a11" };
    const claim = (body: object) => api.request("POST", "/v1/leases/claim", { body: { worker, limit: 1, ...body } });
    expect((await claim({ tasks: [{ name: "a" }, { name: "pawl.bulk" }] })).json().code).toBe("task_reserved");
    expect((await claim({ tasks: [{ name: "a" }], queues: [] })).json()).toMatchObject({ code: "field_invalid", pointer: "/queues" });
    for (const [url, body] of [
      ["/v1/jobs", { task: "pawl.bulk", input: { verb: "drop", filter: {} } }],
      ["/v1/jobs/many", { task: "pawl.bulk", inputs: [{}] }],
      ["/v1/jobs/many", { jobs: [{ task: "a" }, { task: "pawl.bulk" }] }],
    ] as const)
      expect((await api.request("POST", url, { body })).json().code).toBe("task_reserved");
    expect((await api.request("PUT", "/v1/schedules/s", { body: { task: "pawl.bulk", every: "1h" } })).json().code).toBe("task_reserved");
  });

  test("S72: a control action is told to the audit once, a denial too, an enqueue is not", async () => {
    const auditedBy = async (act: () => Promise<unknown>) => {
      const before = api.audit.length;
      await act();
      return api.audit.slice(before);
    };
    let id = "";
    expect(
      await auditedBy(async () => {
        id = (await api.request("POST", "/v1/jobs", { key: "acme-producer", body: { task: "a", input: { secret: 1 }, delay: "1h" } })).json().id;
      }),
    ).toEqual([]);
    expect(await auditedBy(() => api.request("GET", `/v1/jobs/${id}`, { key: "acme-viewer" }))).toEqual([]);
    expect(await auditedBy(() => api.request("POST", `/v1/jobs/${id}/cancel`, { key: "acme-operator", body: { reason: "why" } }))).toMatchObject([
      { actor: "acme-operator", tenant: "acme", action: "jobs.cancel", subject: `job:${id}`, details: { job: id }, outcome: "allowed" },
    ]);
    expect(
      await auditedBy(() => api.request("PUT", "/v1/schedules/nightly", { key: "acme-operator", body: { task: "a", every: "1h" } })),
    ).toMatchObject([{ action: "schedules.put", subject: "schedule:nightly", details: { schedule: "nightly", task: "a" } }]);
    expect(await auditedBy(() => api.request("POST", `/v1/jobs/${id}/cancel`, { key: "acme-viewer" }))).toMatchObject([
      { actor: "acme-viewer", action: "jobs.cancel", outcome: "denied", details: { reason: "forbidden" } },
    ]);
    expect(await auditedBy(() => api.request("GET", "/v1/jobs", { key: "expired" }))).toMatchObject([
      { actor: "anonymous", outcome: "denied", details: { reason: "unauthenticated" } },
    ]);
    expect(await auditedBy(() => api.request("POST", "/v1/jobs", { key: "acme-producer", body: { task: "a", tenant: "other" } }))).toMatchObject([
      { outcome: "denied", details: { reason: "tenant_mismatch" } },
    ]);
  });

  test("S72: what cannot be told to the audit does not happen", async () => {
    const audit = {
      async record(): Promise<void> {
        throw new Error("the audit is away");
      },
    };
    await using withoutAudit = await openApp({ audit });
    const { id } = (await withoutAudit.request("POST", "/v1/jobs", { body: { task: "a", delay: "1h" } })).json();
    expect((await withoutAudit.request("POST", `/v1/jobs/${id}/cancel`)).statusCode).toBe(500);
    expect((await withoutAudit.pawl.jobs.get(id)).state).toBe("scheduled");
  });

  test("S72: who shows no key neither waits for the audit nor learns that it is away", async () => {
    await using stuck = await openApp({ audit: { record: () => new Promise(() => {}) } });
    expect((await stuck.request("GET", "/v1/jobs", { key: "" })).statusCode).toBe(401);
    await using away = await openApp({ audit: { record: () => Promise.reject(new Error("the audit is away")) } });
    expect((await away.request("GET", "/v1/jobs", { key: "" })).statusCode).toBe(401);
    expect(away.faults).toEqual([new Error("the audit is away")]);
  });
});
