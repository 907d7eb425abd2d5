import { expect, test } from "vitest";
import { CONTRACT } from "../../packages/server/src/http/contract/index.ts";
import type { AnyRoute } from "../../packages/server/src/http/contract/route.ts";
import { INHERITED, type Shape } from "./hostile.ts";
import { openApp } from "./support.ts";

type FieldPath = readonly (string | number)[];

/** Where a text may stand in a value of this shape. */
function* textsIn(shape: Shape, at: FieldPath = []): Generator<FieldPath> {
  if (shape.enum !== undefined || shape.const !== undefined || at.length > 6) return;
  const types = [shape.type ?? []].flat();
  if (types.includes("string")) yield at;
  for (const [name, inner] of Object.entries(shape.properties ?? {})) yield* textsIn(inner, [...at, name]);
  if (shape.items !== undefined) yield* textsIn(shape.items, [...at, 0]);
  for (const one of shape.anyOf ?? []) yield* textsIn(one, at);
}

/** Where an object has whatever names its caller gives. */
function* namesIn(shape: Shape, at: FieldPath = []): Generator<FieldPath> {
  if (at.length > 6) return;
  if (typeof shape.additionalProperties === "object") yield at;
  for (const [name, inner] of Object.entries(shape.properties ?? {})) yield* namesIn(inner, [...at, name]);
  if (shape.items !== undefined) yield* namesIn(shape.items, [...at, 0]);
  for (const one of shape.anyOf ?? []) yield* namesIn(one, at);
}

/** The same, with another value at a place. */
function put(within: unknown, [first, ...rest]: FieldPath, value: unknown): unknown {
  if (first === undefined) return value;
  if (typeof first === "number") return [put(Array.isArray(within) ? within[0] : undefined, rest, value)];
  const fields = Object.entries((within ?? {}) as object);
  const before = fields.find(([name]) => name === first)?.[1];
  return Object.fromEntries([...fields.filter(([name]) => name !== first), [first, put(before, rest, value)]]);
}

/** What the reference shows, or what must be there; what waits for a job does not wait. */
function rightBody({ id, body, example }: AnyRoute): unknown {
  const { required = [] } = (body ?? {}) as Shape;
  const right: unknown = example ?? Object.fromEntries(required.map((field) => [field, "some"]));
  return id === "leases.claim" ? put(right, ["wait"], 0) : right;
}

function* bodiesOf(route: AnyRoute, name: string): Generator<unknown> {
  const shape = route.body as Shape;
  const base = rightBody(route);
  for (const path of textsIn(shape)) yield put(base, path, name);
  for (const path of namesIn(shape)) for (const value of [1, "a"]) yield put(base, [...path, name], value);
}

function* urlsOf(route: AnyRoute, name: string): Generator<string> {
  const path = (value: string) => route.path.replaceAll(/\{\w+\}/g, value);
  // A stream would not end by itself.
  const least = route.id === "events" ? "event=none&" : "";
  yield `${path(name)}?${least}`;
  const { properties = {} } = (route.query ?? {}) as Shape;
  const free = Object.keys(properties).filter((field) => !least.startsWith(`${field}=`));
  for (const field of [...free, name]) yield `${path("some")}?${least}${field}=${name}`;
}

test("S23: a name that every object knows is a name like any other, or refused, wherever it stands in a request", { timeout: 300_000 }, async () => {
  await using api = await openApp({
    pawl: { apiKeys: { pepper: "a pepper of this test" }, encryption: { masterKeys: [Buffer.alloc(32, 7).toString("base64")] } },
  });
  const seen = new Map<number, number>();
  const send = async (route: AnyRoute, url: string, body?: unknown) => {
    const raw = route.method === "GET" || body === undefined ? {} : { raw: JSON.stringify(body) };
    const { statusCode } = await api.request(route.method, url, raw);
    expect(statusCode, `${route.method} ${url} ${JSON.stringify(body)}: ${String(api.faults.at(-1))}`).toBeLessThan(500);
    seen.set(statusCode, (seen.get(statusCode) ?? 0) + 1);
  };
  for (const name of INHERITED) {
    for (const route of CONTRACT) {
      for (const url of urlsOf(route, name)) await send(route, url, route.body === undefined ? undefined : rightBody(route));
      if (route.body === undefined) continue;
      for (const body of bodiesOf(route, name)) await send(route, route.path.replaceAll(/\{\w+\}/g, "some"), body);
    }
  }
  // Or it would not have got past the checks at all.
  expect(seen.get(200) ?? 0).toBeGreaterThan(INHERITED.length * 20);
});
