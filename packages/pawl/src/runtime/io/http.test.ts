import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { HttpConnections } from "./http.js";

/** as many as a pool has connections */
const ALL = 64;

test("calls that wait do not hold up those that must not, however many they are", async () => {
  let waiting = 0;
  let full = () => {};
  const allWait = new Promise<void>((resolve) => {
    full = resolve;
  });
  const server = createServer((request, response) => {
    if (request.url !== "/wait") response.end("done");
    else if (++waiting === ALL) full();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const connections = new HttpConnections(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  const call = { method: "GET", headers: {}, timeout: 30_000 };
  const waits = Array.from({ length: ALL }, () => connections.send({ ...call, path: "/wait", pool: "waits" }).catch(() => "cut off"));
  await allWait;
  expect(await connections.send({ ...call, path: "/renew", pool: "work" })).toMatchObject({ status: 200, text: "done" });
  expect(await connections.send({ ...call, path: "/info" })).toMatchObject({ status: 200, text: "done" });
  server.closeAllConnections();
  expect(new Set(await Promise.all(waits))).toEqual(new Set(["cut off"]));
  connections.close();
  server.close();
});
