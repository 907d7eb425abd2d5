import { type AddressInfo, connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp, type TestApp } from "./support.ts";

/** All that comes back on one connection until it is closed by the other side. */
function talk(port: number, write: (socket: Socket) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "127.0.0.1", () => write(socket));
    socket.setEncoding("utf8");
    socket.on("data", (data) => {
      received += data;
    });
    socket.on("close", () => resolve(received));
    // A connection that was cut off while it was being written to is an end like another.
    socket.on("error", (error: NodeJS.ErrnoException) => (error.code === "ECONNRESET" || error.code === "EPIPE" ? resolve(received) : reject(error)));
  });
}

const head = (...lines: readonly string[]) =>
  ["POST /v1/jobs HTTP/1.1", "Host: x", "Authorization: Bearer all-admin", "Content-Type: application/json", ...lines, "", ""].join("\r\n");

describe("slow and lying clients", () => {
  let api: TestApp;
  let port: number;
  beforeAll(async () => {
    api = await openApp();
    await api.app.listen({ host: "127.0.0.1", port: 0 });
    port = (api.app.server.address() as AddressInfo).port;
  });
  afterAll(() => api[Symbol.asyncDispose]());

  test("S20: a body that says it is too large is refused before it is sent", async () => {
    const received = await talk(port, (socket) => socket.write(head("Content-Length: 99999999")));
    expect(received).toMatch(/^HTTP\/1\.1 413 /);
    expect(received).toContain("body_too_large");
  });

  test("S20: an endless body is cut off at the limit", async () => {
    const chunk = `${(65_536).toString(16)}\r\n${"x".repeat(65_536)}\r\n`;
    let sent = 0;
    const received = await talk(port, (socket) => {
      socket.write(head("Transfer-Encoding: chunked"));
      const more = () => {
        while (socket.writable && sent < 64 * 1_048_576) {
          sent += 65_536;
          if (!socket.write(chunk)) return void socket.once("drain", more);
        }
      };
      more();
    });
    expect(received).toMatch(/^HTTP\/1\.1 413 /);
    // What the kernel holds for both ends is read by nobody.
    expect(sent).toBeLessThan(32 * 1_048_576);
  });

  test.each([
    ["S29: two framings at once", head("Content-Length: 4", "Transfer-Encoding: chunked")],
    ["two lengths", head("Content-Length: 4", "Content-Length: 5")],
    ["no HTTP at all", "\u0016\u0003\u0001 hello\r\n\r\n"],
    ["a line break in a header", "GET /livez HTTP/1.1\r\nHost: x\r\nA: b\nc: d\r\n\r\n"],
    ["headers without end", `GET /livez HTTP/1.1\r\nHost: x\r\nA: ${"x".repeat(20_000)}\r\n\r\n`],
  ])("%s is refused, and the connection closed", async (_, request) => {
    const received = await talk(port, (socket) => socket.write(request));
    expect(received).toMatch(/^HTTP\/1\.1 (400|431) /);
    expect(received).toContain("request_malformed");
  });

  const get = (target: string, ...lines: readonly string[]) =>
    [`GET ${target} HTTP/1.1`, "Authorization: Bearer all-admin", ...lines, "Connection: close", "", ""].join("\r\n");

  test.each([
    ["two headers Host", get("/v1/info", "Host: a.example", "Host: b.example"), "two headers host"],
    ["the same Host twice", get("/v1/info", "Host: x", "Host: x"), "two headers host"],
    ["two headers Host in other letters", get("/v1/info", "Host: a.example", "hOST: b.example"), "two headers host"],
    ["two in one", get("/v1/info", "Host: a.example, b.example"), "no name of a host"],
    ["no Host", get("/v1/info"), "no header host"],
    ["a Host with a blank in it", get("/v1/info", "Host: a example"), "no name of a host"],
    ["a Host with a path", get("/v1/info", "Host: a.example/v1"), "no name of a host"],
    ["a target at another host", get("http://b.example/v1/info", "Host: a.example"), "another host"],
    ["a target at another port", get("http://a.example:81/v1/info", "Host: a.example"), "another host"],
    ["a target with a user", get("http://a.example@b.example/v1/info", "Host: a.example"), "another host"],
    ["two credentials", get("/v1/info", "Host: x", "authorization: Bearer acme-viewer"), "two headers authorization"],
    ["two origins", get("/v1/info", "Host: x", "Origin: http://x", "Origin: http://y"), "two headers origin"],
    ["a line break in its path", get("/v1/queues/a%0ab", "Host: x"), "a control character"],
    ["a NUL in its path", get("/v1/queues/a%00", "Host: x"), "a control character"],
    ["a DEL in its path", get("/v1/queues/a%7F", "Host: x"), "a control character"],
    ["a control of C1 in its path", get("/v1/queues/a%C2%85", "Host: x"), "a control character"],
    ["a control character as it is", get("/v1/queues/a\u0001", "Host: x"), "headers or framing"],
    ["two headers Host for a path that there is not", get("/nothing", "Host: a.example", "Host: b.example"), "two headers host"],
    ["two headers Host for a probe", get("/livez", "Host: a.example", "Host: b.example"), "two headers host"],
  ])("a request with %s is refused", async (_, request, reason) => {
    const received = await talk(port, (socket) => socket.write(request));
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(received).toContain('"code":"request_malformed"');
    expect(received).toContain(reason);
  });

  test.each([
    ["a target with its host in it", get("http://a.example:7295/v1/info", "Host: A.example:7295")],
    ["an address of IPv6", get("/v1/info", "Host: [::1]:7295")],
    ["headers that may be repeated", get("/v1/info", "Host: x", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2")],
    ["HTTP/1.0 without a Host", get("/v1/info").replace("HTTP/1.1", "HTTP/1.0")],
  ])("a request with %s is served", async (_, request) => {
    expect(await talk(port, (socket) => socket.write(request))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("the connection of a request that can be read in two ways is closed, whatever it asked for", async () => {
    const rawRequest = get("/v1/info", "Host: a.example", "Host: b.example").replace("Connection: close", "Connection: keep-alive");
    expect(await talk(port, (socket) => socket.write(rawRequest))).toMatch(/^connection: close\r$/im);
  });

  test("a control character in a query is for the route to check", async () => {
    const received = await talk(port, (socket) => socket.write(get("/v1/audit?actor=a%0ab", "Host: x")));
    expect(received).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("S29: limits of time are set on the server that listens", () => {
    const { headersTimeout, requestTimeout, maxHeadersCount } = api.app.server as unknown as Record<string, number>;
    expect(headersTimeout).toBeLessThanOrEqual(10_000);
    expect(requestTimeout).toBeLessThanOrEqual(30_000);
    expect(maxHeadersCount).toBeLessThanOrEqual(100);
  });

  test("a caller that hangs up ends its wait, and a stopping service ends all of them", async () => {
    const { id } = await api.pawl.enqueue("never", undefined, { delay: "1h" });
    const wait = new AbortController();
    const url = `http://127.0.0.1:${port}/v1/jobs/${id}?wait=60000`;
    const headers = { authorization: "Bearer all-admin" };
    const hanging = fetch(url, { headers, signal: wait.signal });
    wait.abort();
    await expect(hanging).rejects.toThrow();
    const stopping = await openApp({ pawl: api.pawl });
    await stopping.app.listen({ host: "127.0.0.1", port: 0 });
    const other = (stopping.app.server.address() as AddressInfo).port;
    const answer = fetch(url.replace(`:${port}`, `:${other}`), { headers });
    // Once a second request was answered, the first has been read.
    await fetch(`http://127.0.0.1:${other}/livez`);
    await stopping.app.close();
    expect((await answer).status).toBe(503);
  });
});
