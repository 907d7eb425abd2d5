import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { open, type Pawl, task } from "pawl";
import { afterEach, describe, expect, test } from "vitest";
import { HttpConnections } from "../../packages/pawl/src/runtime/io/http.js";
import { service } from "./local-and-remote.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Something before a service that keeps the first answer with jobs in it to itself. `kept` resolves when it has. */
async function keeping(): Promise<{ readonly url: string; readonly store: Pawl; readonly kept: Promise<void> }> {
  const { url, store } = await service();
  const behind = new HttpConnections(new URL(url));
  let keep: (() => void) | undefined;
  const kept = new Promise<void>((resolve) => {
    keep = resolve;
  });
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const gone = new AbortController();
      response.on("close", () => gone.abort());
      const [path = "/", body] = [request.url, Buffer.concat(chunks).toString("utf8")];
      const call = { method: request.method ?? "GET", path, headers: { "content-type": "application/json" }, timeout: 60_000, signal: gone.signal };
      const answer = await behind.send(body === "" ? call : { ...call, body }).catch(() => undefined);
      if (answer === undefined) return;
      if (path === "/v1/leases/claim" && keep !== undefined && answer.text.includes('"lease"')) {
        keep();
        keep = undefined;
      } else response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    behind.close();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, store, kept };
}

describe("a remote worker", () => {
  test("gives back at its stop what it was being handed", async () => {
    const { url, store, kept } = await keeping();
    const pawl = await open(url, { tasks: [task("never", () => "run")] });
    closing.push(() => pawl.close());
    const worker = await pawl.work();
    const job = await store.enqueue("never");
    await kept;
    expect(await job.get()).toMatchObject({ state: "running" });
    await worker.stop();
    expect(await job.get()).toMatchObject({ state: "ready", attempts: 0, crashes: 0 });
  });

  test("retries by a function for as long as that says so, not as long as the service would", async () => {
    const { url, store } = await service();
    const flaky = task("flaky", { retry: (_, attempt) => (attempt > 40 ? "stop" : 0) }, () => {
      throw new RangeError("not yet");
    });
    const pawl = await open(url, { tasks: [flaky] });
    closing.push(() => pawl.close());
    const job = await store.enqueue("flaky");
    await pawl.work();
    expect(await store.jobs.wait(job, "60s")).toMatchObject({ state: "dead", attempts: 41 });
  });

  test("settles the others when the service refuses one of its outcomes, and that one dies of it", async () => {
    const { url, store } = await service();
    // Deeper than the service takes, and no more than JSON.
    const deep = Array.from({ length: 100 }).reduce<unknown>((inner) => [inner], "deep");
    const answer = task("answer", (n: number) => (n === 3 ? deep : n));
    const pawl = await open(url, { tasks: [answer] });
    closing.push(() => pawl.close());
    const jobs = await store.enqueueMany("answer", [1, 2, 3, 4, 5]);
    await pawl.work();
    const ended = await Promise.all(jobs.map((job) => store.jobs.wait(job, "60s")));
    expect(ended.map(({ state }) => state)).toEqual(["succeeded", "succeeded", "dead", "succeeded", "succeeded"]);
    expect(ended[2]?.failure).toMatchObject({ kind: "output_unencodable", message: expect.stringContaining("deeper than 64") });
  });
});
