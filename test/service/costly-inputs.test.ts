import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { freshDatabase } from "../support/servers/servers.js";
import { TcpProxy } from "../support/servers/tcp-proxy.js";
import { serve } from "./service.js";

/** MB of heap, as small as people run it */
const HEAP = 512;
/** Answers of somebody else that come while it is attacked. */
const ANSWERS = 60;
/** Of 5 MB, at the same time. */
const BATCHES = 12;
/** ms that the store's network takes */
const SLOW = 800;
/** ms; on an idle machine it is some milliseconds. Before, an answer took minutes. */
const HARM = 5_000;

const leaf = z.object({ field: z.string(), equals: z.string() });
const tree: z.ZodType = z.lazy(() =>
  z.union([leaf, z.object({ args: z.array(tree), op: z.literal("and") }), z.object({ args: z.array(tree), op: z.literal("or") })]),
);
const objects = (count: number) => Array.from({ length: count }, (_, at) => ({ a: at }));
/** None of these, but anything with an `a`. */
const oneOfMany = { anyOf: [...objects(1_500).map((one) => ({ const: one })), { required: ["a"] }] };

/** Schemas and inputs that stopped the process, or took its memory. */
const ATTACKS: readonly (readonly [task: string, schema: object, input: string])[] = [
  ["tree", z.toJSONSchema(tree, { target: "draft-2020-12" }), `${'{"op":"or","args":['.repeat(24)}{"field":1}${"]}".repeat(24)}`],
  ["unique", { uniqueItems: true }, JSON.stringify(objects(60_000))],
  ["enum", { items: { enum: objects(4_000) } }, JSON.stringify(Array.from({ length: 50_000 }, () => ({ a: 3_999 })))],
  ["union", { items: oneOfMany }, JSON.stringify(objects(50_000).map(({ a }) => ({ a: a + 1_500 })))],
  ["pattern", { items: { pattern: "(a|b)*a(a|b){100}c" } }, JSON.stringify(["ab".repeat(200_000)])],
  ["format", { items: { format: "url" } }, JSON.stringify([`http://${"a:".repeat(200_000)}`])],
];

/** By the kernel, where it tells: the most memory that the process ever had. MB */
function peakOf(pid: number): number {
  if (process.platform !== "linux") return 0;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}

test("inputs that cost all time and memory are checked or refused, and meanwhile others are answered, with a heap of 512 MB", {
  timeout: 300_000,
}, async () => {
  await using service = serve("memory:", ["--log-requests", "false"], { NODE_OPTIONS: `--max-old-space-size=${HEAP}` });
  const url = await service.up();
  const send = async (method: string, path: string, body?: string) => {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body === undefined ? {} : { body, headers: { "content-type": "application/json" } }),
    });
    const text = await response.text();
    const { code = "created" } = (text === "" ? {} : JSON.parse(text)) as { readonly code?: string };
    return { status: response.status, code };
  };
  for (const [task, inputSchema] of ATTACKS) expect((await send("PUT", `/v1/tasks/${task}`, JSON.stringify({ inputSchema }))).status, task).toBe(204);

  const statuses = new Set<string>();
  let answered = 0;
  const attack = async (first: number) => {
    for (let round = first; answered < ANSWERS || round < first + ATTACKS.length; round++) {
      const [task, , input] = ATTACKS[round % ATTACKS.length] as (typeof ATTACKS)[number];
      const { status, code } = await send("POST", "/v1/jobs", `{"task":"${task}","delay":"1h","input":${input}}`);
      statuses.add(`${task}: ${status} ${code}`);
    }
  };
  let slowest = 0;
  const another = async () => {
    for (; answered < ANSWERS; answered++) {
      const before = performance.now();
      expect((await send("GET", "/livez")).status).toBe(200);
      expect((await send("POST", "/v1/jobs", '{"task":"plain","delay":"1h","input":{"a":1}}')).status).toBe(201);
      slowest = Math.max(slowest, performance.now() - before);
    }
  };
  await Promise.all([another(), ...ATTACKS.map((_, at) => attack(at))]);
  for (const one of statuses) expect(one).toMatch(/: (201 created|422 input_invalid|422 input_too_costly|429 too_many_requests)$/);
  expect([...statuses]).toContain("tree: 422 input_invalid");
  expect(slowest).toBeLessThan(HARM);
  expect(peakOf(service.pid)).toBeLessThan(2 * HEAP);
});

test("many large batches of one caller, whose values take twenty times their text, do not end the process", {
  timeout: 300_000,
}, async () => {
  await using database = await freshDatabase();
  const wire = await TcpProxy.before(database.directConfig);
  try {
    await using service = serve(wire.url(database.name), ["--log-requests", "false"], { NODE_OPTIONS: `--max-old-space-size=${HEAP / 2}` });
    const url = await service.up();
    // While a batch is written, its value is kept.
    wire.delay(SLOW);
    const post = (path: string, body: string) =>
      fetch(`${url}${path}`, { method: "POST", body, headers: { "content-type": "application/json" } }).then(async (response) => {
        await response.text();
        return response.status;
      });
    const input = `[${Array.from({ length: 330_000 }, () => "[]").join()}]`;
    const batch = `{"task":"plain","options":{"delay":"1h"},"inputs":[${Array.from({ length: 5 }, () => input).join()}]}`;
    const attack = Promise.all(Array.from({ length: BATCHES }, () => post("/v1/jobs/many", batch)));
    let underAttack = true;
    const others = async () => {
      do expect((await fetch(`${url}/livez`)).status).toBe(200);
      while (underAttack);
    };
    const ended = attack.finally(() => {
      underAttack = false;
    });
    const [statuses] = await Promise.all([ended, others()]);
    expect(statuses).toContain(429);
    // Where the machine is slow, some are not read within Node's 30 s, or not written within the patience of the store.
    for (const status of statuses) expect([200, 408, 429, 503]).toContain(status);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  } finally {
    await wire.close();
  }
});
