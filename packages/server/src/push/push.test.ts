import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcp } from "node:net";
import { open, type Pawl } from "pawl";
import { afterEach, describe, expect, test } from "vitest";
import { checkTarget } from "./check-target.js";
import { deliver, retryAfterOf } from "./deliver.js";
import { pushTask } from "./push-task.js";
import { isSafe, parseNetworks } from "./safe-address.js";
import { secretBytes, signature, verify } from "./signature.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const LOOPBACK = ["127.0.0.0/8"];
const closing: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function target(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

/** Listens on loopback, and counts who comes. */
async function canary(): Promise<{ readonly port: number; readonly connects: () => number }> {
  let count = 0;
  const server = createTcp((socket) => {
    count++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return { port: (server.address() as AddressInfo).port, connects: () => count };
}

async function pushing(url: string, more: object = {}): Promise<Pawl> {
  const hook = pushTask("hook", { target: url, secret: SECRET, allow: LOOPBACK, retry: [0, 0], ...more }, { plain: true });
  const pawl = await open("memory:", { tasks: [hook] });
  closing.push(() => pawl.close());
  await pawl.work();
  return pawl;
}

describe("signatures of Standard Webhooks (S40)", () => {
  test("are those of the specification's vector", () => {
    const signed = signature([secretBytes(SECRET)], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, '{"test": 2432232314}');
    expect(signed).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  test("are two while a secret is rotated, and either is taken", () => {
    const other = secretBytes(`whsec_${Buffer.alloc(32, 7).toString("base64")}`);
    const signed = signature([secretBytes(SECRET), other], "id", 100, "{}");
    expect(signed.split(" ")).toHaveLength(2);
    for (const secret of [secretBytes(SECRET), other])
      expect(verify(secret, { id: "id", timestamp: "100", signature: signed }, "{}", 150)).toBe(true);
  });

  test("are refused if they are wrong, or older or newer than five minutes", () => {
    const secret = secretBytes(SECRET);
    const headers = { id: "id", timestamp: "1000", signature: signature([secret], "id", 1_000, "{}") };
    expect(verify(secret, headers, "{}", 1_299)).toBe(true);
    expect(verify(secret, headers, "{}", 1_301)).toBe(false);
    expect(verify(secret, headers, "{}", 699)).toBe(false);
    expect(verify(secret, headers, "{ }", 1_000)).toBe(false);
    expect(verify(secret, { ...headers, id: "other" }, "{}", 1_000)).toBe(false);
  });

  test.each(["short", "whsec_AAAA", "whsec_not base64 at all, but long enough to be one", ""])("are not made with %j", (secret) => {
    expect(() => secretBytes(secret)).toThrow(/24 to 64 bytes/);
  });
});

describe("a target that is no public address", () => {
  test.each([
    "http://example.com/",
    "https://user:pass@example.com/",
    "https://example.com:22/",
    "https://localhost/",
    "https://x.localhost/",
    "https://metadata.internal/",
    "https://intranet/",
    "https://127.1/",
    "https://0x7f.1/",
    "https://2130706433/",
    "https://017700000001/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://0.0.0.0/",
    "https://169.254.169.254/latest/meta-data",
    "https://[fd00::1]/",
    "https://[fe80::1]/",
    "https://100.64.0.1/",
    "https://１２７.０.０.１/",
    "https://10.0.0.1/",
    "file:///etc/passwd",
    "not a url",
  ])("is refused when it is registered (S42): %s", (url) => {
    expect(() => checkTarget(url)).toThrow(/target|URL|address/);
    expect(() => pushTask("hook", { target: url, secret: SECRET })).toThrow(/target|URL|address/);
  });

  test("is refused with what cannot be seen in it, where its task is made", () => {
    for (const target of ["https://hooks.example.com/\n", "https://hooks\t.example.com/", "https://hooks.example.com/\u202e"])
      expect(() => pushTask("hook", { target, secret: SECRET })).toThrow(/its character \d+ is U\+/);
  });

  test.each([
    ["a name that was public when it was registered", [{ address: "127.0.0.1", family: 4 }]],
    [
      "a name with a public and a private address",
      [
        { address: "93.184.215.14", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ],
    ],
    ["a name at the loopback of IPv6", [{ address: "::ffff:127.0.0.1", family: 6 }]],
    ["a name with no address", []],
  ])("is never connected to (S43): %s", async (_, addresses) => {
    const { port, connects } = await canary();
    const url = `http://rebound.example:${port}/`;
    checkTarget(url, { plain: true });
    const delivery = { target: url, secrets: [secretBytes(SECRET)], id: "j", body: "{}", signal: AbortSignal.timeout(5_000) };
    await expect(deliver(delivery, { plain: true, resolve: async () => addresses })).rejects.toThrow(/no address/);
    expect(connects()).toBe(0);
  });

  test("may be in a network that was allowed", () => {
    expect(isSafe("10.1.2.3", parseNetworks(["10.1.0.0/16"]))).toBe(true);
    expect(isSafe("10.2.0.1", parseNetworks(["10.1.0.0/16"]))).toBe(false);
    expect(() => parseNetworks(["10.1.0.0/33"])).toThrow(/not a network/);
  });
});

describe("a job that is pushed", () => {
  test("is delivered signed, and what the target answers is its output", async () => {
    const seen: { headers: Record<string, unknown>; body: string }[] = [];
    const url = await target((request, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        seen.push({ headers: request.headers, body });
        response.setHeader("content-type", "application/json").end('{"ok":true}');
      });
    });
    const pawl = await pushing(url);
    const job = await pawl.enqueue("hook", { order: 7 });
    expect(await job.result("30s")).toEqual({ ok: true });
    const [{ headers, body }] = seen as [(typeof seen)[number]];
    expect(JSON.parse(body)).toMatchObject({ type: "hook", data: { order: 7 }, job: job.id, attempt: 1 });
    const signedHeaders = {
      id: String(headers["webhook-id"]),
      timestamp: String(headers["webhook-timestamp"]),
      signature: String(headers["webhook-signature"]),
    };
    expect(signedHeaders.id).toBe(job.id);
    expect(verify(secretBytes(SECRET), signedHeaders, body, Number(signedHeaders.timestamp))).toBe(true);
  });

  test.each([
    [500, "dead", 3],
    [503, "dead", 3],
    [429, "dead", 3],
    [302, "dead", 1],
    [400, "dead", 1],
    [404, "dead", 1],
    [204, "succeeded", 1],
  ])("that is answered %i is %s after %i attempts (S41), and no redirect is followed", async (status, state, attempts) => {
    const elsewhere = await canary();
    const ids = new Set<unknown>();
    const url = await target((request, response) => {
      ids.add(request.headers["webhook-id"]);
      response.writeHead(status, { location: `http://127.0.0.1:${elsewhere.port}/` }).end();
    });
    const pawl = await pushing(url);
    const job = await pawl.enqueue("hook");
    expect(await pawl.jobs.wait(job, "30s")).toMatchObject({ state, attempts });
    expect([...ids]).toEqual([job.id]);
    expect(elsewhere.connects()).toBe(0);
  });

  test("waits as long as the target asks for", async () => {
    const url = await target((_, response) => response.writeHead(503, { "retry-after": "3600" }).end());
    const pawl = await pushing(url);
    const job = await pawl.enqueue("hook");
    const settled = new Promise<number | undefined>((resolve) => pawl.on("attempt.settled", ({ delay }) => resolve(delay)));
    expect(await settled).toBe(3_600_000);
    expect(await job.get()).toMatchObject({ state: "scheduled", attempts: 1 });
    expect(retryAfterOf("Wed, 21 Oct 2015 07:28:10 GMT", Date.parse("2015-10-21T07:28:00Z"))).toBe(10_000);
    expect(retryAfterOf("soon")).toBeUndefined();
  });

  test("whose target is gone dies, and the target's owner is told", async () => {
    let goneCalls = 0;
    const url = await target((_, response) => response.writeHead(410).end());
    const pawl = await pushing(url, { onGone: () => void goneCalls++ });
    const job = await pawl.enqueue("hook");
    expect(await pawl.jobs.wait(job, "30s")).toMatchObject({
      state: "dead",
      attempts: 1,
      failure: { message: expect.stringContaining("410") },
    });
    expect(goneCalls).toBe(1);
  });

  test("is cut off at its deadline, and where the answer has no end (S44)", async () => {
    const silent = await target(() => {});
    const pawl = await pushing(silent, { timeout: 100, retry: 0 });
    expect(await pawl.jobs.wait(await pawl.enqueue("hook"), "30s")).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
    const endless = await target((_, response) => response.writeHead(200).end(Buffer.alloc(200_000)));
    const other = await pushing(endless, { retry: 0 });
    expect(await other.jobs.wait(await other.enqueue("hook"), "30s")).toMatchObject({
      state: "dead",
      failure: { message: expect.stringContaining("65536") },
    });
  });
});
