import { open, type Pawl, task } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { openApp, type TestApp } from "./support.ts";

describe("jobs over HTTP", () => {
  let api: TestApp;
  let pawl: Pawl;
  beforeAll(async () => {
    const double = task("double", async ({ n }: { n: number }) => 2 * n);
    const broken = task("broken", { retry: 0 }, async () => {
      throw new RangeError("out of range");
    });
    const endless = task(
      "endless",
      (_: unknown, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    pawl = await open("memory:", { tasks: [double, broken, endless], allowUnknownTasks: true });
    await pawl.work({ tasks: ["double", "broken", "endless"] });
    api = await openApp({ pawl });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const enqueue = async (body: object) => (await api.request("POST", "/v1/jobs", { body })).json() as { id: string; enqueued: string };

  test("one is enqueued, waited for, and shown with its history", async () => {
    const created = await api.request("POST", "/v1/jobs", { body: { task: "double", input: { n: 21 }, tags: ["answer"] } });
    expect(created.statusCode).toBe(201);
    const { id } = created.json();
    const done = (await api.request("GET", `/v1/jobs/${id}?wait=60000`)).json();
    expect(done).toMatchObject({ id, state: "succeeded", output: 42, tags: ["answer"] });
    expect((await api.request("GET", `/v1/jobs/${id}`)).json()).toEqual(done);
    expect((await api.request("GET", `/v1/jobs/${id}/history`)).json().items).toMatchObject([{ outcome: "succeeded", next: "succeeded" }]);
    expect((await api.request("GET", `/v1/jobs/${id}/logs`)).json()).toEqual({ items: [] });
    expect((await api.request("GET", `/v1/jobs/${id}/explain`)).json()).toMatchObject({ state: "succeeded" });
  });

  test("a wait that is over before the job is answers with the job as it stands", async () => {
    const { id } = await enqueue({ task: "later", delay: "1h" });
    expect((await api.request("GET", `/v1/jobs/${id}?wait=0`)).json()).toMatchObject({ id, state: "scheduled" });
  });

  test("an enqueue answers 201 for a new job, and 200 where the unique key has one", async () => {
    const unique = { key: "one of it" };
    const [first, again] = [
      await api.request("POST", "/v1/jobs", { body: { task: "later", delay: "1h", unique } }),
      await api.request("POST", "/v1/jobs", { body: { task: "later", delay: "1h", unique } }),
    ];
    expect([first.statusCode, first.json().enqueued]).toEqual([201, "created"]);
    expect([again.statusCode, again.json()]).toEqual([200, { ...first.json(), enqueued: "existing" }]);
  });

  test("an enqueue that waits answers 200 with the finished job, however it ended", async () => {
    const done = await api.request("POST", "/v1/jobs?wait=60s", { body: { task: "double", input: { n: 4 } } });
    expect(done.statusCode).toBe(200);
    expect(done.json()).toMatchObject({ enqueued: "created", job: { id: done.json().id, state: "succeeded", output: 8 } });
    const died = await api.request("POST", "/v1/jobs?wait=60s", { body: { task: "broken" } });
    expect([died.statusCode, died.json()]).toMatchObject([200, { job: { state: "dead", failure: { name: "RangeError" } } }]);
    await api.request("POST", "/v1/dead/delete", { body: { filter: { task: "broken" } } });
  });

  test("an enqueue whose wait is over before the job answers 202 with its id, and the job goes on", async () => {
    const waited = await api.request("POST", "/v1/jobs?wait=1ms", { body: { task: "later", delay: "1h" } });
    expect([waited.statusCode, waited.json()]).toEqual([202, { id: expect.any(String), task: "later", enqueued: "created" }]);
    expect((await pawl.jobs.get(waited.json().id)).state).toBe("scheduled");
  });

  test("a wait that is no duration is refused before anything is stored", async () => {
    const refused = await api.request("POST", "/v1/jobs?wait=soon", { body: { task: "unstored" } });
    expect(refused.json()).toMatchObject({ status: 422, code: "duration_invalid", pointer: "query/wait" });
    expect((await api.request("GET", "/v1/jobs?task=unstored")).json().items).toEqual([]);
  });

  test("a verb answers 202 where the worker of a running job is asked, and 200 where it is done", async () => {
    const waiting = await enqueue({ task: "later", delay: "1h" });
    expect((await api.request("POST", `/v1/jobs/${waiting.id}/cancel`)).statusCode).toBe(200);
    const { id } = await enqueue({ task: "endless" });
    await eventually(
      () => "the handler that runs",
      async () => (await pawl.jobs.get(id)).state === "running",
    );
    const asked = await api.request("POST", `/v1/jobs/${id}/cancel`);
    expect([asked.statusCode, asked.json()]).toEqual([202, { from: "running", to: "running" }]);
    expect((await api.request("GET", `/v1/jobs/${id}?wait=60s`)).json()).toMatchObject({ state: "cancelled" });
  });

  test("a schedule is put with 201 when it is new, and with 200 afterwards", async () => {
    const put = (every: string) => api.request("PUT", "/v1/schedules/hourly", { body: { task: "later", every } });
    const answers = [await put("1h"), await put("1h"), await put("2h")];
    expect(answers.map((answer) => [answer.statusCode, answer.json().result])).toEqual([
      [201, "created"],
      [200, "unchanged"],
      [200, "changed"],
    ]);
  });

  test("a unique key is a text or an object, a spread one duration or two, and a rate a text or an object", async () => {
    const { id } = await enqueue({ task: "short", delay: "1h", unique: "k", spread: ["1m", "2m"] });
    expect((await api.request("GET", `/v1/jobs/${id}`)).json()).toMatchObject({ uniqueKey: "k", spread: [60_000, 120_000] });
    const again = { task: "short", unique: { key: "k", onConflict: "existing" } };
    expect((await api.request("POST", "/v1/jobs", { body: again })).json()).toMatchObject({ id, enqueued: "existing" });
    for (const rate of ["100/5m", { limit: 100, per: "5m" }]) {
      const answer = await api.request("PATCH", "/v1/queues/rated", { body: { rate } });
      expect(answer.json()).toMatchObject({ rate: { limit: 100, per: 300_000, burst: 100 } });
    }
    for (const body of [{ unique: 7 }, { unique: "" }, { unique: { for: "1h" } }, { spread: ["1m"] }, { spread: ["2m", "1m"] }, { key: "k" }])
      expect([body, (await api.request("POST", "/v1/jobs", { body: { task: "wrong", ...body } })).statusCode]).toEqual([
        body,
        expect.toSatisfy((status: number) => status === 400 || status === 422),
      ]);
    expect((await pawl.counts({ task: "wrong" })).ready).toBe(0);
  });

  test("a batch has an answer for each, in order, and those that can be stored are", async () => {
    const jobs = [
      { task: "batched", input: 1, unique: "a" },
      { task: "batched", input: 2, delay: "not a time" },
      { task: "else", input: 3 },
    ];
    const { results: answers } = (await api.request("POST", "/v1/jobs/many", { body: { jobs } })).json();
    expect(answers).toMatchObject([
      { enqueued: "created" },
      { error: { status: 422, code: "duration_invalid", pointer: "/delay" } },
      { enqueued: "created" },
    ]);
    expect((await pawl.jobs.get(answers[2].id)).input).toBe(3);
  });

  test("a parent that does not exist is the error of its child alone, and nothing is stored twice", async () => {
    const dependsOn = ["0197a0c0-7d1e-7000-8000-000000000000"];
    const family = async () => (await api.request("GET", "/v1/jobs?task=family")).json().items.map(({ input }: { input: number }) => input);
    const jobs = [
      { task: "family", input: 1 },
      { task: "family", input: 2, dependsOn },
      { task: "family", input: 3 },
    ];
    const { results: answers } = (await api.request("POST", "/v1/jobs/many", { body: { jobs } })).json();
    expect(answers).toMatchObject([{ enqueued: "created" }, { error: { status: 422, code: "dependency_unknown" } }, { enqueued: "created" }]);
    expect((await family()).sort()).toEqual([1, 3]);
    const atomic = await api.request("POST", "/v1/jobs/many", { body: { jobs, atomic: true } });
    expect(atomic.json()).toMatchObject({ status: 422, code: "dependency_unknown", details: { stored: 2 } });
    expect((await family()).sort(), "as the error says").toEqual([1, 1, 3, 3]);
  });

  test("an atomic batch stores all or none", async () => {
    const refused = await api.request("POST", "/v1/jobs/many", {
      body: {
        atomic: true,
        jobs: [
          { task: "whole", input: 1 },
          { task: "whole", delay: "?" },
        ],
      },
    });
    expect(refused.statusCode).toBe(422);
    expect((await api.request("GET", "/v1/jobs?task=whole")).json().items).toEqual([]);
    const stored = await api.request("POST", "/v1/jobs/many", {
      body: { atomic: true, task: "whole", inputs: [1, 2, 3], options: { priority: "high" } },
    });
    expect(stored.json().results).toHaveLength(3);
    expect((await api.request("GET", "/v1/jobs?task=whole")).json().items).toMatchObject([{ priority: 7 }, { priority: 7 }, { priority: 7 }]);
  });

  test("pages follow one another without a gap or a repetition", async () => {
    await api.request("POST", "/v1/jobs/many", { body: { task: "paged", inputs: Array.from({ length: 25 }, (_, n) => n) } });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = (await api.request("GET", `/v1/jobs?task=paged&limit=10${cursor === undefined ? "" : `&cursor=${cursor}`}`)).json();
      seen.push(...page.items.map(({ id }: { id: string }) => id));
      cursor = page.next;
    } while (cursor !== undefined);
    expect(new Set(seen).size).toBe(25);
    expect(seen).toHaveLength(25);
  });

  test("the verbs change a job, and what does not apply is told with its state", async () => {
    const { id } = await enqueue({ task: "controlled", delay: "1h" });
    expect((await api.request("POST", `/v1/jobs/${id}/pause`)).json()).toEqual({ from: "scheduled", to: "parked" });
    expect((await api.request("POST", `/v1/jobs/${id}/resume`)).json()).toMatchObject({ from: "parked" });
    expect((await api.request("POST", `/v1/jobs/${id}/promote`)).json()).toMatchObject({ to: "ready" });
    expect((await api.request("POST", `/v1/jobs/${id}/cancel`, { body: { reason: "no longer wanted" } })).json()).toMatchObject({ to: "cancelled" });
    const again = await api.request("POST", `/v1/jobs/${id}/pause`);
    expect(again.statusCode).toBe(409);
    expect(again.json()).toMatchObject({ code: "job_state_conflict", details: { state: "cancelled", verb: "pause" } });
    expect((await api.request("POST", `/v1/jobs/${id}/rerun`)).json()).toMatchObject({ enqueued: "created", task: "controlled" });
    const deleted = await api.request("DELETE", `/v1/jobs/${id}`);
    expect([deleted.statusCode, deleted.body]).toEqual([204, ""]);
    expect((await api.request("GET", `/v1/jobs/${id}`)).statusCode).toBe(404);
  });

  test("jobs are counted by filter, and a reason goes to the history and to the audit", async () => {
    const { id } = await enqueue({ task: "counted", delay: "1h", tags: ["few"] });
    await enqueue({ task: "counted", delay: "1h" });
    expect((await api.request("GET", "/v1/jobs/count?task=counted&state=scheduled")).json()).toEqual({ count: 2 });
    expect((await api.request("GET", "/v1/jobs/count?task=counted&tag=few")).json()).toEqual({ count: 1 });
    const before = api.audit.length;
    await api.request("POST", `/v1/jobs/${id}/pause`, { body: { reason: "maintenance" } });
    await api.request("POST", "/v1/queues/slow/pause", { body: { reason: "the printer is broken" } });
    await api.request("POST", `/v1/jobs/${id}/cancel`, { body: { reason: "not needed" } });
    await api.request("DELETE", `/v1/jobs/${id}?reason=clean%20up`);
    expect(api.audit.slice(before).map(({ action, details }) => [action, details?.reason])).toEqual([
      ["jobs.pause", "maintenance"],
      ["queues.pause", "the printer is broken"],
      ["jobs.cancel", "not needed"],
      ["jobs.delete", "clean up"],
    ]);
    await api.request("POST", "/v1/queues/slow/resume");
  });

  test("an instant without an offset is refused with an example", async () => {
    const refused = await api.request("POST", "/v1/jobs", { body: { task: "later", runAt: "2026-01-01T00:00" } });
    expect([refused.statusCode, refused.json()]).toMatchObject([422, { code: "option_invalid", pointer: "/runAt" }]);
    expect(refused.json().detail).toContain('write "2026-11-15T12:00:00Z"');
  });

  test("dead jobs are redriven at a rate", async () => {
    for (let n = 0; n < 2; n++) await api.request("POST", "/v1/jobs?wait=60s", { body: { task: "broken" } });
    const body = { filter: { task: "broken" }, pace: "1/h", reason: "mended" };
    expect((await api.request("POST", "/v1/dead/redrive", { body })).json()).toMatchObject({ changed: 2 });
    expect((await api.request("GET", "/v1/jobs/count?task=broken&state=scheduled")).json()).toEqual({ count: 1 });
    await eventually("the other one is dead", async () => (await pawl.jobs.count({ task: "broken", state: "dead" })) > 0);
    await pawl.jobs.bulk("cancel", { task: "broken", state: "scheduled" });
    await pawl.jobs.bulk("delete", { task: "broken", state: "dead" });
  });

  test("dead jobs are listed, counted, grouped, redriven and deleted", async () => {
    const { id } = await enqueue({ task: "broken" });
    expect((await api.request("GET", `/v1/jobs/${id}?wait=30s`)).json()).toMatchObject({ state: "dead", failure: { name: "RangeError" } });
    expect((await api.request("GET", "/v1/dead?failure=RangeError")).json().items).toHaveLength(1);
    expect((await api.request("GET", "/v1/dead/count?task=broken")).json()).toEqual({ count: 1 });
    expect((await api.request("GET", "/v1/dead/groups?task=broken")).json().items).toMatchObject([{ task: "broken", name: "RangeError", count: 1 }]);
    expect((await api.request("POST", "/v1/dead/redrive", { body: { filter: { task: "broken" } } })).json()).toMatchObject({ changed: 1, failed: 0 });
    expect((await api.request("GET", `/v1/jobs/${id}?wait=30s`)).json()).toMatchObject({ state: "dead" });
    expect((await api.request("POST", "/v1/dead/delete", { body: { filter: { task: "broken" } } })).json()).toMatchObject({ changed: 1 });
    expect((await api.request("GET", "/v1/dead/count?task=broken")).json()).toEqual({ count: 0 });
  });
});
