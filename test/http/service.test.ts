import { open, type Pawl, task } from "pawl";
import { errorTable, pawlError } from "pawl/service";
import { faultyStore, openTest } from "pawl/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import { BulkTask } from "../../packages/server/src/http/tasks/bulk-task.ts";
import { schemaCompiler } from "../../packages/server/src/json-schema/input-schema.ts";
import { openApp, type TestApp } from "./support.ts";

describe("the other nouns over HTTP", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp({ pawl: { compileSchema: schemaCompiler() } });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  test("a schedule is made, previewed, changed, paused, triggered, backfilled and removed", async () => {
    const path = "/v1/schedules/nightly";
    expect(
      (await api.request("PUT", path, { body: { task: "report", cron: "0 3 * * *", timeZone: "Europe/Berlin", job: { priority: 7 } } })).json(),
    ).toEqual({ result: "created" });
    expect((await api.request("GET", path)).json()).toMatchObject({ name: "nightly", task: "report", cron: "0 3 * * *", timeZone: "Europe/Berlin" });
    expect((await api.request("GET", `${path}/preview?count=3&from=2026-01-01T00:00:00Z`)).json().items).toMatchObject([
      { at: "2026-01-01T02:00:00.000Z" },
      { at: "2026-01-02T02:00:00.000Z" },
      { at: "2026-01-03T02:00:00.000Z" },
    ]);
    expect((await api.request("PATCH", path, { body: { every: "1h" } })).json()).toEqual({ result: "changed" });
    expect((await api.request("POST", `${path}/pause`)).statusCode).toBe(204);
    expect((await api.request("GET", "/v1/schedules?paused=true")).json().items).toHaveLength(1);
    expect((await api.request("POST", `${path}/resume`)).statusCode).toBe(204);
    expect((await api.request("POST", `${path}/trigger`, { body: { input: { by: "hand" } } })).json()).toMatchObject({
      enqueued: "created",
      task: "report",
    });
    const range = { from: "2026-01-01T00:00:00Z", to: "2026-01-01T03:00:00Z" };
    expect((await api.request("POST", `${path}/backfill`, { body: { ...range, dryRun: true } })).json()).toMatchObject({ ticks: 4, jobs: 0 });
    expect((await api.request("POST", `${path}/backfill`, { body: range })).json()).toMatchObject({ ticks: 4, jobs: 4 });
    expect((await api.request("GET", `${path}/ticks?limit=3`)).json().items).toHaveLength(3);
    expect((await api.request("DELETE", path)).statusCode).toBe(204);
    expect((await api.request("GET", path)).json()).toMatchObject({ status: 404, code: "schedule_unknown" });
  });

  test("queues, tasks and tenants are limited, weighted, paused and shown", async () => {
    expect((await api.request("PATCH", "/v1/queues/mail", { body: { concurrency: 5, priorityWeights: { 9: 3 } } })).json()).toEqual({
      concurrency: 5,
      priorityWeights: { 9: 3 },
    });
    expect((await api.request("POST", "/v1/queues/mail/pause")).statusCode).toBe(204);
    expect((await api.request("GET", "/v1/queues/mail")).json()).toMatchObject({ queue: "mail", paused: true, policy: { concurrency: 5 } });
    expect((await api.request("POST", "/v1/queues/mail/resume")).statusCode).toBe(204);
    expect((await api.request("PATCH", "/v1/queues/mail", { body: { concurrency: null, priorityWeights: null } })).json()).toEqual({});
    expect((await api.request("PATCH", "/v1/tenants/acme", { body: { weight: 3, ingest: { rate: { limit: 1, per: "1h" } } } })).json()).toMatchObject(
      {
        weight: 3,
      },
    );
    expect((await api.request("GET", "/v1/tenants")).json().items).toMatchObject([{ tenant: "acme" }]);
    expect((await api.request("PATCH", "/v1/tasks/report", { body: { rate: { limit: 10, per: "1m" } } })).json()).toEqual({
      rate: { limit: 10, per: 60_000, burst: 10 },
    });
    expect((await api.request("GET", "/v1/tasks")).json().items.map((one: { task: string }) => one.task)).toContain("report");
    expect((await api.request("PATCH", "/v1/tenants/acme", { body: { wieght: 3 } })).json()).toMatchObject({
      code: "field_unknown",
      pointer: "/wieght",
    });
  });

  test("backpressure: an ingest limit is answered with 429 and when to come back", async () => {
    await api.pawl.tenants.update("flooded", { ingest: { rate: { limit: 1, per: "1h" } } });
    const body = { task: "a", tenant: "flooded" };
    expect((await api.request("POST", "/v1/jobs", { body })).statusCode).toBe(201);
    const refused = await api.request("POST", "/v1/jobs", { body });
    expect(refused.json()).toMatchObject({ status: 429, code: "ingest_limited" });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(3_000);
    const { results: answers } = (await api.request("POST", "/v1/jobs/many", { body: { jobs: [body, { task: "a" }] } })).json();
    expect(answers).toMatchObject([{ error: { status: 429 } }, { enqueued: "created" }]);
  });

  test("breakers are opened, listed and reset, each tenant its own", async () => {
    expect((await api.request("POST", "/v1/breakers/pay/open", { key: "acme-operator" })).json()).toMatchObject({
      tenant: "acme",
      task: "pay",
      state: "open",
      forced: true,
    });
    expect((await api.request("GET", "/v1/breakers", { key: "acme-viewer" })).json().items).toHaveLength(1);
    expect((await api.request("GET", "/v1/breakers", { key: "other-admin" })).json().items).toEqual([]);
    expect((await api.request("POST", "/v1/breakers/pay/reset?tenant=acme")).json()).toMatchObject({ state: "closed", forced: false });
  });

  test("keys at which jobs wait are listed, to each tenant its own", async () => {
    await using api = await openApp();
    const narrow = task("narrow", { limits: [{ key: (input) => input, concurrency: 1 }] }, (_: string) => {});
    const second = { acme: "", other: "" };
    for (const tenant of ["acme", "other"] as const)
      for (let n = 0; n < 2; n++) second[tenant] = (await api.pawl.enqueue(narrow, "a b", { tenant })).id;
    const list = async (query: string, key?: string) => (await api.request("GET", `/v1/limits${query}`, key === undefined ? {} : { key })).json();
    const { items: limits } = await list("?key=a%20b&name=narrow", "acme-viewer");
    expect(limits).toEqual([
      { tenant: "acme", name: "narrow", key: "a b", concurrency: 1, held: 1, waiting: 1, next: { job: second.acme, for: "concurrency" } },
    ]);
    expect((await list("", "other-admin")).items).toMatchObject([{ tenant: "other", next: { job: second.other } }]);
    const first = await list("?limit=1");
    expect(first.items).toMatchObject([{ tenant: "acme" }]);
    expect((await list(`?cursor=${first.next}`)).items).toMatchObject([{ tenant: "other" }]);
    expect((await list(`?cursor=${first.next}`, "acme-viewer")).items, "a cursor shows nobody the keys of others").toEqual([]);
    expect(await list("?tenant=other", "acme-viewer")).toMatchObject({ status: 403, code: "tenant_mismatch" });
    for (const half of ["?name=narrow", "?tenant=acme&key=a"]) expect(await list(half)).toMatchObject({ status: 422, code: "option_invalid" });
    expect(await list("?cursor=acme")).toMatchObject({ status: 422, code: "option_invalid", pointer: "query/cursor" });
    expect(await list("?size=1")).toMatchObject({ code: "field_unknown", pointer: "query/size" });
  });

  test("workers, lanes that nobody serves, counts and the service itself are shown", async () => {
    await api.pawl.enqueue("lonely");
    expect((await api.request("GET", "/v1/workers")).json()).toEqual({ items: [] });
    expect((await api.request("GET", "/v1/lanes?unserved=true")).json().items).toContainEqual(
      expect.objectContaining({ lane: expect.objectContaining({ task: "lonely" }) }),
    );
    expect((await api.request("GET", "/v1/lanes")).json().items).toContainEqual(
      expect.objectContaining({ lane: expect.objectContaining({ task: "lonely" }), workers: 0 }),
    );
    expect((await api.request("GET", "/v1/lanes?unserved=some")).json()).toMatchObject({ status: 422, pointer: "query/unserved" });
    expect((await api.request("GET", "/v1/unserved")).statusCode).toBe(404);
    expect((await api.request("GET", "/v1/doctor?overdueAfter=5m")).json().items).toContainEqual(
      expect.objectContaining({ check: "unserved", level: "warning" }),
    );
    expect((await api.request("GET", "/v1/counts?task=lonely")).json()).toMatchObject({ ready: 1, dead: 0 });
    expect((await api.request("GET", "/v1/info", { key: "acme-worker" })).json()).toMatchObject({ engine: "memory", durability: "none" });
  });

  test("a task's JSON Schema is enforced where its jobs are enqueued, with the path of what is wrong", async () => {
    const inputSchema = {
      type: "object",
      required: ["to"],
      properties: { to: { type: "string", pattern: "^(a+)+@x$" }, lines: { type: "array", items: { type: "integer" } } },
    };
    expect((await api.request("PUT", "/v1/tasks/letter", { body: { queue: "post", retry: 5, inputSchema } })).statusCode).toBe(204);
    expect((await api.request("GET", "/v1/tasks/letter")).json()).toMatchObject({ inputSchema, defaults: { queue: "post", retry: 5 } });
    const enqueue = async (input: unknown) => (await api.request("POST", "/v1/jobs", { body: { task: "letter", input } })).json();
    expect(await enqueue({ to: "aa@x", lines: [1] })).toMatchObject({ enqueued: "created" });
    const wrong = await enqueue({ to: "aa@x", lines: [1, "two"] });
    expect(wrong).toMatchObject({ status: 422, code: "input_invalid" });
    expect(wrong.detail).toContain("lines.1: must be integer");
    expect((await api.request("POST", "/v1/jobs/many", { body: { task: "letter", inputs: [{ to: "a@x" }, {}] } })).json().results).toMatchObject([
      { enqueued: "created" },
      { error: { code: "input_invalid" } },
    ]);
    expect((await api.request("PUT", "/v1/schedules/letters", { body: { task: "letter", every: "1h", input: {} } })).json().code).toBe(
      "input_invalid",
    );
  });

  test("S27: a pattern that would search for ever does not", async () => {
    const before = performance.now();
    const answer = await api.request("POST", "/v1/jobs", { body: { task: "letter", input: { to: `${"a".repeat(50_000)}!` } } });
    expect(answer.statusCode).toBe(422);
    // Backtracking would take longer than the universe has; a slow machine, seconds.
    expect(performance.now() - before).toBeLessThan(10_000);
  });

  test("an input that cannot be checked within the bound is refused, with its task and a pointer, and so is each in a batch", async () => {
    const inputSchema = { items: { anyOf: [...Array.from({ length: 500 }, (_, at) => ({ const: at })), true] } };
    expect((await api.request("PUT", "/v1/tasks/costly", { body: { inputSchema } })).statusCode).toBe(204);
    const input = Array.from({ length: 60_000 }, (_, at) => ({ a: at }));
    const refused = await api.request("POST", "/v1/jobs", { body: { task: "costly", input } });
    expect(refused.json()).toMatchObject({ status: 422, code: "input_too_costly", pointer: "/input", details: { task: "costly" } });
    const { results: answers } = (
      await api.request("POST", "/v1/jobs/many", { body: { jobs: [{ task: "costly", input }, { task: "any" }] } })
    ).json();
    expect(answers).toMatchObject([{ error: { code: "input_too_costly" } }, { enqueued: "created" }]);
  });

  test("a schema that would cost too much to check is refused when it is registered, with what makes it so", async () => {
    const twice = (at: number) => [`d${at}`, { anyOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] }] as const;
    const $defs = { ...Object.fromEntries(Array.from({ length: 30 }, (_, at) => twice(at))), d30: {} };
    const refused = await api.request("PUT", "/v1/tasks/doubled", { body: { inputSchema: { $defs, $ref: "#/$defs/d0" } } });
    expect(refused.json()).toMatchObject({ status: 422, code: "task_schema_too_costly", pointer: "/inputSchema", details: { task: "doubled" } });
    expect(refused.json().detail).toContain("more than 10000 schemas are applied to one value");
  });

  test("what is no schema, or has a pattern that cannot be run safely, is refused when it is registered", async () => {
    for (const inputSchema of [{ type: "nonsense" }, { type: "string", pattern: "(?=x)" }, { $ref: "https://elsewhere.example/schema" }])
      expect((await api.request("PUT", "/v1/tasks/bad", { body: { inputSchema } })).json()).toMatchObject({ status: 422, pointer: "/inputSchema" });
  });
});

test("the schema of a task in code is known to callers in any language", async () => {
  const pawl = await open("memory:", { tasks: [task("typed", { input: z.object({ n: z.number() }) }, async () => {})], maintenance: false });
  await using api = await openApp({ pawl });
  expect((await api.request("GET", "/v1/tasks/typed")).json().inputSchema).toMatchObject({
    type: "object",
    properties: { n: { type: "number" } },
    required: ["n"],
  });
});

describe("bulk operations", () => {
  let api: TestApp;
  let pawl: Pawl;
  const bulk = new BulkTask();
  const audited: object[] = [];
  beforeAll(async () => {
    pawl = await open("memory:", { tasks: [bulk.task], allowUnknownTasks: true });
    bulk.attach(pawl, {
      async record(entry) {
        audited.push(entry);
      },
    });
    await pawl.work();
    api = await openApp({ pawl });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  test("runs as a job of the tenant, with progress, and touches nobody else's jobs", async () => {
    for (const tenant of ["acme", "other"]) await pawl.enqueueMany("many", new Array(450).fill(null), { tenant, delay: "1h" });
    const started = await api.request("POST", "/v1/bulk", {
      key: "acme-operator",
      body: { verb: "cancel", filter: { task: "many", state: "scheduled" } },
    });
    expect(started.statusCode).toBe(202);
    const { id } = started.json();
    expect((await api.request("GET", `/v1/jobs/${id}?wait=60000`, { key: "acme-viewer" })).json()).toMatchObject({
      state: "succeeded",
      tenant: "acme",
      progress: { changed: 450 },
      output: { changed: 450, skipped: 0, failed: 0 },
    });
    expect(await pawl.counts({ task: "many" })).toMatchObject({ cancelled: 450, scheduled: 450 });
    expect((await api.request("GET", `/v1/jobs/${id}`, { key: "other-admin" })).statusCode).toBe(404);
  });

  test("S12: an input that names a tenant was forged: the job dies, and the audit is told", async () => {
    const forged = await pawl.enqueue("pawl.bulk", { verb: "cancel", filter: { tenant: "other" } }, { tenant: "acme" });
    const ended = await pawl.jobs.wait(forged);
    expect(ended).toMatchObject({ state: "dead", attempts: 1 });
    expect(audited).toMatchObject([{ tenant: "acme", outcome: "denied", details: { reason: "tenant_mismatch", tenant: "other" } }]);
    expect(await pawl.counts({ task: "many" })).toMatchObject({ scheduled: 450 });
  });
});

describe("errors", () => {
  test("S32: while the store is away, callers hear 503 and a reason, and nothing of its insides", async () => {
    let away = true;
    const error = pawlError("store_unreachable", { store: "postgres://secret-host/db", reason: "connect ECONNREFUSED 10.1.2.3" });
    const { pawl, close } = await openTest({
      work: false,
      maintenance: false,
      wrapStore: (store) => faultyStore(store, (operation) => (away && operation !== "tasks.publish" ? { kind: "fail", error } : undefined)),
    });
    const faults: unknown[] = [];
    await using api = await openApp({ pawl, onFault: ({ error: fault }) => faults.push(fault) });
    const answer = await api.request("POST", "/v1/jobs", { body: { task: "a" } });
    expect(answer.json()).toMatchObject({
      status: 503,
      code: "store_unreachable",
      detail: "the store cannot be reached; check that it runs and that host and port are right.",
    });
    expect(answer.headers["retry-after"]).toBe("1");
    expect(answer.body).not.toMatch(/secret-host|10\.1\.2\.3|"stack"|ECONN/);
    expect((await api.request("GET", "/readyz", { key: "" })).statusCode).toBe(503);
    expect((await api.request("GET", "/livez", { key: "" })).json()).toEqual({ status: "alive" });
    away = false;
    await expect.poll(async () => (await api.request("GET", "/readyz", { key: "" })).statusCode, { timeout: 20_000 }).toBe(200);
    api.app.drain();
    expect((await api.request("GET", "/readyz", { key: "" })).json()).toMatchObject({ status: 503, code: "service_stopping" });
    expect(faults.length).toBeGreaterThan(0);
    await close();
  });

  test("S32: a fault of the service tells its id and nothing else, and its operator everything", async () => {
    const { pawl, close } = await openTest({
      work: false,
      maintenance: false,
      wrapStore: (store) =>
        faultyStore(store, (operation) => (operation === "jobs.get" ? { kind: "fail", error: new Error("select * from pawl.secret") } : undefined)),
    });
    await using api = await openApp({ pawl });
    const answer = await api.request("GET", "/v1/jobs/01890000-0000-7000-8000-000000000000");
    expect(answer.json()).toMatchObject({ status: 500, code: "internal", detail: "the service failed; tell its operator the request id." });
    expect(answer.body).not.toContain("secret");
    expect(answer.json().requestId).toBe(answer.headers["request-id"]);
    expect(String(api.faults[0])).toContain("pawl.secret");
    await close();
  });
});

test("the type of every problem leads to a page with the cause and the cure of its code", async () => {
  await using api = await openApp();
  const { type, code } = (await api.request("POST", "/v1/jobs", { body: { task: "a", dealy: "1s" } })).json();
  expect([type, code]).toEqual(["/v1/docs/errors/field_unknown", "field_unknown"]);
  for (const [name, texts] of Object.entries(errorTable)) {
    const page = await api.request("GET", `/v1/docs/errors/${name}`, { key: "" });
    expect([page.statusCode, page.headers["content-type"]]).toEqual([200, expect.stringContaining("text/html")]);
    expect(page.body).toContain(`<code>${name}</code>`);
    for (const text of texts) expect(page.body).toContain(text.slice(0, text.search(/["<>&]|$/)));
  }
  for (const name of ["nothing", "constructor"])
    expect((await api.request("GET", `/v1/docs/errors/${name}`)).json()).toMatchObject({ status: 404, code: "route_unknown" });
});

test("the backlog says what waits, to a key of all tenants", async () => {
  await using api = await openApp();
  await api.pawl.enqueue("slow", null, { queue: "mail" });
  await api.pawl.queues.pause("rest");
  expect((await api.request("GET", "/v1/backlog", { key: "all-viewer" })).json()).toMatchObject({
    rows: [{ queue: "mail", task: "slow", counts: { ready: 1 } }],
    waits: [{ queue: "mail", priority: 5, longest: expect.any(Number) }],
    parked: { paused: 0 },
    paused: [{ kind: "queue", name: "rest" }],
  });
  expect((await api.request("GET", "/v1/backlog", { key: "acme-viewer" })).json()).toMatchObject({ status: 403, code: "all_tenants_only" });
});

test("the breaker of a task is shown by itself, and is closed where no failures were seen", async () => {
  await using api = await openApp();
  const breaker = async () => (await api.request("GET", "/v1/breakers/pay?tenant=acme", { key: "acme-viewer" })).json();
  expect(await breaker()).toMatchObject({ tenant: "acme", task: "pay", state: "closed", forced: false, failed: 0 });
  await api.request("POST", "/v1/breakers/pay/open", { key: "acme-operator" });
  expect(await breaker()).toMatchObject({ tenant: "acme", task: "pay", state: "open", forced: true });
});

test("the API describes itself, for programs and for people", async () => {
  await using api = await openApp();
  const document = (await api.request("GET", "/v1/openapi.json", { key: "" })).json();
  expect(document.openapi).toBe("3.1.0");
  const operations = Object.values(document.paths as Record<string, Record<string, { operationId: string }>>).flatMap((path) => Object.values(path));
  expect(operations.map(({ operationId }) => operationId).sort()).toEqual(CONTRACT.map(({ id }) => id).sort());
  const page = await api.request("GET", "/v1/docs", { key: "" });
  expect(page.headers["content-type"]).toContain("text/html");
  for (const { id } of CONTRACT) expect(page.body).toContain(`id="${id}"`);
  // Whoever reads it needs nothing but the service.
  expect(page.body).not.toMatch(/<script|src=|@import|url\(|href="https?:/);
});
