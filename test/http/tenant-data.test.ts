import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import type { Operation } from "../../packages/pawl/src/store/wrap/wrap-store.js";
import { faultyStore, openTest, type TestPawl } from "../../packages/pawl/src/testing.js";
import { readConfiguration } from "../../packages/server/src/config/read.js";
import { PurgeTask } from "../../packages/server/src/http/tasks/purge-task.js";
import { startService } from "../../packages/server/src/run/service.js";
import { eventually } from "../support/eventually.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { openApp } from "./support.js";

test("an export is a stream of lines that says where it ends, of the caller's own tenant only", async () => {
  await using api = await openApp();
  await api.pawl.forTenant("acme").enqueue("a", { n: 1 });
  await api.pawl.forTenant("other").enqueue("a", { n: 2 });
  const answer = await api.request("GET", "/v1/tenants/acme/export", { key: "acme-admin" });
  expect([answer.statusCode, answer.headers["content-type"]]).toEqual([200, "application/x-ndjson; charset=utf-8"]);
  const lines = answer.body
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ kind }) => kind)).toEqual(["tenant", "job", "end"]);
  expect(lines[1].job.input).toEqual({ n: 1 });
  expect(lines[2].entries).toBe(2);
  expect((await api.request("GET", "/v1/tenants/other/export", { key: "acme-admin" })).json().code).toBe("tenant_mismatch");
  expect((await api.request("GET", "/v1/tenants/acme/export", { key: "acme-operator" })).statusCode).toBe(403);
  expect(api.audit).toContainEqual(expect.objectContaining({ outcome: "allowed", action: "tenants.export" }));
});

test("a caller has one export at a time, others theirs, and one that hangs up leaves its place", async () => {
  await using api = await openApp();
  await api.pawl.enqueueMany(
    "a",
    Array.from({ length: 2_000 }, () => "x".repeat(2_000)),
    { tenant: "acme" },
  );
  await api.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = api.app.server.address() as AddressInfo;
  const send = async (tenant: string, key: string) => {
    const disconnect = new AbortController();
    const headers = { authorization: `Bearer ${key}` };
    const answer = await fetch(`http://127.0.0.1:${port}/v1/tenants/${tenant}/export`, { headers, signal: disconnect.signal });
    return { answer, hangUp: () => disconnect.abort() };
  };
  const first = await send("acme", "acme-admin");
  expect(first.answer.status).toBe(200);
  const second = await send("acme", "acme-admin");
  expect([second.answer.status, second.answer.headers.get("retry-after")]).toEqual([429, "10"]);
  expect(await second.answer.json()).toMatchObject({ code: "too_many_requests" });
  const other = await send("other", "other-admin");
  expect((await other.answer.text()).trimEnd().split("\n").at(-1)).toContain('"end"');
  first.hangUp();
  await eventually(
    () => "an export after the first one was given up",
    async () => {
      const { answer } = await send("acme", "acme-admin");
      const text = await answer.text();
      return answer.status === 200 && text.trimEnd().split("\n").length === 2_002;
    },
  );
});

test("a purge asked for again is the same job, one that got none gets it, and Pawl's own tenant is not purged", async () => {
  await using api = await openApp();
  const purge = await serviceOf(api.pawl).purges.request("acme");
  const send = (tenant: string) => api.request("POST", `/v1/tenants/${tenant}/purge`);
  const [first, again] = [(await send("acme")).json(), (await send("acme")).json()];
  expect(again.id).toBe(first.id);
  expect((await api.pawl.jobs.get(first.id)).input).toEqual({ purge });
  expect((await send("pawl")).statusCode).toBe(422);
  expect(await serviceOf(api.pawl).purges.list()).toHaveLength(1);
});

/** An API whose process dies, as far as a purge goes, at a call of the store. */
async function purgeThatDiesAt(fatal: Operation): Promise<{ readonly world: TestPawl; readonly status: number }> {
  const purges = new PurgeTask();
  let alive = true;
  const world = await openTest({
    tasks: [purges.task],
    allowUnknownTasks: true,
    wrapStore: (store) => faultyStore(store, (operation) => (operation === fatal && alive ? { kind: "fail" } : undefined)),
  });
  purges.attach(world.pawl);
  await world.pawl.forTenant("acme").enqueue("later", 1, { delay: "1h" });
  const api = await openApp({ pawl: world.pawl });
  const { statusCode } = await api.request("POST", "/v1/tenants/acme/purge");
  alive = false;
  return { world, status: statusCode };
}

test("S54: a purge whose service dies before its job is told to begin is carried out all the same, a minute later", async () => {
  const { world, status } = await purgeThatDiesAt("jobs.promote");
  expect(status).toBe(500);
  expect(await serviceOf(world.pawl).purges.list()).toMatchObject([{ tenant: "acme" }]);
  await world.advance("61s");
  expect(await serviceOf(world.pawl).purges.list()).toEqual([]);
  expect((await world.pawl.jobs.list({ tenant: "acme" })).items).toEqual([]);
  await world.close();
});

test("S54: a purge whose service dies before it is noted does nothing, and leaves nothing behind but a job that is done", async () => {
  const { world, status } = await purgeThatDiesAt("purges.begin");
  expect(status).toBe(500);
  await world.advance("61s");
  expect(await serviceOf(world.pawl).purges.list()).toEqual([]);
  expect((await world.pawl.jobs.list({ tenant: "acme" })).items).toHaveLength(1);
  expect((await world.pawl.jobs.list({ task: "pawl.purge" })).items).toMatchObject([{ state: "succeeded" }]);
  await world.close();
});

test("a service purges a tenant as a job with progress, and the client of the library waits for it", { timeout: 60_000 }, async () => {
  using folder = temporaryFolder();
  const flags = { "store.url": "memory:", listen: "127.0.0.1:0" };
  const service = await startService(await readConfiguration({ flags, env: {}, folder: folder.path }), { env: {}, writeLine: () => {} });
  try {
    await service.pawl.forTenant("acme").enqueueMany("later", [1, 2, 3], { delay: "1h" });
    await service.pawl.forTenant("other").enqueue("later", 1, { delay: "1h" });
    await using remote = await open(service.address as string);
    const kinds: string[] = [];
    for await (const { kind } of remote.tenants.export("acme")) kinds.push(kind);
    expect(kinds).toEqual(["tenant", "job", "job", "job", "end"]);
    expect(await remote.tenants.purge("acme")).toMatchObject({ jobs: 3, running: 0 });
    expect((await service.pawl.jobs.list({ tenant: "acme" })).items).toEqual([]);
    expect((await service.pawl.jobs.list({ tenant: "other" })).items).toHaveLength(1);
    expect(JSON.stringify(await service.pawl.jobs.list({ task: "pawl.purge" }))).not.toContain("acme");
    expect(await serviceOf(service.pawl).purges.list()).toEqual([]);
  } finally {
    await service.stop();
  }
});
