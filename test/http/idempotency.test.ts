import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp, repliesInMemory, type TestApp } from "./support.ts";

describe("S31: Idempotency-Key", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp();
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const send = (key: string, body: object, caller = "acme-admin", url = "/v1/jobs") =>
    api.request("POST", url, { key: caller, body, headers: { "idempotency-key": key } });

  test("repeated, a request is done once and answered alike, and says so", async () => {
    const first = await send("one", { task: "a", input: 1 });
    const again = await send("one", { task: "a", input: 1 });
    expect([again.statusCode, again.body]).toEqual([first.statusCode, first.body]);
    expect([first.headers["idempotency-replayed"], again.headers["idempotency-replayed"]]).toEqual([undefined, "true"]);
  });

  test("an enqueue that waits is not kept: repeated, it waits for the same job", async () => {
    const url = "/v1/jobs?wait=1ms";
    const first = await send("waits", { task: "waited", input: 1 }, "acme-admin", url);
    expect([first.statusCode, first.json().enqueued]).toEqual([202, "created"]);
    await api.pawl.jobs.cancel(first.json().id);
    const again = await send("waits", { task: "waited", input: 1 }, "acme-admin", url);
    expect([again.statusCode, again.json()]).toMatchObject([200, { id: first.json().id, enqueued: "existing", job: { state: "cancelled" } }]);
    expect((await send("waits", { task: "waited", input: 2 }, "acme-admin", url)).json()).toMatchObject({
      status: 422,
      code: "idempotency_key_reused",
      details: { idempotencyKey: "waits" },
    });
    expect([...api.replies.pending.keys()].filter((key) => key.endsWith("\nwaits"))).toEqual([]);
  });

  test("a refusal is an answer too", async () => {
    const refused = await send("refused", { task: "a", delay: "?" });
    const again = await send("refused", { task: "a", delay: "?" });
    expect([again.statusCode, again.body, again.headers["content-type"]]).toEqual([422, refused.body, refused.headers["content-type"]]);
  });

  test("a denial is none: the audit hears of every one (S72)", async () => {
    api.callers.set("mailer", { name: "mailer", tenant: "acme", grants: [{ role: "worker", tasks: ["mail.*"] }] });
    const claim = { worker: { name: "w", instance: "6f1c1f5e-0f5a-4b5e-9c58-0a3a4c1b8a11" }, tasks: [{ name: "pay" }], limit: 1 };
    for (let n = 0; n < 2; n++) {
      const denial = await send("denied", claim, "mailer", "/v1/leases/claim");
      expect([denial.statusCode, denial.headers["idempotency-replayed"]]).toEqual([403, undefined]);
    }
    const entries = api.audit.filter(({ actor }) => actor === "mailer");
    expect(entries.map(({ action, outcome, details }) => [action, outcome, details?.reason])).toEqual(
      Array<string[]>(2).fill(["leases.claim", "denied", "forbidden"]),
    );
  });

  test("a key that was used for something else is refused", async () => {
    await send("reused", { task: "a", input: 1 });
    expect((await send("reused", { task: "a", input: 2 })).json()).toMatchObject({
      status: 422,
      code: "idempotency_key_reused",
      detail: expect.stringContaining("idempotency key reused was used for another call"),
    });
    expect((await send("reused", { task: "a", input: 1 }, "acme-admin", "/v1/jobs/many")).statusCode).toBe(422);
  });

  test("while the first is being served, the second is told to wait", async () => {
    await send("probe", { task: "a" });
    const hash = [...api.replies.pending.values()].at(-1)?.hash as string;
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    api.replies.pending.set("acme/acme-admin\nbusy", { hash });
    // The same request under another key: its hash is of what it asks, not of the key.
    expect((await send("busy", { task: "a" })).json()).toMatchObject({ status: 409, code: "idempotency_in_flight" });
  });

  test("callers do not share keys", async () => {
    const mine = (await send("shared", { task: "a" }, "acme-admin")).json();
    const theirs = (await send("shared", { task: "a" }, "acme-operator")).json();
    expect(theirs.id).not.toBe(mine.id);
    expect(theirs.enqueued).toBe("created");
  });

  test("an answer that was never kept still makes one job, one by one and in a batch", async () => {
    for (const [url, body] of [
      ["/v1/jobs", { task: "lost" }],
      ["/v1/jobs/many", { task: "lost", inputs: [1, 2] }],
    ] as const) {
      const idOf = (answer: { id: string } | { results: { id: string }[] }) => ("id" in answer ? [answer.id] : answer.results.map(({ id }) => id));
      const first = idOf((await send("lost", body, "acme-admin", url)).json());
      api.replies.pending.clear(); // as if the service had been killed before it could keep it
      expect(idOf((await send("lost", body, "acme-admin", url)).json())).toEqual(first);
      api.replies.pending.clear();
    }
  });

  test("a key whose answer was never kept is refused for another job, and still answers with its first one", async () => {
    const first = (await send("taken", { task: "a", input: 1 })).json();
    api.replies.pending.clear(); // as if the service had been killed before it could keep it
    for (const body of [
      { task: "b", input: 1 },
      { task: "a", input: 2 },
    ]) {
      expect((await send("taken", body)).json()).toMatchObject({ status: 422, code: "idempotency_key_reused" });
    }
    expect((await send("taken", { task: "a", input: 1 })).json()).toEqual({ ...first, enqueued: "existing" });
    expect((await api.request("GET", "/v1/jobs?task=b")).json().items).toEqual([]);
  });

  test("an idempotency key of the body is refused for another job, and answers the same again", async () => {
    const enqueue = (body: object) => api.request("POST", "/v1/jobs", { body: { ...body, idempotencyKey: "by hand, once" } });
    const [first, again] = [await enqueue({ task: "a", input: 1 }), await enqueue({ task: "a", input: 1, delay: "1h" })];
    expect([first.statusCode, again.statusCode, again.json()]).toEqual([201, 200, { ...first.json(), enqueued: "existing" }]);
    expect((await enqueue({ task: "b", input: 1 })).json()).toMatchObject({
      status: 422,
      code: "idempotency_key_reused",
      details: { idempotencyKey: "by hand, once" },
    });
  });

  test("a batch is known by what it stored: repeated, it is answered alike, with what was refused, and says so", async () => {
    const jobs = [
      { task: "batched", input: 1 },
      { task: "batched", input: 2, delay: "?" },
      { task: "else", input: 3 },
    ];
    const first = await send("batch", { jobs }, "acme-admin", "/v1/jobs/many");
    const again = await send("batch", { jobs }, "acme-admin", "/v1/jobs/many");
    expect(first.json().repeated).toBe(false);
    expect([again.statusCode, again.json()]).toEqual([200, { ...first.json(), repeated: true }]);
    expect([first.headers["idempotency-replayed"], again.headers["idempotency-replayed"]]).toEqual([undefined, "true"]);
    expect([...api.replies.pending.keys()].filter((key) => key.endsWith("\nbatch"))).toEqual([]);
    const other = await send("batch", { jobs: [{ task: "batched", input: 4 }] }, "acme-admin", "/v1/jobs/many");
    expect(other.json()).toMatchObject({ status: 422, code: "idempotency_key_reused" });
    const theirs = await send("batch", { jobs }, "acme-operator", "/v1/jobs/many");
    expect(theirs.json().results[0].id).not.toBe(first.json().results[0].id);
    expect((await api.request("GET", "/v1/jobs?task=batched")).json().items).toHaveLength(2);
  });

  test("two copies of a batch at once are one, and nobody is told to wait", async () => {
    const body = { task: "copies", inputs: [1, 2, 3], idempotencyKey: "by hand" };
    const [one, two] = await Promise.all([1, 2].map(() => api.request("POST", "/v1/jobs/many", { body })));
    expect(two?.json().results).toEqual(one?.json().results);
    expect([one, two].map((answer) => answer?.json().repeated).sort()).toEqual([false, true]);
    expect((await api.request("GET", "/v1/jobs?task=copies")).json().items).toHaveLength(3);
    const reused = await api.request("POST", "/v1/jobs/many", { body: { ...body, inputs: [4] } });
    expect(reused.json()).toMatchObject({ status: 422, code: "idempotency_key_reused" });
  });

  test("what the service failed at can be tried again", async () => {
    const replies = repliesInMemory();
    let away = true;
    const audit = {
      async record() {
        if (away) throw new Error("away");
      },
    };
    await using failing = await openApp({ replies, audit });
    const pause = () => failing.request("POST", "/v1/queues/q/pause", { headers: { "idempotency-key": "again" } });
    expect((await pause()).statusCode).toBe(500);
    away = false;
    expect((await pause()).statusCode).toBe(204);
    expect((await pause()).headers["idempotency-replayed"]).toBe("true");
  });

  test.each(["", "a b", "ü", "x".repeat(256)])("a key like %j is refused", async (key) => {
    const answer = await api.app.inject({
      method: "POST",
      url: "/v1/jobs",
      headers: { authorization: "Bearer acme-admin", "content-type": "application/json", "idempotency-key": Buffer.from(key).toString("latin1") },
      payload: '{"task":"a"}',
    });
    expect(answer.json()).toMatchObject({ status: 422, pointer: "Idempotency-Key" });
  });
});
