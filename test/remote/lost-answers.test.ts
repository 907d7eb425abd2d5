import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { open, type Pawl, task } from "pawl";
import type { OpenWait } from "pawl/service";
import { afterEach, describe, expect, test } from "vitest";
import { HttpConnections } from "../../packages/pawl/src/runtime/io/http.js";
import { createApp } from "../../packages/server/src/http/app.js";
import { HttpListener } from "../../packages/server/src/run/listener.js";
import { apiRouter } from "../../packages/server/src/run/router.js";
import { service } from "./local-and-remote.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A service behind something that carries requests to it, and loses the answers it is told to. */
async function losing(
  loses: (path: string, earlier: number) => boolean,
): Promise<{ readonly url: string; readonly store: Pawl; readonly lost: () => number }> {
  const { url, store } = await service();
  const behind = new HttpConnections(new URL(url));
  const seen = new Map<string, number>();
  let lost = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const path = request.url ?? "/";
      const { "content-type": type, "idempotency-key": key } = request.headers as Record<string, string | undefined>;
      const headers = { ...(type === undefined ? {} : { "content-type": type }), ...(key === undefined ? {} : { "idempotency-key": key }) };
      try {
        const body = Buffer.concat(chunks).toString("utf8");
        const answer = await behind.send({ method: request.method ?? "GET", path, headers, timeout: 60_000, ...(body === "" ? {} : { body }) });
        const earlier = seen.get(path) ?? 0;
        seen.set(path, earlier + 1);
        if (loses(path, earlier)) {
          lost++;
          response.destroy();
        } else response.writeHead(answer.status, { "content-type": String(answer.headers["content-type"] ?? "text/plain") }).end(answer.text);
      } catch {
        response.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    behind.close();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, store, lost: () => lost };
}

describe("a remote producer whose answers are lost", () => {
  test("stores every batch once: they are repeated with their key, and answered the same", async () => {
    const { url, store, lost } = await losing((path, earlier) => path === "/v1/jobs/many" && earlier % 2 === 0);
    const pawl = await open(url, {});
    closing.push(() => pawl.close());
    const jobs = await pawl.enqueueMany(
      "count",
      Array.from({ length: 2_500 }, (_, n) => n),
    );
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(2_500);
    expect(await store.counts({ task: "count" })).toMatchObject({ ready: 2_500 });
    const { results } = await pawl.enqueueAll([
      { task: "other", input: 1 },
      { task: "other", input: 2 },
    ]);
    expect(results).toHaveLength(2);
    expect(await store.counts({ task: "other" })).toMatchObject({ ready: 2 });
    expect(lost()).toBeGreaterThanOrEqual(3);
  });
});

describe("a remote worker whose answers are lost", () => {
  test("runs every job once: claims and settlements are repeated, and answered the same", async () => {
    const ran: number[] = [];
    const count = task("count", (n: number) => void ran.push(n));
    const { url, store, lost } = await losing((path, earlier) => (path === "/v1/leases/claim" || path === "/v1/leases/settle") && earlier % 2 === 0);
    const pawl = await open(url, { tasks: [count] });
    closing.push(() => pawl.close());
    const jobs = await store.enqueueMany("count", [1, 2, 3, 4, 5]);
    const worker = await pawl.work();
    for (const job of jobs) {
      expect(await job.result("60s")).toBeUndefined();
      expect((await job.history()).items).toHaveLength(1);
    }
    // It stops when it has heard the answers itself.
    await worker.stop();
    expect(ran.sort()).toEqual([1, 2, 3, 4, 5]);
    expect(lost()).toBeGreaterThanOrEqual(2);
    for (const job of jobs) expect((await job.history()).items).toHaveLength(1);
  });

  test("goes on when the process that it spoke to is replaced while its jobs run", async () => {
    let go = () => {};
    const barrier = new Promise<void>((resolve) => {
      go = resolve;
    });
    let begun = () => {};
    const started = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const long = task("long", async () => {
      begun();
      await barrier;
      return "done";
    });
    const store = await open("memory:", {});
    const first = createApp({ pawl: store });
    const url = await first.listen({ host: "127.0.0.1", port: 0 });
    const pawl = await open(url, { tasks: [long] });
    closing.push(
      () => store.close(),
      () => pawl.close(),
    );
    await pawl.work();
    const job = await store.enqueue("long");
    await started;
    await first.close();
    const second = createApp({ pawl: store });
    await second.listen({ host: "127.0.0.1", port: Number(new URL(url).port) });
    closing.splice(1, 0, () => second.close());
    go();
    expect(await job.result("60s")).toBe("done");
    expect(await job.get()).toMatchObject({ attempts: 1, crashes: 0 });
    const next = await store.enqueue("long");
    expect(await next.result("60s")).toBe("done");
  });
});

/** A port at which nobody listens. */
async function freePort(): Promise<number> {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  return port;
}

/** Opens it with a task to make known, and resolves `waits` with what it waits for. */
function opening(url: string) {
  let hears: (what: OpenWait) => void = () => {};
  const waits = new Promise<OpenWait>((resolve) => {
    hears = resolve;
  });
  const opened = open(url, { tasks: [task("greet", { queue: "hello" }, () => {})], onWaiting: hears });
  closing.push(async () => (await opened).close());
  return { opened, waits };
}

describe("a service that comes up later", () => {
  test("is waited for while it has no store yet", async () => {
    const listener = new HttpListener();
    const { opened, waits } = opening(await listener.listen({ host: "127.0.0.1", port: 0 }));
    expect(await waits).toMatchObject({ for: "server", error: { code: "service_starting" } });
    const store = await open("memory:", {});
    const routing = await apiRouter({ pawl: store });
    closing.unshift(async () => {
      await Promise.all([listener.close(AbortSignal.abort()), routing.close()]);
      await store.close();
    });
    listener.setHandler(routing.handler);
    expect(await (await opened).tasks.get("greet")).toMatchObject({ defaults: { queue: "hello" } });
  });

  test("is waited for while nobody listens there", async () => {
    const port = await freePort();
    const { opened, waits } = opening(`http://127.0.0.1:${port}`);
    expect(await waits).toMatchObject({ for: "server", error: { code: "store_unreachable" } });
    const store = await open("memory:", {});
    const app = createApp({ pawl: store });
    closing.unshift(async () => {
      await app.close();
      await store.close();
    });
    await app.listen({ host: "127.0.0.1", port });
    expect(await (await opened).tasks.get("greet")).toMatchObject({ defaults: { queue: "hello" } });
  });
});

describe("a service that is not there", () => {
  test("is an error that says so, with its address and without the key", async () => {
    const port = await freePort();
    const pawl = await open(`http://127.0.0.1:${port}`, { apiKey: "pawl_secret" });
    closing.push(() => pawl.close());
    const error = await pawl.info().catch((failed: unknown) => failed);
    expect(error).toMatchObject({ code: "store_unreachable", message: expect.stringContaining(`127.0.0.1:${port}`) });
    expect(String(error)).not.toContain("pawl_secret");
  });

  test("refuses what only a process beside the store can do, and options that are for it", async () => {
    const { url } = await service();
    const pawl = await open(url);
    closing.push(() => pawl.close());
    await expect(pawl.jobs.restore([])).rejects.toMatchObject({ code: "remote_unsupported" });
    await expect(pawl.enqueue("t", 1, { tx: { query: async () => ({ rows: [] }) } })).rejects.toMatchObject({ code: "remote_unsupported" });
    await expect(open(url, { maintenance: false })).rejects.toMatchObject({ code: "option_invalid" });
    await expect(open("memory:", { apiKey: "k" })).rejects.toMatchObject({ code: "option_invalid" });
    await expect(open(url, { apiKey: "two words" })).rejects.toMatchObject({ code: "option_invalid" });
  });
});
