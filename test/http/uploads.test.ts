import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { openApp, type TestApp } from "./support.ts";

const MEGABYTE = 1_048_576;
const GO_ON = "HTTP/1.1 100 Continue\r\n\r\n";

describe("slow uploads", () => {
  let api: TestApp;
  const sockets: Upload[] = [];

  async function listen(options: Parameters<typeof openApp>[0] = {}): Promise<number> {
    api = await openApp(options);
    await api.app.listen({ host: "127.0.0.1", port: 0 });
    return (api.app.server.address() as AddressInfo).port;
  }

  afterEach(async () => {
    for (const { socket } of sockets.splice(0)) socket.destroy();
    await api[Symbol.asyncDispose]();
  });

  interface Upload {
    readonly socket: Socket;
    /** what was answered, once the other side has closed the connection */
    readonly answer: Promise<string>;
    send(text: string): void;
  }

  interface UploadOptions {
    readonly key: string;
    readonly path?: string;
    /** undefined: the length is not said before */
    readonly length?: number;
  }

  /** Begins a request on a connection of its own, and returns once the server has its headers. Its body is sent by the test. */
  async function upload(port: number, { key, path = "/v1/jobs", length }: UploadOptions): Promise<Upload> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    let received = "";
    socket.setEncoding("utf8").on("data", (text) => {
      received += text;
    });
    socket.on("error", () => {});
    const answer = once(socket, "close").then(() => received.replace(GO_ON, ""));
    const framing = length === undefined ? "Transfer-Encoding: chunked" : `Content-Length: ${length}`;
    const head = [`POST ${path} HTTP/1.1`, "Host: x", `Authorization: Bearer ${key}`, "Content-Type: application/json", "Expect: 100-continue"];
    socket.write([...head, framing, "", ""].join("\r\n"));
    while (!received.startsWith(GO_ON)) await once(socket, "data");
    await fetch(`http://127.0.0.1:${port}/livez`);
    const send = (text: string) => socket.write(length === undefined ? `${text.length.toString(16)}\r\n${text}\r\n` : text);
    const one = { socket, answer, send };
    sockets.push(one);
    return one;
  }

  /** Sends a byte every 20 ms until it is cut off. */
  function drip({ socket, send }: Upload): void {
    const timer = setInterval(() => socket.writable && send(" "), 20);
    socket.once("close", () => clearInterval(timer));
  }

  /** A large batch of another tenant: it has to be read while the others are under way. */
  async function batchOfOther(port: number, bytes: number): Promise<number> {
    const body = JSON.stringify({ task: "later", inputs: ["x".repeat(bytes)], options: { delay: "1h" } });
    const headers = { authorization: "Bearer other-admin", "content-type": "application/json" };
    const response = await fetch(`http://127.0.0.1:${port}/v1/jobs/many`, { method: "POST", headers, body });
    await response.text();
    return response.status;
  }

  test("eight dripping bodies of one producer keep no body of another tenant waiting", async () => {
    const port = await listen();
    for (let n = 0; n < 8; n++) {
      const slow = await upload(port, { key: "acme-producer", length: MEGABYTE });
      slow.send("x".repeat(17_000));
      drip(slow);
    }
    expect(await batchOfOther(port, 100_000)).toBe(200);
  });

  test("a body that a worker key says is 8 MB takes nothing before it arrives", async () => {
    const port = await listen();
    drip(await upload(port, { key: "acme-worker", path: "/v1/leases/settle", length: 8 * MEGABYTE }));
    expect(await batchOfOther(port, 100_000)).toBe(200);
  });

  test("bodies without a length are charged as they arrive", async () => {
    const port = await listen();
    for (let n = 0; n < 20; n++) {
      const slow = await upload(port, { key: "acme-worker", path: "/v1/leases/settle" });
      slow.send("x".repeat(20_000));
      drip(slow);
    }
    expect(await batchOfOther(port, 100_000)).toBe(200);
  });

  test.each([
    ["a length", { length: MEGABYTE }],
    ["no length", {}],
    ["a small body", { length: 100 }],
  ])("a body that drips is refused and its connection closed (%s)", async (_, framing) => {
    const port = await listen({ bodies: { second: 50, grace: 1 } });
    const slow = await upload(port, { key: "acme-producer", ...framing });
    drip(slow);
    const answer = await slow.answer;
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toMatch(/^connection: close/im);
    expect(answer).toContain('"code":"request_timeout"');
    // Node's own limit of 30 s for a whole request answers without one.
    expect(answer).toContain('"requestId"');
  });

  test("a caller with many connections gets a few MB, and the rest of its bodies is refused when its wait is over", async () => {
    const port = await listen({ bodies: { perCaller: 200_000, second: 50, wait: 2, grace: 1_000 } });
    const slow = await Promise.all(Array.from({ length: 10 }, () => upload(port, { key: "acme-producer", length: MEGABYTE })));
    for (const one of slow) one.send("x".repeat(100_000));
    expect(await batchOfOther(port, 400_000)).toBe(200);
    const refused = await Promise.any(slow.map(({ answer }) => answer));
    expect(refused).toMatch(/^HTTP\/1\.1 429 /);
    expect(refused).toContain('"code":"too_many_requests"');
  });

  test("callers that hold all the memory give way to one that has less than its share", async () => {
    const port = await listen({ bodies: { overall: 600_000, perCaller: 200_000, second: 1_000, grace: 1_000, wait: 1_000 } });
    const slow = await Promise.all(
      ["acme-producer", "acme-admin", "acme-worker", "acme-operator"].map((key) =>
        upload(port, { key, path: key === "acme-worker" ? "/v1/leases/settle" : "/v1/jobs", length: MEGABYTE }),
      ),
    );
    for (const one of slow) one.send("x".repeat(140_000));
    expect(await batchOfOther(port, 250_000)).toBe(200);
    expect(await Promise.any(slow.map(({ answer }) => answer))).toContain('"code":"too_many_requests"');
  });
});
