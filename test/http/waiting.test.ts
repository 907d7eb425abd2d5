import type { Jobs } from "pawl";
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

  const revoke = (key: string) => api.known.set(key, { refused: "unauthenticated" });

  test.each([
    ["after a long time", 3_000, 401],
    ["at once", 0, 200],
  ])("a wait for a job that is over %s", async (_, took, status) => {
    const { id } = (await api.ask("POST", "/v1/jobs", { body: { task: "a", delay: "1h" } })).json();
    // Each caller has a scheduler of its own.
    const jobs = Object.getPrototypeOf(api.pawl.jobs) as Jobs;
    const { wait } = jobs;
    vi.spyOn(jobs, "wait").mockImplementation(function (this: Jobs, ...args) {
      ahead = took;
      revoke("all-viewer");
      return wait.apply(this, args);
    });
    expect((await api.ask("GET", `/v1/jobs/${id}/wait?timeout=0`, { key: "all-viewer" })).statusCode).toBe(status);
  });

  test("a claim, and what it took is given back", async () => {
    const worker = { name: "w", boot: "6f1c1f5e-0f5a-4b5e-9c58-0a3a4c1b8a11" };
    const claim = api.ask("POST", "/v1/leases", { key: "acme-worker", body: { worker, tasks: [{ name: "a" }], limit: 1, wait: "30s" } });
    await eventually(
      () => "the worker that waits",
      async () => (await api.pawl.workers()).length === 1,
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
    expect(await job.history(), "it had been taken").toMatchObject([{ outcome: "released" }]);
  });
});
