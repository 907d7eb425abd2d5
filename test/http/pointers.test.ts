import { open } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { schemaCompiler } from "../../packages/server/src/json-schema/input-schema.js";
import { openApp, type TestApp } from "./support.ts";

const NOBODY = "0199ffff-0000-7000-8000-000000000000";

describe("a problem over HTTP", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await openApp({ pawl: await open("memory:", { allowUnknownTasks: true, compileSchema: schemaCompiler() }) });
    const inputSchema = {
      type: "object",
      required: ["to"],
      additionalProperties: false,
      properties: { to: { type: "string" }, "a/b": { type: "integer" }, lines: { type: "array", items: { type: "integer" } } },
    };
    await api.request("PUT", "/v1/tasks/letter", { body: { inputSchema } });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const enqueued = (body: object) => api.request("POST", "/v1/jobs", { body });
  const letter = (input: unknown) => enqueued({ task: "letter", input });
  const bulk = (body: object) => api.request("POST", "/v1/bulk", { body: { verb: "cancel", filter: {}, ...body } });
  const batch = (body: object) => api.request("POST", "/v1/jobs/many", { body });

  test.each<[string, () => ReturnType<TestApp["request"]>, string, string]>([
    ["an element of a list in an input", () => letter({ to: "x", lines: [1, "two"] }), "input_invalid", "/input/lines/1"],
    ["a field of an input with a name to escape", () => letter({ to: "x", "a/b": "c" }), "input_invalid", "/input/a~1b"],
    ["what is missing in an input", () => letter({}), "input_invalid", "/input/to"],
    ["what nobody knows in an input", () => letter({ to: "x", form: 1 }), "input_invalid", "/input/form"],
    ["an input that is wrong as a whole", () => letter(7), "input_invalid", "/input"],
    [
      "the input of a schedule",
      () => api.request("PUT", "/v1/schedules/s", { body: { task: "letter", every: "1h", input: { to: 1 } } }),
      "input_invalid",
      "/input/to",
    ],
    [
      "one of the jobs of a batch that is stored as a whole",
      () => batch({ atomic: true, jobs: [{ task: "any" }, { task: "letter", input: { to: 1 } }] }),
      "input_invalid",
      "/jobs/1/input/to",
    ],
    ["one of its inputs", () => batch({ atomic: true, task: "letter", inputs: [{ to: "x" }, { to: 1 }] }), "input_invalid", "/inputs/1/to"],
    [
      "an option of one of its jobs",
      () => batch({ atomic: true, jobs: [{ task: "any" }, { task: "any", delay: "soon" }] }),
      "duration_invalid",
      "/jobs/1/delay",
    ],
    [
      "an option they share",
      () => batch({ atomic: true, task: "any", inputs: [1], options: { delay: "soon" } }),
      "duration_invalid",
      "/options/delay",
    ],
    [
      "the path of a limit that its schema has no field for",
      () =>
        api.request("PUT", "/v1/tasks/lost", {
          body: { limits: [{ key: "too", concurrency: 1 }], inputSchema: { additionalProperties: false, properties: { to: {} } } },
        }),
      "option_invalid",
      "/limits/0/key",
    ],
    ["a field that is missing in a body", () => enqueued({ input: 1 }), "field_invalid", "/task"],
    ["a field inside a field", () => enqueued({ task: "any", unique: { key: "k", for: "soon" } }), "duration_invalid", "/unique/for"],
    ["a duration in a URL", () => api.request("GET", `/v1/jobs/${NOBODY}?wait=soon`), "duration_invalid", "query/wait"],
    ["what the library knows by a longer name", () => api.request("GET", "/v1/series?step=90s"), "option_invalid", "query/step"],
    ["a filter in a URL", () => api.request("GET", "/v1/jobs?since=soon"), "option_invalid", "query/since"],
    [
      "a filter that ends before it begins",
      () => api.request("GET", "/v1/jobs?since=2026-02-01T00:00Z&until=2026-01-01T00:00Z"),
      "option_invalid",
      "query/since",
    ],
    ["a name in a filter in a URL", () => api.request("GET", "/v1/jobs?tag=%20"), "name_invalid", "query/tag"],
    ["a time in the filter of a bulk operation", () => bulk({ filter: { since: "nonsense" } }), "option_invalid", "/filter/since"],
    ["the other", () => bulk({ filter: { until: "nonsense" } }), "option_invalid", "/filter/until"],
    [
      "a bulk operation's filter that ends before it begins",
      () => bulk({ filter: { since: "2026-02-01T00:00Z", until: "2026-01-01T00:00Z" } }),
      "option_invalid",
      "/filter/since",
    ],
    ["a tag of its filter", () => bulk({ filter: { tag: " " } }), "name_invalid", "/filter/tag"],
    ["a unique key of its filter", () => bulk({ filter: { uniqueKey: "a\u0001" } }), "name_invalid", "/filter/uniqueKey"],
    ["a fingerprint of its filter", () => bulk({ filter: { fingerprint: "4f1c" } }), "option_invalid", "/filter/fingerprint"],
    ["a state that its verb is not for", () => bulk({ verb: "redrive", filter: { state: "ready" } }), "option_invalid", "/filter/state"],
    ["its pace", () => bulk({ verb: "redrive", pace: "soon" }), "duration_invalid", "/pace"],
    ["a pace that its verb has not", () => bulk({ pace: "1s" }), "option_invalid", "/pace"],
  ])("points to %s", async (_, send, code, pointer) => {
    expect((await send()).json()).toMatchObject({ status: 422, code, pointer });
  });

  test("points into a job of a batch as if it had come alone, where it is answered by itself", async () => {
    const { results: answers } = (await batch({ task: "letter", inputs: [{ to: "x" }, { lines: [] }] })).json();
    expect(answers).toMatchObject([{ enqueued: "created" }, { error: { code: "input_invalid", pointer: "/input/to" } }]);
  });

  test("has the values themselves in its details, and in quotes in its text", async () => {
    const cron = await api.request("PUT", "/v1/schedules/s", { body: { task: "any", cron: "61 * * * *" } });
    expect(cron.json()).toMatchObject({ detail: expect.stringMatching(/^"61 \* \* \* \*" is not a cron/), details: { expression: "61 * * * *" } });
    const delay = await enqueued({ task: "any", delay: "1 sec" });
    expect(delay.json()).toMatchObject({ detail: expect.stringMatching(/^delay "1 sec" is not a duration/), details: { value: "1 sec" } });
    const path = await api.request("GET", "/v1/nowhere");
    expect(path.json()).toMatchObject({ detail: expect.stringMatching(/^there is no GET "\/v1\/nowhere"/), details: { path: "/v1/nowhere" } });
  });

  test("takes durations and times in a URL as it does in a body: a text, or a number in digits", async () => {
    const { id } = (await enqueued({ task: "any", delay: "1h" })).json();
    for (const wait of ["0", "5ms", "0s"])
      expect((await api.request("GET", `/v1/jobs/${id}?wait=${wait}`)).json(), wait).toMatchObject({ id, state: "scheduled" });
    for (const series of ["last=3600000&step=300000", "last=1h&step=5m", `from=${Date.now() - 600_000}`])
      expect((await api.request("GET", `/v1/series?${series}`)).statusCode, series).toBe(200);
  });
});
