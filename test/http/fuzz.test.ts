import { open } from "pawl";
import { describe, expect, test } from "vitest";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import type { AnyRoute } from "../../packages/server/src/http/contract/route.ts";
import { onceOrAgain } from "../support/again.js";
import { describeOn, migratedDatabase } from "../support/servers.ts";
import { openApp } from "./support.ts";

const SEED = Number(process.env.PAWL_SEED ?? Math.floor(Math.random() * 2 ** 31));
const ROUNDS = Number(process.env.PAWL_FUZZ ?? 40);

/** Small, and the same everywhere (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const TEXTS = [
  "",
  " ",
  "a",
  "\u0000",
  "\ud800",
  "'; drop table pawl.job; --",
  "%s%n",
  "../../etc/passwd",
  "\r\nSet-Cookie: x=1",
  "<img src=x onerror=alert(1)>",
  "__proto__",
  "constructor",
  "toString",
  "01890000-0000-7000-8000-000000000000",
  "00000000-0000-0000-0000-000000000000",
  "9".repeat(400),
  "💥".repeat(50),
  "x".repeat(5_000),
  "2024-02-30",
  "9999999999999999999",
  "1e309",
  "-1",
  "NaN",
  "null",
  "true",
  "*/0 * * * *",
  "@every 1s",
  "Europe/Nowhere",
  "#{1+1}",
  "\u202egnp",
  "\\u0000",
];
const NUMBERS = [0, -0, 1, -1, 0.1, 1e9, 1e21, 2 ** 53, -(2 ** 31), 1e308, 255, 1_001];

/** Values by their schema, and against it. */
class Hostile {
  constructor(readonly random: () => number) {}
  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)] as T;
  }
  anything(depth = 0): unknown {
    const kind = Math.floor(this.random() * (depth > 3 ? 4 : 6));
    if (kind === 0) return this.pick(TEXTS);
    if (kind === 1) return this.pick(NUMBERS);
    if (kind === 2) return this.pick([true, false, null]);
    if (kind === 3) return [];
    if (kind === 4) return Array.from({ length: Math.floor(this.random() * 4) }, () => this.anything(depth + 1));
    return Object.fromEntries(Array.from({ length: Math.floor(this.random() * 4) }, () => [this.pick(TEXTS), this.anything(depth + 1)]));
  }
  like(schema: Shape | undefined, depth = 0): unknown {
    if (schema === undefined || depth > 5 || this.random() < 0.12) return this.anything(depth);
    if (schema.enum !== undefined) return this.pick(schema.enum);
    if (schema.const !== undefined) return schema.const;
    if (schema.anyOf !== undefined) return this.like(this.pick(schema.anyOf), depth + 1);
    switch (this.pick([schema.type ?? "string"].flat())) {
      case "object": {
        const fields = Object.entries(schema.properties ?? {}).filter(([name]) => schema.required?.includes(name) || this.random() < 0.3);
        const made = fields.map(([name, inner]) => [name, this.like(inner, depth + 1)]);
        return Object.fromEntries(this.random() < 0.1 ? [...made, [this.pick(TEXTS), this.anything()]] : made);
      }
      case "array":
        return Array.from({ length: Math.floor(this.random() * 4) + 1 }, () => this.like(schema.items, depth + 1));
      case "integer":
      case "number":
        return this.random() < 0.5 ? Math.floor(this.random() * 10) : this.pick(NUMBERS);
      case "boolean":
        return this.random() < 0.5;
      case "null":
        return null;
      default:
        return this.random() < 0.5 ? this.pick(["some", "5m", "2026-01-01T00:00:00Z", "default", "pawl"]) : this.pick(TEXTS);
    }
  }
}

interface Shape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Shape[];
}

interface Fuzzed {
  readonly method: AnyRoute["method"];
  readonly url: string;
  readonly raw?: string;
}

function requestOf(route: AnyRoute, hostile: Hostile, jobs: readonly string[]): Fuzzed {
  const { random } = hostile;
  const text = (value: unknown) => encodeURIComponent(String(typeof value === "string" ? value.toWellFormed() : JSON.stringify(value)));
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    text(name === "job" && random() < 0.7 ? hostile.pick(jobs) : random() < 0.5 ? "some" : hostile.pick(TEXTS.filter((one) => one !== ""))),
  );
  const { properties = {} } = (route.query ?? {}) as Shape;
  const query = Object.entries(properties)
    .filter(() => random() < 0.4)
    .map(([name, inner]) => `${name}=${text(hostile.like(inner))}`);
  // A stream or a wait would not end by itself.
  if (route.id === "events") query.push("event=none");
  if (route.id === "jobs.wait") query.splice(0, query.length, "timeout=0");
  const url = query.length === 0 ? path : `${path}?${query.join("&")}`;
  if (route.method === "GET") return { method: route.method, url };
  const body = hostile.like(route.body);
  if (route.id === "leases.claim" && typeof body === "object" && body !== null) delete (body as { wait?: unknown }).wait;
  const written = JSON.stringify(body) ?? "";
  return { method: route.method, url, raw: random() < 0.1 ? written.slice(0, -1) : written };
}

async function run(store: string, rounds: number): Promise<void> {
  const pawl = await open(store, { maintenance: false, keys: { pepper: "a pepper of this test" } });
  await using api = await openApp({ pawl });
  const hostile = new Hostile(generator(SEED));
  const jobs: string[] = [];
  for (const delay of [0, "1h"]) jobs.push((await pawl.enqueue("some", { a: 1 }, { delay, tenant: "acme" })).id);
  await pawl.schedules.put("some", "some", { every: "1h" });
  const frozen = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));
  const seen = new Map<number, number>();
  for (let round = 0; round < rounds; round++) {
    for (const route of CONTRACT) {
      const request = requestOf(route, hostile, jobs);
      const key = hostile.pick(["all-admin", "acme-admin"]);
      const answer = await api.ask(request.method, request.url, { key, ...(request.raw === undefined ? {} : { raw: request.raw }) });
      seen.set(answer.statusCode, (seen.get(answer.statusCode) ?? 0) + 1);
      if (answer.statusCode < 500) continue;
      throw new Error(
        `PAWL_SEED=${SEED}: ${request.method} ${request.url} ${request.raw ?? ""} → ${answer.body}; ${String(api.faults.at(-1))} ${(api.faults.at(-1) as Error).stack}`,
      );
    }
  }
  // Or it would not have got past the checks at all.
  expect(seen.get(200) ?? 0).toBeGreaterThan(rounds);
  expect(seen.get(422) ?? 0).toBeGreaterThan(rounds);
  expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(frozen);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
}

describe("S23: whatever is sent to a route, the service does not fail", () => {
  test(`in memory (seed ${SEED})`, { timeout: 300_000 }, () => run("memory:", ROUNDS));

  for (const server of onceOrAgain(["embedded18", "debian15"] as const)) {
    describeOn(server, () => {
      test(`(seed ${SEED})`, { timeout: 300_000 }, async () => {
        await using database = await migratedDatabase(server);
        await run(database.url, Math.ceil(ROUNDS / 8));
      });
    });
  }
});
