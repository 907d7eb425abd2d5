import { apiKeyText } from "pawl";
import { openTest, type TestPawl } from "pawl/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { auditLog } from "./audit-log.js";
import { keptReplies } from "./kept-replies.js";

let world: TestPawl;
beforeEach(async () => {
  world = await openTest({ work: false, maintenance: false });
});
afterEach(() => world.close());

test("what the API tells is in the log of the caller's tenant, with all that was said of it", async () => {
  const audit = auditLog(world.pawl.audit);
  await audit.record({
    who: "key:a",
    tenant: "acme",
    action: "jobs.cancel",
    subject: { job: "1", verb: "cancel" },
    decision: "allowed",
    address: "192.0.2.1",
    request: "r",
  });
  await audit.record({
    who: undefined,
    tenant: undefined,
    action: "jobs.get",
    subject: {},
    decision: "denied",
    reason: "unauthenticated",
    count: 7,
    address: "",
    request: "r2",
  });
  expect((await world.pawl.audit.list({ tenant: "acme" })).entries).toMatchObject([
    {
      actor: "key:a",
      action: "jobs.cancel",
      outcome: "allowed",
      subject: "job:1",
      address: "192.0.2.1",
      request: "r",
      details: { job: "1", verb: "cancel" },
    },
  ]);
  expect((await world.pawl.audit.list()).entries).toMatchObject([
    { actor: "anonymous", outcome: "denied", details: { reason: "unauthenticated", count: 7 } },
  ]);
});

test("an answer is kept for whoever sends the same request with the same key, in any process", async () => {
  const [here, there] = [keptReplies(world.pawl.replies), keptReplies(world.pawl.replies)];
  const first = { tenant: "acme", owner: "acme/key:a", key: "k", hash: "h" };
  expect(await here.begin(first)).toEqual({ kind: "first" });
  expect(await there.begin({ ...first })).toEqual({ kind: "busy" });
  expect(await there.begin({ ...first, hash: "other" })).toEqual({ kind: "other" });
  await here.finish(first, { status: 201, body: "{}" });
  expect(await there.begin({ ...first })).toEqual({ kind: "known", reply: { status: 201, body: "{}" } });
  expect(await there.begin({ ...first, owner: "acme/key:b", hash: "other" })).toEqual({ kind: "first" });
});

test("an API key in an answer is not kept with it (S2)", async () => {
  const replies = keptReplies(world.pawl.replies);
  const request = { tenant: "acme", owner: "acme/key:a", key: "k", hash: "h" };
  const text = apiKeyText({ env: "live", id: "a".repeat(16), secret: "s".repeat(43) });
  await replies.begin(request);
  await replies.finish(request, { status: 201, body: JSON.stringify({ text }) });
  expect(await replies.begin({ ...request })).toEqual({ kind: "known", reply: { status: 201, body: '{"text":"(shown once)"}' } });
});

test("a request that did nothing may be sent again at once", async () => {
  const replies = keptReplies(world.pawl.replies);
  const request = { tenant: "acme", owner: "acme/key:a", key: "k", hash: "h" };
  await replies.begin(request);
  await replies.abandon(request);
  expect(await replies.begin({ ...request })).toEqual({ kind: "first" });
});
