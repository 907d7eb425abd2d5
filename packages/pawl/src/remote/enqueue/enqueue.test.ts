import { expect, test } from "vitest";
import { type PawlError, pawlError } from "../../core/values/error.js";
import { virtualClock } from "../../testing/clock.js";
import type { HttpTransport, ServiceCall } from "../transport/http-transport.js";
import { RemoteEnqueuer } from "./enqueue.js";

const task = { name: "t", options: {} };

function enqueuer(error: PawlError): RemoteEnqueuer {
  const call = async () => {
    throw error;
  };
  return new RemoteEnqueuer({ json: call, call, checkOpen: () => {}, clock: virtualClock() } as unknown as HttpTransport, {});
}

test("jobs that nothing was heard of may be stored, and the error says how to repeat them", async () => {
  const remote = enqueuer(pawlError("store_unreachable", { store: "s", reason: "it broke", uncertain: true }));
  const [named, keyed] = await Promise.allSettled([
    remote.one(task, undefined, 1, { idempotencyKey: "r" }),
    remote.one(task, undefined, 2, { unique: "k" }),
  ]);
  expect(named).toMatchObject({ reason: { code: "enqueue_uncertain", details: { count: 1, idempotencyKey: "r" } } });
  expect(keyed).toMatchObject({ reason: { code: "enqueue_uncertain", details: { count: 1, key: "k" } } });
  await expect(remote.many(task, undefined, [1, 2, 3])).rejects.toMatchObject({ code: "enqueue_uncertain", details: { count: 3, stored: 0 } });
});

test("many are sent in bodies that the service takes, counted in bytes", async () => {
  const sizes: number[] = [];
  const call = async ({ body = "" }: ServiceCall) => {
    sizes.push(Buffer.byteLength(body));
    const answers = (JSON.parse(body) as { inputs: unknown[] }).inputs.map(() => ({ enqueued: "created" }));
    return { status: 200, headers: {}, text: JSON.stringify({ repeated: false, results: answers }) };
  };
  const remote = new RemoteEnqueuer({ call, checkOpen: () => {}, clock: virtualClock() } as unknown as HttpTransport, {});
  // Three bytes each: few characters, many bytes.
  expect(await remote.many(task, undefined, new Array<string>(10).fill("€".repeat(300_000)))).toHaveLength(10);
  expect(Math.max(...sizes)).toBeLessThan(5 * 1_048_576);
});

test("jobs that were never sent are not stored", async () => {
  const remote = enqueuer(pawlError("store_unreachable", { store: "s", reason: "nobody listens" }));
  await expect(remote.one(task, undefined, 1)).rejects.toMatchObject({ code: "store_unreachable" });
});
