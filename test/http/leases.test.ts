import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp, type TestApp } from "./support.ts";

const worker = { name: "python", boot: "00000000-0000-4000-8000-00000000000a" };
const NOBODY = "0197a0c0-7d1e-7000-8000-000000000000";

describe("the pull protocol", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp();
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const claim = (holding: readonly object[]) =>
    api.ask("POST", "/v1/leases", { body: { worker, tasks: [{ name: "resize" }], limit: 1, slots: { tasks: { resize: 1 } }, holding } });
  const lane = { task: "resize", queue: "default", priority: 5, tenant: "default" };

  test("a worker can name the lanes of all jobs it can have, whoever enqueued them", async () => {
    const answer = await claim([{ ...lane, queue: "urgent orders", tenant: "Müller & Söhne", count: 1 }]);
    expect(answer.json()).toEqual({ leases: [] });
    expect((await claim([{ ...lane, tenant: "x".repeat(129), count: 1 }])).statusCode).toBe(422);
  });

  test("a worker of one tenant can hold no jobs of another", async () => {
    const holding = [{ ...lane, tenant: "Müller & Söhne", count: 1 }];
    const body = { worker, tasks: [{ name: "resize" }], limit: 1, holding };
    expect((await api.ask("POST", "/v1/leases", { key: "acme-worker", body })).json()).toMatchObject({ status: 403, code: "tenant_mismatch" });
  });

  test("what a worker holds is bounded in all, not only lane by lane", async () => {
    const half = { ...lane, count: 60_000 };
    expect((await claim([half, { ...half, queue: "other" }])).json()).toMatchObject({ status: 422, code: "option_invalid" });
    expect((await claim([half])).statusCode).toBe(200);
  });

  test.each(["expired", "deadline", "interrupted"])("a worker can say that a job was not run: %s", async (kind) => {
    const endings = [{ lease: "1", job: NOBODY, outcome: "failed", failure: { kind, message: "too late" }, retryable: false }];
    expect((await api.ask("POST", "/v1/leases/settle", { body: { worker, endings } })).json()).toEqual({ answers: ["stale"] });
  });
});
