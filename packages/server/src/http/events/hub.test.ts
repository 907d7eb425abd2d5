import type { Readable } from "node:stream";
import type { ClusterEvents } from "pawl/service";
import { expect, test } from "vitest";
import { EventHub } from "./hub.js";

const silent = {
  follow: async () => ({ position: { epoch: "e", batch: 0 }, stop: async () => {} }),
} as unknown as ClusterEvents;

test("one tenant's streams, of however many keys, leave room for those of another", async () => {
  const hub = new EventHub(silent, { perCredential: 2, streams: 4 });
  const subscribe = (name: string, tenant: string) =>
    hub.subscribe({ principal: { name, tenant, grants: [] }, filter: {}, lastEventId: undefined, stillAllowed: async () => true });
  const ended: number[] = [];
  const follow = (stream: Readable, n: number) => stream.once("end", () => ended.push(n)).resume();
  for (const [n, key] of ["a", "a", "b", "b"].entries()) follow(await subscribe(key, "greedy"), n);
  await expect(subscribe("c", "greedy")).rejects.toMatchObject({ code: "too_many_requests" });
  await subscribe("d", "other");
  await subscribe("d", "other");
  await new Promise(setImmediate);
  expect(ended.sort()).toEqual([2, 3]);
  // Both have two of four: that is their share.
  await expect(subscribe("e", "other")).rejects.toMatchObject({ code: "too_many_requests" });
  await hub.close();
});
