import type { AnyRoute, Method } from "../../packages/server/src/http/contract/route.ts";
import type { SeededRandom } from "../support/seeded-random.ts";

/** Names that every object knows: a table that is asked for one of them by what a caller says answers with a function. */
export const INHERITED = [...Object.getOwnPropertyNames(Object.prototype), "prototype"];

const TEXTS = [
  "",
  " ",
  "a",
  "\u0000",
  "\ud800",
  "'; drop table pawl.job; --",
  "%s%n",
  "../../etc/passwd",
  "..",
  "\r\nSet-Cookie: x=1",
  "<img src=x onerror=alert(1)>",
  "01890000-0000-7000-8000-000000000000",
  "00000000-0000-0000-0000-000000000000",
  "9".repeat(400),
  "💥".repeat(50),
  "x".repeat(5_000),
  "2024-02-30",
  "-271821-04-20T00:00:00Z",
  "+275760-09-13T00:00:00.001Z",
  "9999999999999999999",
  "9007199254740993",
  "1e309",
  "-1",
  "NaN",
  "Infinity",
  "null",
  "undefined",
  "true",
  "*/0 * * * *",
  "* * 30 2 *",
  "L W #",
  "@every 1s",
  "Europe/Nowhere",
  "#{1+1}",
  "{task}",
  "$&$1",
  "*",
  "a*b*c*",
  "(a+)+$",
  "[",
  "\u202egnp",
  "\\u0000",
  "http://169.254.169.254/",
  "file:///etc/passwd",
  "999999999d",
];

/** What fits somewhere, so that what stands beside it is looked at too. */
const FITTING = [
  "some",
  "5m",
  "1s",
  "2026-01-01T00:00:00Z",
  "default",
  "acme",
  "pawl",
  "* * * * *",
  "@daily",
  "UTC",
  "Europe/Berlin",
  "https://example.com/",
];

const NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.1,
  1e9,
  1e21,
  2 ** 31,
  2 ** 53,
  -(2 ** 31),
  2 ** 63,
  1e308,
  Number.MIN_VALUE,
  8.64e15,
  8.64e15 + 1,
  255,
  32_768,
  1_001,
];

/** Words of JSON Schema, which callers may send for the inputs of their tasks. */
const KEYWORDS = [
  "$ref",
  "$id",
  "$schema",
  "$defs",
  "type",
  "properties",
  "required",
  "pattern",
  "patternProperties",
  "format",
  "items",
  "enum",
  "const",
];

/** The parts of JSON Schema that contracts are written in. */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: Shape | boolean;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Shape[];
}

/** Values by their schema, and against it. */
export class Hostile {
  constructor(readonly chance: SeededRandom) {}

  often(share: number): boolean {
    return this.chance.random() < share;
  }

  text(): string {
    return this.often(0.4) ? this.chance.pick(FITTING) : this.nasty();
  }

  nasty(): string {
    return this.chance.pick(this.often(0.4) ? INHERITED : TEXTS);
  }

  anything(depth = 0): unknown {
    switch (this.chance.between(0, depth > 3 ? 3 : 6)) {
      case 0:
        return this.nasty();
      case 1:
        return this.chance.pick(NUMBERS);
      case 2:
        return this.chance.pick([true, false, null]);
      case 3:
        return [];
      case 4:
        return this.some(0, () => this.anything(depth + 1));
      case 5:
        return Object.fromEntries(this.some(0, () => [this.chance.pick(KEYWORDS), this.anything(depth + 1)]));
      default:
        return Object.fromEntries(this.some(0, () => [this.nasty(), this.anything(depth + 1)]));
    }
  }

  like(schema: Shape | undefined, depth = 0): unknown {
    if (schema === undefined || depth > 5 || this.often(0.08)) return this.anything(depth);
    if (schema.enum !== undefined) return this.chance.pick(schema.enum);
    if (schema.const !== undefined) return schema.const;
    if (schema.anyOf !== undefined) return this.like(this.chance.pick(schema.anyOf), depth + 1);
    switch (this.chance.pick([schema.type ?? ["string", "object"]].flat())) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.some(1, () => this.like(schema.items, depth + 1));
      case "integer":
      case "number":
        return this.often(0.5) ? this.chance.between(0, 9) : this.chance.pick(NUMBERS);
      case "boolean":
        return this.often(0.5);
      case "null":
        return null;
      default:
        return this.text();
    }
  }

  /** What is right, with one thing in it that is not, at any depth. */
  spoilt(right: unknown): unknown {
    if (typeof right === "string" && this.often(0.7)) return this.nasty();
    if (typeof right !== "object" || right === null || this.often(0.1)) return this.anything();
    if (Array.isArray(right)) {
      const at = this.chance.between(0, right.length - 1);
      return right.map((item, index) => (index === at ? this.spoilt(item) : item));
    }
    const entries = Object.entries(right);
    if (entries.length === 0 || this.often(0.2)) return Object.fromEntries([...entries, [this.nasty(), this.anything()]]);
    const at = this.chance.between(0, entries.length - 1);
    return Object.fromEntries(entries.map(([name, inner], index) => [name, index === at ? this.spoilt(inner) : inner]));
  }

  some<T>(least: number, make: () => T): T[] {
    return Array.from({ length: this.chance.between(least, least + 3) }, make);
  }

  #object({ properties = {}, required = [], additionalProperties }: Shape, depth: number): unknown {
    const fields = Object.entries(properties).filter(([name]) => (required.includes(name) ? this.often(0.98) : this.often(0.3)));
    const made = fields.map(([name, inner]): [string, unknown] => [name, this.like(inner, depth + 1)]);
    if (typeof additionalProperties === "object")
      made.push(...this.some(1, (): [string, unknown] => [this.text(), this.like(additionalProperties, depth + 1)]));
    if (this.often(0.05)) made.push([this.nasty(), this.anything()]);
    return Object.fromEntries(made);
  }
}

export interface Fuzzed {
  readonly method: Method;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly raw?: string;
}

/** Those that the service looks into. */
const HEADERS = [
  "idempotency-key",
  "last-event-id",
  "traceparent",
  "tracestate",
  "x-forwarded-for",
  "accept",
  "origin",
  "content-type",
  "content-encoding",
];

/** A request for a route. `known`: ids that there are, by the parameter they fit. */
export function requestOf(route: AnyRoute, hostile: Hostile, names: Readonly<Record<string, readonly string[]>>): Fuzzed {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (Object.hasOwn(names, name) && hostile.often(0.6)) return inUrl(hostile.chance.pick(names[name] as readonly string[]));
    return inUrl((hostile.often(0.3) ? "some" : hostile.nasty()) || "some");
  });
  const query = queryOf(route, hostile);
  const url = query.length === 0 ? path : `${path}?${query.join("&")}`;
  const headers = Object.fromEntries(HEADERS.filter(() => hostile.often(0.03)).map((name) => [name, inHeader(hostile.text())]));
  if (route.method === "GET") return { method: route.method, url, headers };
  const body = route.example !== undefined && hostile.often(0.4) ? hostile.spoilt(route.example) : hostile.like(route.body);
  // It would be waited for in vain.
  if (route.id === "leases.claim" && typeof body === "object" && body !== null) delete (body as { wait?: unknown }).wait;
  const written = JSON.stringify(body) ?? "";
  return { method: route.method, url, headers, raw: hostile.often(0.05) ? written.slice(0, -1) : written };
}

function queryOf(route: AnyRoute, hostile: Hostile): readonly string[] {
  const { properties = {} } = (route.query ?? {}) as Shape;
  const chosen = Object.entries(properties).filter(() => hostile.often(0.4));
  // It would be waited for in vain, and a stream would not end by itself.
  const query = chosen.map(([name, inner]) => `${name}=${name === "wait" ? "0" : inUrl(hostile.like(inner))}`);
  if (hostile.often(0.05)) query.push(`${inUrl(hostile.nasty())}=${inUrl(hostile.text())}`);
  if (query.length > 0 && hostile.often(0.05)) query.push(query[0] as string);
  if (route.id === "events") query.push("event=none");
  return query;
}

function inUrl(value: unknown): string {
  return encodeURIComponent(typeof value === "string" ? value.toWellFormed() : (JSON.stringify(value) ?? ""));
}

/** As Node lets it through: no line ends, one byte to a character. */
function inHeader(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 2_000);
}
