import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_JSON_DEPTH, parseJson } from "../../packages/server/src/http/request/json.ts";
import { openApp, type TestApp } from "./support.ts";

const json = (text: string) => parseJson(Buffer.from(text));

describe("strict JSON", () => {
  test("plain values are what JSON.parse makes of them", () => {
    const text = '{"a":[1,2.5,-3e2,"\\u00e9 \\"quoted\\" \\\\",null,true],"b":{"prototype":1},"constructor":"Ford"}';
    expect(json(text)).toEqual(JSON.parse(text));
  });

  test(`S22: ${MAX_JSON_DEPTH} levels are taken, one more is not, and brackets in texts do not count`, () => {
    const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
    expect(() => json(deep(MAX_JSON_DEPTH))).not.toThrow();
    expect(() => json(deep(MAX_JSON_DEPTH + 1))).toThrow(expect.objectContaining({ code: "json_invalid" }));
    expect(json(`"${"[".repeat(1_000)}\\"{{{"`)).toHaveLength(1_004);
  });

  test.each([
    ["a prototype", '{"__proto__":{"polluted":true}}'],
    ["an escaped prototype", '{"\\u005f_proto__":{"polluted":true}}'],
    ["a prototype through the constructor", '{"a":{"constructor":{"prototype":{"polluted":true}}}}'],
    ["a NUL", '{"a":"\\u0000"}'],
    ["half of a pair", '{"a":["\\ud800"]}'],
    ["half of a pair as a key", '{"\\udfff":1}'],
    ["what is no JSON", "{a:1}"],
    ["nothing", " "],
  ])("S22: %s is refused", (_, text) => {
    expect(() => json(text)).toThrow(expect.objectContaining({ code: "json_invalid" }));
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test("S22: what is not UTF-8 is refused", () => {
    expect(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(expect.objectContaining({ code: "json_invalid" }));
  });
});

describe("requests that are not as they should be", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp();
  });
  afterAll(() => api[Symbol.asyncDispose]());

  test("S20: a body over the limit of its route is refused, one at the limit is read", async () => {
    const body = (bytes: number) => JSON.stringify({ task: "big", input: "x".repeat(bytes - '{"task":"big","input":""}'.length) });
    expect((await api.request("POST", "/v1/jobs", { raw: body(1_048_577) })).json()).toMatchObject({ status: 413, code: "body_too_large" });
    // Its input alone is smaller than the library takes.
    expect((await api.request("POST", "/v1/jobs", { raw: body(1_048_576) })).statusCode).toBe(201);
    const inputs = Array.from({ length: 4 }, () => "x".repeat(1_000_000));
    expect((await api.request("POST", "/v1/jobs/many", { body: { task: "big", inputs } })).statusCode).toBe(200);
    expect((await api.request("POST", "/v1/jobs/many", { body: { task: "big", inputs: [...inputs, ...inputs] } })).statusCode).toBe(413);
    expect((await api.request("POST", "/v1/jobs/many", { body: { task: "small", inputs: new Array(1_001).fill(1) } })).json()).toMatchObject({
      status: 422,
      pointer: "/inputs",
    });
  });

  test("S21: only JSON is taken, in UTF-8 and as it is", async () => {
    const raw = '{"task":"a"}';
    for (const headers of [
      { "content-type": "text/plain" },
      { "content-type": "application/json; charset=utf-16" },
      { "content-encoding": "gzip" },
    ]) {
      const [sent] = Object.values(headers);
      const refused = (await api.request("POST", "/v1/jobs", { raw, headers })).json();
      expect(refused).toMatchObject({ status: 415, code: "media_unsupported", detail: expect.stringContaining(`"${sent}"`) });
    }
    expect((await api.request("POST", "/v1/jobs", { raw, headers: { "content-type": "application/json; charset=utf-8" } })).statusCode).toBe(201);
    expect((await api.request("POST", "/v1/jobs")).statusCode).toBe(422);
  });

  test("S25: names have a grammar, wherever they are given", async () => {
    for (const name of ["a b", "{a}:*\r\nFLUSHALL", "x'; drop table job; --", "ü", "x".repeat(129), "../x"]) {
      expect((await api.request("POST", "/v1/jobs", { body: { task: name } })).json(), name).toMatchObject({ status: 422, pointer: "/task" });
      expect((await api.request("GET", `/v1/jobs?queue=${encodeURIComponent(name)}`)).json(), name).toMatchObject({
        status: 422,
        pointer: "query/queue",
      });
      // A path with control characters is no name's fault: it is refused before anybody looks for a name in it.
      const refused = name.includes("\n") ? { status: 400, code: "request_malformed" } : { status: 422, pointer: "path/queue" };
      expect((await api.request("GET", `/v1/queues/${encodeURIComponent(name)}`)).json(), name).toMatchObject(refused);
    }
  });

  test("S26: cron expressions that cannot be, or never come, are refused with their reason", async () => {
    const put = async (body: object) => (await api.request("PUT", "/v1/schedules/s", { body: { task: "a", ...body } })).json();
    for (const cron of ["*/0 * * * *", "61 * * * *", "x"]) expect(await put({ cron })).toMatchObject({ status: 422, code: "cron_invalid" });
    expect(await put({ cron: "* ".repeat(5_000) })).toMatchObject({ status: 422, pointer: "/cron" });
    expect(await put({ cron: "0 0 30 2 *" })).toMatchObject({ status: 422, code: "schedule_never_ticks" });
    expect(await put({ cron: "* * * * *", timeZone: "Mars/Olympus" })).toMatchObject({ status: 422, code: "time_zone_unknown" });
  });

  test("S30: pages have a limit", async () => {
    for (const limit of ["1e9", "0", "-1", "many", "1001"])
      expect((await api.request("GET", `/v1/jobs?limit=${limit}`)).json()).toMatchObject({ status: 422, pointer: "query/limit" });
  });

  test("a word that is none of those it may be is told which these are", async () => {
    const { detail } = (await api.request("GET", "/v1/jobs?state=ded")).json();
    expect(detail).toMatch(/^query\/state must be one of .*\bready, .*\bdead\b/);
  });

  test("a path that exists says which methods it knows, one that does not is told so", async () => {
    const wrong = await api.request("PUT", "/v1/jobs", { key: "" });
    expect([wrong.statusCode, wrong.headers.allow, wrong.json().code]).toEqual([405, "POST, GET", "method_unknown"]);
    expect((await api.request("GET", "/v1/jobs/many/x/y")).json()).toMatchObject({ status: 404, code: "route_unknown" });
    expect((await api.request("GET", "/v1/%zz")).statusCode).toBe(400);
  });

  test("S60, S64: every answer has the headers of one that cannot be misused, and none lets other origins in", async () => {
    const answers = await Promise.all([
      api.request("GET", "/v1/jobs", { headers: { origin: "https://evil.example" } }),
      api.request("GET", "/v1/none"),
      api.request("GET", "/v1/jobs", { key: "" }),
      api.request("PUT", "/v1/jobs"),
      api.app.inject({ method: "GET", url: "/v1/docs" }),
    ]);
    for (const { headers } of answers) {
      expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store" });
      expect(headers["content-security-policy"]).toContain("default-src 'none'");
      expect(headers["access-control-allow-origin"]).toBeUndefined();
    }
    expect(answers[2]?.headers["www-authenticate"]).toContain("Bearer");
  });
});
