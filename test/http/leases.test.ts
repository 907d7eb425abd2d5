import { BOUNDS } from "pawl/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp, type TestApp } from "./support.ts";

const worker = { name: "python", instance: "00000000-0000-4000-8000-00000000000a" };
const NOBODY = "0197a0c0-7d1e-7000-8000-000000000000";

describe("the pull protocol", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp();
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const claim = (heldJobs: readonly object[]) =>
    api.request("POST", "/v1/leases/claim", {
      body: { worker, tasks: [{ name: "resize" }], limit: 1, concurrency: { tasks: { resize: 1 } }, heldJobs },
    });
  const lane = { task: "resize", queue: "default", priority: 5, tenant: "default" };

  test("a worker can name the lanes of all jobs it can have, whoever enqueued them", async () => {
    const answer = await claim([{ ...lane, queue: "urgent orders", tenant: "Müller & Söhne", count: 1 }]);
    expect(answer.json()).toEqual({ leases: [] });
    expect((await claim([{ ...lane, tenant: "x".repeat(129), count: 1 }])).statusCode).toBe(422);
  });

  test("a worker says how many handlers it runs as a number or by queue and task, and what it has as tasks need it", async () => {
    const { id } = await api.pawl.enqueue("encode", undefined, { tenant: "acme" });
    const encoder = { name: "encoder", instance: "00000000-0000-4000-8000-00000000000b" };
    const body = (more: object) => ({
      worker: encoder,
      tasks: [{ name: "encode", needs: { capabilities: ["gpu"] } }],
      limit: 1,
      wait: "10s",
      ...more,
    });
    const ask = (more: object) => api.request("POST", "/v1/leases/claim", { key: "acme-worker", body: body(more) });
    expect((await ask({ concurrency: { queue: { default: 1 } } })).json()).toMatchObject({ code: "field_unknown", pointer: "/concurrency/queue" });
    expect((await ask({ concurrency: "4" })).json()).toMatchObject({ code: "field_invalid", pointer: "/concurrency" });
    expect((await ask({ concurrency: 0 })).json()).toMatchObject({ code: "field_invalid", pointer: "/concurrency" });
    expect((await ask({ slots: { tasks: { encode: 1 } } })).json()).toMatchObject({ code: "field_unknown", pointer: "/slots" });
    expect((await ask({ capabilities: ["gpu"] })).json()).toMatchObject({ code: "field_unknown", pointer: "/capabilities" });
    const plain = { name: "plain", instance: "00000000-0000-4000-8000-00000000000c" };
    expect((await ask({ worker: plain, wait: 0 })).json(), "without the capability").toEqual({ leases: [] });
    const { leases } = (await ask({ concurrency: { total: 4, tasks: { encode: 2 } }, provides: { capabilities: ["gpu"] } })).json();
    const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(leases).toMatchObject([{ now: iso, jobs: [{ id, dueAt: iso }] }]);
    await expect
      .poll(() => api.pawl.workers.get("encoder"))
      .toMatchObject({ concurrency: { total: 4, tasks: { encode: 2 } }, provides: { capabilities: ["gpu"], resources: {} } });
  });

  test("a worker of one tenant can hold no jobs of another", async () => {
    const heldJobs = [{ ...lane, tenant: "Müller & Söhne", count: 1 }];
    const body = { worker, tasks: [{ name: "resize" }], limit: 1, heldJobs };
    expect((await api.request("POST", "/v1/leases/claim", { key: "acme-worker", body })).json()).toMatchObject({
      status: 403,
      code: "tenant_mismatch",
    });
  });

  test("what a worker holds is bounded in all, not only lane by lane", async () => {
    const half = { ...lane, count: 60_000 };
    expect((await claim([half, { ...half, queue: "other" }])).json()).toMatchObject({ status: 422, code: "option_invalid" });
    expect((await claim([half])).statusCode).toBe(200);
  });

  test.each(["expired", "deadline", "interrupted"])("a worker can say that a job was not run: %s", async (kind) => {
    const outcomes = [{ lease: "1", job: NOBODY, outcome: "failed", failure: { kind, message: "too late" }, retryable: false }];
    expect((await api.request("POST", "/v1/leases/settle", { body: { worker, outcomes } })).json()).toEqual({ results: ["stale"] });
  });

  test("a progress that is too large is refused with its place; with an ending it refuses that ending, and no other", async () => {
    const ids = await Promise.all([1, 2].map(async () => (await api.pawl.enqueue("noted", undefined, { tenant: "acme" })).id));
    const claimBody = { worker, tasks: [{ name: "noted" }], limit: 2, wait: "10s" };
    const { leases } = (await api.request("POST", "/v1/leases/claim", { key: "acme-worker", body: claimBody })).json() as {
      leases: { lease: string; jobs: { id: string }[] }[];
    };
    const [one, two] = leases.flatMap(({ lease, jobs }) => jobs.map(({ id: job }) => ({ lease, job })));
    const progress = { level: "progress", data: "x".repeat(BOUNDS.progress) };
    const post = async (path: string, body: object) => api.request("POST", path, { key: "acme-worker", body: { worker, ...body } });
    const noted = await post("/v1/leases/reports", {
      notes: [
        { ...one, level: "info", message: "m".repeat(5_000) },
        { ...one, ...progress },
      ],
    });
    expect(noted.json()).toMatchObject({ status: 413, code: "progress_too_large", pointer: "/notes/1/data", details: { limit: BOUNDS.progress } });
    const line = await post("/v1/leases/reports", { notes: [{ ...one, level: "info", message: "m".repeat(5_000) }] });
    expect(line.statusCode).toBe(204);
    const settled = await post("/v1/leases/settle", {
      outcomes: [
        { ...one, outcome: "succeeded", notes: [progress] },
        { ...two, outcome: "succeeded" },
      ],
    });
    expect(settled.json()).toMatchObject({
      results: ["refused", "settled"],
      refusals: [{ code: "progress_too_large", pointer: "/outcomes/0/notes/0/data" }],
    });
    expect((await post("/v1/leases/settle", { outcomes: [{ ...one, outcome: "succeeded" }] })).json()).toEqual({ results: ["settled"] });
    const logs = (await Promise.all(ids.map((id) => api.pawl.jobs.logs(id)))).flatMap(({ items }) => items);
    expect(logs).toMatchObject([{ message: expect.stringMatching(/^m+… \(10\d\d more characters were cut\)$/) }]);
  });

  test("a malformed ending is refused by itself, and those beside it are settled", async () => {
    const ids = await Promise.all([1, 2].map(async () => (await api.pawl.enqueue("mixed", undefined, { tenant: "acme" })).id));
    const body = { worker, tasks: [{ name: "mixed" }], limit: 2, wait: "10s" };
    const { leases } = (await api.request("POST", "/v1/leases/claim", { key: "acme-worker", body })).json() as {
      leases: { lease: string; jobs: { id: string }[] }[];
    };
    const good = leases.flatMap(({ lease, jobs }) => jobs.map(({ id: job }) => ({ lease, job, outcome: "succeeded" })));
    const bad = [
      { lease: "1", job: NOBODY, outcome: "vanished" },
      { lease: "1", job: NOBODY, outcome: "failed" },
      { lease: "1", job: NOBODY, outcome: "succeeded", retry: { kind: "nonsense" } },
      { lease: "1", job: NOBODY, outcome: "succeeded", more: 1 },
    ];
    const outcomes = [...bad, ...good];
    const answer = (await api.request("POST", "/v1/leases/settle", { key: "acme-worker", body: { worker, outcomes } })).json();
    expect(answer).toMatchObject({
      results: [...bad.map(() => "refused"), ...good.map(() => "settled")],
      refusals: [{ pointer: "/outcomes/0/outcome" }, { pointer: "/outcomes/1/failure" }, { pointer: "/outcomes/2/retry" }, { code: "field_unknown" }],
    });
    const states = await Promise.all(ids.map(async (id) => (await api.pawl.jobs.get(id))?.state));
    expect(states.filter((state) => state === "succeeded")).toHaveLength(good.length);
    expect(good.length).toBeGreaterThan(0);
  });
});
