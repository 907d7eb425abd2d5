import { afterEach, beforeEach, expect, test } from "vitest";
import { serviceOf } from "../../service-of.js";
import { openTest, type TestPawl } from "../../testing/open.js";

const REQUEST = { tenant: "acme", credential: "a", key: "k", hash: "h" };
const REPLY = { status: 201, body: "{}", headers: {} };

let world: TestPawl;
beforeEach(async () => {
  world = await openTest({ work: false });
});
afterEach(() => world.close());

async function begun() {
  const start = await serviceOf(world.pawl).idempotency.begin(REQUEST);
  if (start.kind !== "begun") throw new Error(start.kind);
  return start;
}

test("a request with a key is carried out by one, and its answer kept for a day", async () => {
  const start = await begun();
  expect(await serviceOf(world.pawl).idempotency.begin(REQUEST)).toEqual({ kind: "in_flight", retryIn: 60_000 });
  expect(await serviceOf(world.pawl).idempotency.begin({ ...REQUEST, hash: "other" })).toEqual({ kind: "different" });
  expect(await start.finish(REPLY)).toBe("kept");
  expect(await serviceOf(world.pawl).idempotency.begin(REQUEST)).toEqual({ kind: "replied", reply: REPLY });
  await world.advance("24h");
  expect(await serviceOf(world.pawl).idempotency.begin(REQUEST)).toMatchObject({ kind: "begun" });
});

test("a request that did nothing can be sent again at once", async () => {
  await (await begun()).abandon();
  expect(await begun()).toBeDefined();
});

test("one that took too long is told that another one has it", async () => {
  const slow = await begun();
  await world.advance("60s");
  const quick = await begun();
  expect(await slow.finish(REPLY)).toBe("stale");
  expect(await quick.finish(REPLY)).toBe("kept");
});
