import { once } from "node:events";
import { connect } from "node:net";
import type { Pawl } from "pawl";
import { serviceOf } from "pawl/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfiguration } from "../../packages/server/src/config/read.ts";
import type { RequestFacts } from "../../packages/server/src/http/request/request-facts.ts";
import { HttpListener } from "../../packages/server/src/run/listener.ts";
import { type Service, startService } from "../../packages/server/src/run/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PEPPER = "a pepper of more than sixteen bytes";

/** Those who wait for facts that fit, and all that there are. */
class RecordedLines {
  readonly all: RequestFacts[] = [];
  #logged: () => void = () => {};

  readonly onRequest = (facts: RequestFacts) => {
    this.all.push(facts);
    this.#logged();
  };

  async one(fits: (facts: RequestFacts) => boolean): Promise<RequestFacts> {
    for (;;) {
      const found = this.all.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        this.#logged = resolve;
      });
    }
  }
}

async function sendRaw(address: string, text: string): Promise<string> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  let requests = "";
  socket.setEncoding("utf8").on("data", (data) => {
    requests += data;
  });
  socket.write(text);
  await once(socket, "close");
  return requests;
}

describe("what is told of requests", () => {
  const requests = new RecordedLines();
  const folder = temporaryFolder();
  let service: Service;
  let pawl: Pawl;
  let address: string;
  let key: { readonly id: string; readonly text: string };

  beforeAll(async () => {
    const env = { PEPPER };
    const flags = { "store.url": "memory:", listen: "127.0.0.1:0", auth: "keys", "apiKeys.pepper": "env:PEPPER", components: "api" };
    service = await startService(await readConfiguration({ flags, env: {}, folder: folder.path }), {
      env,
      writeLine: () => {},
      onRequest: requests.onRequest,
    });
    pawl = service.pawl;
    address = service.address as string;
    const made = await serviceOf(pawl).apiKeys.create({ name: "ci", tenant: "acme", grants: [{ role: "producer" }, { role: "operator" }] });
    key = { id: made.key.id, text: made.secret };
  });
  afterAll(async () => {
    await service.stop();
    folder[Symbol.dispose]();
  });

  const fetchPath = (path: string, { headers, ...init }: RequestInit & { headers?: Record<string, string> } = {}) =>
    fetch(address + path, { ...init, headers: { authorization: `Bearer ${key.text}`, "content-type": "application/json", ...headers } });
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    fetchPath("/v1/jobs", { method: "POST", body: JSON.stringify(body), headers });

  test.each<[string, () => Promise<Response>, Partial<RequestFacts>]>([
    ["one that went well", () => post({ task: "mail", input: { to: "x" } }), { method: "POST", route: "/v1/jobs", path: "/v1/jobs", status: 201 }],
    [
      "a job that there is not",
      () => fetchPath("/v1/jobs/nothing"),
      { route: "/v1/jobs/{job}", path: "/v1/jobs/nothing", status: 404, code: "job_unknown" },
    ],
    ["a body that is wrong", () => post({ task: "mail", prority: 1 }), { route: "/v1/jobs", status: 422, code: "field_unknown" }],
    ["a body that is no JSON", () => fetchPath("/v1/jobs", { method: "POST", body: "{" }), { status: 400, code: "json_invalid" }],
    ["what its caller may not do", () => fetchPath("/v1/api-keys"), { route: "/v1/api-keys", status: 403, code: "forbidden" }],
    ["a path that there is not", () => fetchPath("/v1/jbos"), { route: undefined, path: "/v1/jbos", status: 404, code: "route_unknown" }],
    ["a method that there is not", () => fetchPath("/v1/jobs", { method: "DELETE" }), { route: "/v1/jobs", status: 405, code: "method_unknown" }],
    [
      "a path that cannot be read",
      () => fetchPath("/v1/jobs/%ff"),
      { route: undefined, path: "/v1/jobs/%ff", status: 400, code: "request_malformed" },
    ],
  ])("%s is told of by the id that its caller has", async (_, send, facts) => {
    const response = await send();
    const id = response.headers.get("request-id");
    const body = (await response.json()) as { requestId?: string };
    if (response.status >= 400) expect(body.requestId).toBe(id);
    const logged = await requests.one(({ request }) => request === id);
    expect(logged).toMatchObject({ address: "127.0.0.1", ...facts });
    expect([logged.duration > 0, logged.received > 100, logged.sent > 100]).toEqual([true, true, true]);
    expect(requests.all.filter(({ request }) => request === logged.request)).toHaveLength(1);
  });

  test("the caller is told by the id of its key, and by its tenant; one that is not let in is nobody", async () => {
    const allowed = await post({ task: "mail" });
    expect(await requests.one(({ request }) => request === allowed.headers.get("request-id"))).toMatchObject({
      caller: `key:${key.id}`,
      tenant: "acme",
    });
    const refused = await fetchPath("/v1/jobs", { headers: { authorization: "Bearer nonsense" } });
    const logged = await requests.one(({ request }) => request === refused.headers.get("request-id"));
    expect(logged).toMatchObject({ status: 401, code: "unauthenticated", caller: undefined, tenant: undefined, route: "/v1/jobs" });
  });

  test("a refusal that is repeated is told of with its code", async () => {
    const cancel = () => fetchPath("/v1/jobs/nothing/cancel", { method: "POST", headers: { "idempotency-key": "twice" }, body: "{}" });
    const first = await cancel();
    const second = await cancel();
    expect([first.status, second.headers.get("idempotency-replayed")]).toEqual([404, "true"]);
    expect(await requests.one(({ request }) => request === second.headers.get("request-id"))).toMatchObject({ status: 404, code: "job_unknown" });
  });

  test("nothing that was sent is told: no input, no query, no key", async () => {
    const response = await fetchPath("/v1/jobs?task=hidden-in-the-query&limit=0");
    await post({ task: "mail", input: { card: "hidden-in-the-input" } });
    await requests.one(({ request }) => request === response.headers.get("request-id"));
    const all = JSON.stringify(requests.all);
    expect(all).not.toContain("hidden-in");
    expect(all).not.toContain(key.text.split("_").at(-1));
  });

  test("what never became a request is told of by where it came from", async () => {
    expect(await sendRaw(address, "no HTTP at all\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
    const logged = await requests.one(({ method }) => method === undefined);
    expect(logged).toMatchObject({ status: 400, code: "request_malformed", address: "127.0.0.1", request: undefined });
  });

  test("a caller that goes away before it is answered is told of without a status", async () => {
    const job = await pawl.forTenant("acme").enqueue("mail", {});
    const { hostname, port } = new URL(address);
    const socket = connect(Number(port), hostname);
    const rawRequest = `GET /v1/jobs/${job.id}?wait=60s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.text}\r\n\r\n`;
    socket.write(rawRequest, () => socket.destroy());
    expect(await requests.one(({ route, status }) => route === "/v1/jobs/{job}" && status === undefined)).toMatchObject({ code: undefined });
  });
});

test("what is answered before there is a store has an id too, and is told of", async () => {
  const requests = new RecordedLines();
  const listener = new HttpListener(undefined, requests.onRequest);
  const address = await listener.listen({ host: "127.0.0.1", port: 0 });
  const response = await fetch(`${address}/v1/jobs?task=x`);
  const { requestId } = (await response.json()) as { requestId: string };
  expect(response.headers.get("request-id")).toBe(requestId);
  const logged = await requests.one(({ request }) => request === requestId);
  expect(logged).toMatchObject({ path: "/v1/jobs", route: undefined, status: 503, code: "service_starting" });
  await listener.close(AbortSignal.abort());
});
