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
/** How often the attack comes with schemas and without. They take turns, so that what else the machine does is shared by both. */
const TURNS = 3;
/** An answer may take so many times as long as while the same bytes are sent to tasks without a schema, and so many ms more. */
const HARM = { times: 3, more: 100 };

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

function quantile(times: readonly number[], share: number): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length * share)] as number;
}

/** By the kernel, where it tells: the most memory that the process ever had. MB */
function peakOf(pid: number): number {
  if (process.platform !== "linux") return 0;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}

test("inputs that cost all time and memory are checked or refused, and others are answered as soon as if nothing was checked, with a heap of 512 MB", {
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
    const { code = "created", id } = (text === "" ? {} : JSON.parse(text)) as { readonly code?: string; readonly id?: string };
    return { status: response.status, code, id };
  };
  for (const [task, inputSchema] of ATTACKS) expect((await send("PUT", `/v1/tasks/${task}`, JSON.stringify({ inputSchema }))).status, task).toBe(204);

  const statuses = new Set<string>();
  /** How long another's small requests take while these bytes are sent to tasks of these names. In order, ms. */
  const meanwhile = async (nameOf: (task: string) => string): Promise<readonly number[]> => {
    const times: number[] = [];
    const attack = async (first: number) => {
      for (let round = first; times.length < ANSWERS / TURNS || round < first + ATTACKS.length; round++) {
        const [task, , input] = ATTACKS[round % ATTACKS.length] as (typeof ATTACKS)[number];
        const { status, code, id } = await send("POST", "/v1/jobs", `{"task":"${nameOf(task)}","delay":"1h","input":${input}}`);
        statuses.add(`${nameOf(task)}: ${status} ${code}`);
        // Kept jobs would fill the heap, which is no fault of a check.
        if (id !== undefined) await send("DELETE", `/v1/jobs/${id}`);
      }
    };
    let isAttacked = true;
    const another = async () => {
      do {
        const before = performance.now();
        expect((await send("GET", "/livez")).status).toBe(200);
        expect((await send("POST", "/v1/jobs", '{"task":"plain","delay":"1h","input":{"a":1}}')).status).toBe(201);
        times.push(performance.now() - before);
      } while (isAttacked);
    };
    const attacked = Promise.all(ATTACKS.map((_, at) => attack(at))).finally(() => {
      isAttacked = false;
    });
    await Promise.all([another(), attacked]);
    return times;
  };
  const [costly, unchecked]: [number[], number[]] = [[], []];
  for (let turn = 0; turn < TURNS; turn++) {
    unchecked.push(...(await meanwhile((task) => `${task}-unchecked`)));
    costly.push(...(await meanwhile((task) => task)));
  }
  for (const one of statuses) expect(one).toMatch(/: (201 created|422 input_invalid|422 input_too_costly|429 too_many_requests)$/);
  expect([...statuses]).toContain("tree: 422 input_invalid");
  for (const share of [0.5, 0.9]) expect(quantile(costly, share)).toBeLessThan(HARM.times * quantile(unchecked, share) + HARM.more);
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
