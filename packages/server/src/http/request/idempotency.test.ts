import { apiKeyText, serviceOf } from "pawl/service";
import { openTest, type TestPawl } from "pawl/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { handleOnce } from "./idempotency.js";

let world: TestPawl;
beforeEach(async () => {
  world = await openTest({ work: false, maintenance: false });
});
afterEach(() => world.close());

const principal = { name: "key:a", tenant: "acme", grants: [] };
const request = { principal, key: "k", method: "POST", url: "/v1/api-keys", body: { name: "ci" } };

test("an answer is kept for whoever sends the same request with the same key, and nobody else", async () => {
  const { idempotency: replies } = serviceOf(world.pawl);
  const answer = async () => ({ status: 201, body: "{}" });
  const never = () => Promise.reject(new Error("it was done before"));
  expect(await handleOnce(replies, request, answer)).toEqual({ status: 201, body: "{}" });
  expect(await handleOnce(replies, request, never)).toEqual({ status: 201, body: "{}", replayed: true });
  await expect(handleOnce(replies, { ...request, body: { name: "other" } }, never)).rejects.toMatchObject({ code: "idempotency_key_reused" });
  expect(await handleOnce(replies, { ...request, principal: { ...principal, name: "key:b" } }, answer)).not.toHaveProperty("replayed");
});

test("while it is being answered, a second one is told to wait", async () => {
  const { idempotency: replies } = serviceOf(world.pawl);
  await handleOnce(replies, request, async () => {
    await expect(handleOnce(replies, request, () => Promise.reject(new Error("twice")))).rejects.toMatchObject({ code: "idempotency_in_flight" });
    return { status: 204, body: "" };
  });
});

test("an API key in an answer is not kept with it (S2)", async () => {
  const text = apiKeyText({ env: "live", id: "a".repeat(16), secret: "s".repeat(43) });
  const body = JSON.stringify({ text });
  const first = await handleOnce(serviceOf(world.pawl).idempotency, request, async () => ({ status: 201, body }));
  expect(first.body).toBe(body);
  const again = await handleOnce(serviceOf(world.pawl).idempotency, request, () => Promise.reject(new Error("twice")));
  expect(again).toEqual({ status: 201, body: '{"text":"(shown once)"}', replayed: true });
});

test("a request that failed may be sent again at once", async () => {
  const { idempotency: replies } = serviceOf(world.pawl);
  await expect(handleOnce(replies, request, () => Promise.reject(new Error("no room")))).rejects.toThrow("no room");
  expect(await handleOnce(replies, request, async () => ({ status: 200, body: "1" }))).toEqual({ status: 200, body: "1" });
});
