import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPEN_ACCESS } from "../../packages/server/src/http/access/principal.ts";
import { openLocalApi } from "../../packages/server/src/run/local-api.ts";
import { openApp, type TestApp } from "./support.ts";

describe("without keys", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp({ access: OPEN_ACCESS });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const pause = async (headers: Record<string, string>) => {
    await api.pawl.queues.resume("q");
    const { statusCode } = await api.request("POST", "/v1/queues/q/pause", { key: "", headers });
    return [statusCode, (await api.pawl.queues.get("q")).paused];
  };

  test.each(["localhost", "LOCALHOST:7295", "127.0.0.1:7295", "127.1.2.3", "[::1]:7295", "[::1]"])("a program asks %s", async (host) => {
    expect((await api.request("GET", "/v1/jobs", { key: "", headers: { host } })).statusCode).toBe(200);
    expect(await pause({ host })).toEqual([204, true]);
  });

  test.each(["evil.example", "evil.example:7295", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.2:7295", "[::2]", "localhost:x"])(
    "a page cannot ask loopback by the name %s",
    async (host) => {
      const read = await api.request("GET", "/v1/jobs", { key: "", headers: { host } });
      expect([read.statusCode, read.json().code]).toEqual([403, "cross_origin_forbidden"]);
      expect(await pause({ host })).toEqual([403, false]);
    },
  );

  const crossOrigin: readonly Record<string, string>[] = [
    { origin: "https://evil.example" },
    { origin: "http://localhost:3000" },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { origin: "http://localhost:7295", "sec-fetch-site": "cross-site" },
  ];
  test.each(crossOrigin)("S63: a page of another origin changes nothing: %o", async (headers) => {
    expect(await pause({ host: "localhost:7295", ...headers })).toEqual([403, false]);
  });

  test("a page of its own origin may", async () => {
    expect(await pause({ host: "localhost:7295", origin: "http://localhost:7295", "sec-fetch-site": "same-origin" })).toEqual([204, true]);
  });

  test("the API beside a store is as careful, its metrics too", async () => {
    const { address, close } = await openLocalApi(api.pawl);
    const status = (path: string, host: string) =>
      new Promise((resolve, reject) => {
        request(`${address}${path}`, { headers: { host }, agent: false }, (response) => resolve(response.resume().statusCode))
          .on("error", reject)
          .end();
      });
    for (const path of ["/v1/jobs", "/metrics"]) {
      expect([path, await status(path, "localhost"), await status(path, "evil.example")]).toEqual([path, 200, 403]);
    }
    await close();
  });
});

test("with keys, a name of any kind may lead to the service", async () => {
  await using api = await openApp();
  const headers = { host: "pawl.example", origin: "https://console.example", "sec-fetch-site": "cross-site" };
  expect((await api.request("POST", "/v1/queues/q/pause", { headers })).statusCode).toBe(204);
});
