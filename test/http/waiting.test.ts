import type { Jobs } from "pawl/service";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { openApp, type TestApp } from "./support.ts";

describe("who waited for more than two seconds is asked again who they are", () => {
  let api: TestApp;
  let ahead: number;
  beforeEach(async () => {
    ahead = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + ahead);
    api = await openApp();
  });
  afterEach(async () => {
    await api[Symbol.asyncDispose]();
    vi.restoreAllMocks();
  });

  const revoke = (key: string) => api.callers.set(key, { refused: "unauthenticated" });

  test.each([
    ["after a long time", 3_000, 401],
    ["at once", 0, 200],
  ])("a wait for a job that is over %s", async (_, took, status) => {
    const { id } = (await api.request("POST", "/v1/jobs", { body: { task: "a", delay: "1h" } })).json();
    // Each caller has a scheduler of its own.
    const jobs = Object.getPrototypeOf(api.pawl.jobs) as Jobs;
    const { wait } = jobs;
    vi.spyOn(jobs, "wait").mockImplementation(function (this: Jobs, ...args) {
      ahead = took;
      revoke("all-viewer");
      return wait.apply(this, args);
    });
    expect((await api.request("GET", `/v1/jobs/${id}?wait=0`, { key: "all-viewer" })).statusCode).toBe(status);
  });

  test("an enqueue that waits hears no more than that its job is stored", async () => {
    const jobs = Object.getPrototypeOf(api.pawl.jobs) as Jobs;
    const { wait } = jobs;
    vi.spyOn(jobs, "wait").mockImplementation(async function (this: Jobs, job, ...args) {
      await this.cancel(job);
      ahead = 3_000;
      revoke("acme-producer");
      return wait.apply(this, [job, ...args]);
    });
    const answer = await api.request("POST", "/v1/jobs?wait=30s", { key: "acme-producer", body: { task: "a" } });
    expect([answer.statusCode, answer.json()]).toEqual([202, { id: expect.any(String), task: "a", enqueued: "created" }]);
  });

  test("a claim, and what it took is given back", async () => {
    const worker = { name: "w", instance: "6f1c1f5e-0f5a-4b5e-9c58-0a3a4c1b8a11" };
    const claim = api.request("POST", "/v1/leases/claim", { key: "acme-worker", body: { worker, tasks: [{ name: "a" }], limit: 1, wait: "30s" } });
    await eventually(
      () => "the worker that waits",
      async () => (await api.pawl.workers.list()).items.length === 1,
    );
    ahead = 3_000;
    revoke("acme-worker");
    const job = await api.pawl.enqueue("a", null, { tenant: "acme" });
    expect((await claim).statusCode).toBe(401);
    await eventually(
      () => "the job as it was",
      async () => (await job.get()).state === "ready",
    );
    expect(await job.get()).toMatchObject({ attempts: 0, crashes: 0 });
    expect((await job.history()).items, "it had been taken").toMatchObject([{ outcome: "released" }]);
  });
});

describe("a key has so many requests that wait at a time", () => {
  const worker = { name: "w", instance: "6f1c1f5e-0f5a-4b5e-9c58-0a3a4c1b8a11" };

  test("waits for jobs: one more is refused, and those of another key are not", async () => {
    await using api = await openApp({ waits: { perCredential: 1 } });
    const job = await api.pawl.enqueue("a", null, { tenant: "acme", delay: "1h" });
    const request = (key: string) => api.request("GET", `/v1/jobs/${job.id}?wait=30s`, { key });
    const first = request("acme-viewer");
    await turned();
    const second = await request("acme-viewer");
    expect([second.statusCode, second.headers["retry-after"], second.json().code]).toEqual([429, "5", "too_many_requests"]);
    const other = request("acme-operator");
    await turned();
    await job.cancel();
    expect([(await first).statusCode, (await other).statusCode]).toEqual([200, 200]);
  });

  test("enqueues that wait: one more is refused, and its job is not stored", async () => {
    await using api = await openApp({ waits: { perCredential: 1 } });
    const enqueue = (input: number) => api.request("POST", "/v1/jobs?wait=30s", { key: "acme-producer", body: { task: "a", input } });
    const first = enqueue(1);
    await turned();
    const second = await enqueue(2);
    expect([second.statusCode, second.headers["retry-after"], second.json().code]).toEqual([429, "5", "too_many_requests"]);
    const { items: jobs } = await api.pawl.jobs.list();
    expect(jobs).toMatchObject([{ input: 1 }]);
    await api.pawl.jobs.cancel(jobs[0]?.id as string);
    expect((await first).json()).toMatchObject({ job: { state: "cancelled" } });
  });

  test("claims: one more is refused, and the one that waits gets the job", async () => {
    await using api = await openApp({ claims: { perCredential: 1 } });
    const body = { worker, tasks: [{ name: "a" }], limit: 1, wait: "30s" };
    const first = api.request("POST", "/v1/leases/claim", { key: "acme-worker", body });
    await eventually(
      () => "the worker that waits",
      async () => (await api.pawl.workers.list()).items.length === 1,
    );
    const second = await api.request("POST", "/v1/leases/claim", { key: "acme-worker", body: { ...body, worker: { ...worker, name: "v" } } });
    expect([second.statusCode, second.headers["retry-after"]]).toEqual([429, "5"]);
    const { id } = await api.pawl.enqueue("a", null, { tenant: "acme" });
    expect((await first).json()).toMatchObject({ leases: [{ jobs: [{ id }] }] });
  });
});

/** Long enough for a request that waits to have begun to: it comes to that without an answer from elsewhere. */
async function turned(): Promise<void> {
  for (let round = 0; round < 50; round++) await new Promise(setImmediate);
}
