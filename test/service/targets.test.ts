import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { open } from "pawl";
import { expect, test } from "vitest";
import { Standstill } from "../support/processes/standstill.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";
import { ServiceProcess, serve } from "./service.js";

interface ReceivedDelivery {
  readonly body: { readonly job: string; readonly attempt: number; readonly data: unknown };
  readonly response: ServerResponse;
}

/** A target on loopback that answers when it is told to. */
async function receiving() {
  const got: ReceivedDelivery[] = [];
  let onDelivery = () => {};
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      got.push({ body: JSON.parse(text), response });
      onDelivery();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    got,
    async nth(count: number): Promise<ReceivedDelivery> {
      while (got.length < count)
        await new Promise<void>((resolve) => {
          onDelivery = resolve;
        });
      return got[count - 1] as ReceivedDelivery;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const settings = () => ({
  PAWL_ENCRYPTION_MASTER_KEYS: "env:MASTER",
  MASTER: randomBytes(32).toString("base64"),
  PAWL_PUSH_ALLOW: "127.0.0.0/8",
  PAWL_PUSH_PLAIN: "true",
});

async function send<T>(address: string, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(address + path, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

const json = (response: ServerResponse, text: string) => response.setHeader("content-type", "application/json").end(text);

describeOn("embedded18", () => {
  test("a target that one process takes is delivered to by another within 5 s, and a removed one no more", { timeout: 180_000 }, async () => {
    await using database = await migratedDatabase();
    await using target = await receiving();
    const env = settings();
    await using api = serve(database.url, ["--components", "api,maintenance"], env);
    await using worker = new ServiceProcess("serve", ["--components", "worker"], { PAWL_STORE: database.url, ...env });
    const address = await api.up();
    await worker.line(/^components +/);
    const job = await ServiceProcess.enqueue(address, "bill", { order: 7 });
    using still = new Standstill();
    const began = performance.now();
    const { secret } = await send<{ secret: string }>(address, "PUT", "/v1/targets/bill", { url: target.url });
    const { body, response } = await target.nth(1);
    expect(performance.now() - began - still.ms).toBeLessThan(5_000);
    expect(body).toMatchObject({ job, attempt: 1, data: { order: 7 } });
    json(response, '"paid"');

    await using pawl = await open(database.url, { maintenance: false, encryption: { masterKeys: [env.MASTER] } });
    expect(await pawl.jobs.wait(job, "60s")).toMatchObject({ state: "succeeded", output: "paid" });
    for (const line of [...api.lines, ...worker.lines]) expect(line).not.toContain(secret);

    await send(address, "DELETE", "/v1/targets/bill");
    await expect.poll(async () => (await pawl.workers.list()).items.some(({ tasks }) => tasks.includes("bill")), { timeout: 60_000 }).toBe(false);
    const waits = await ServiceProcess.enqueue(address, "bill", {});
    expect(await pawl.jobs.get(waits)).toMatchObject({ state: "ready" });
    expect((await pawl.jobs.explain(waits)).reasons[0]).toMatchObject({ kind: "unserved", lacks: [{ kind: "task", task: "bill" }] });
    expect(target.got).toHaveLength(1);
  });

  test("kill -9 of who delivers, in the middle of a delivery: another delivers it again, and the job ends once", { timeout: 180_000 }, async () => {
    await using database = await migratedDatabase();
    await using target = await receiving();
    const env = settings();
    await using victim = serve(database.url, [], env);
    const address = await victim.up();
    await send(address, "PUT", "/v1/targets/bill", { url: target.url });
    const job = await ServiceProcess.enqueue(address, "bill", { order: 7 });
    const first = await target.nth(1);
    victim.signal("SIGKILL");
    await victim.exit();
    await using other = serve(database.url, [], env);
    await other.up();
    const second = await target.nth(2);
    // Too late: whoever asked is gone, and with it the right to settle.
    json(first.response, '"first"');
    json(second.response, '"second"');
    expect([first.body, second.body]).toMatchObject([{ job }, { job }]);
    await using pawl = await open(database.url, { maintenance: false, encryption: { masterKeys: [env.MASTER] } });
    expect(await pawl.jobs.wait(job, "60s")).toMatchObject({ state: "succeeded", output: "second", attempts: 1 });
    expect((await pawl.jobs.history(job)).items.map(({ outcome }) => outcome)).toEqual(["crashed", "succeeded"]);
  });
});

const missing = spawnSync("python3", ["--version"]).status !== 0;

test.skipIf(missing)("a receiver in Python's standard library takes what is signed, and nothing else", { timeout: 120_000 }, async () => {
  await using service = serve("memory:", [], settings());
  const address = await service.up();
  const script = fileURLToPath(new URL("../../examples/python/receiver.py", import.meta.url));
  const receiver = spawn("python3", ["-I", script], { stdio: ["pipe", "pipe", "inherit"] });
  try {
    const lines = createInterface({ input: receiver.stdout });
    const [port] = (await once(lines, "line")) as [string];
    const url = `http://127.0.0.1:${port}/`;
    const { secret } = await send<{ secret: string }>(address, "PUT", "/v1/targets/bill", { url });
    const ready = once(lines, "line");
    receiver.stdin.write(`${secret}\n`);
    await ready;
    const headers = { "webhook-id": "x", "webhook-timestamp": String(Math.floor(Date.now() / 1_000)), "webhook-signature": "v1,no" };
    expect((await fetch(url, { method: "POST", headers, body: "{}" })).status).toBe(401);
    const job = await ServiceProcess.enqueue(address, "bill", { order: 7 });
    const output = async () => (await send<{ output?: unknown }>(address, "GET", `/v1/jobs/${job}`)).output;
    await expect.poll(output, { timeout: 60_000 }).toEqual({ did: { order: 7 } });
  } finally {
    receiver.kill();
  }
});
