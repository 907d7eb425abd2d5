import { once } from "node:events";
import type { Readable } from "node:stream";
import type { ExportEntry } from "pawl/service";
import { expect, test } from "vitest";
import { Exports } from "./exports.js";

const of = (tenant: string | undefined, name = "key", more: { signal?: AbortSignal; stillAllowed?: () => Promise<boolean> } = {}) => ({
  principal: { name, tenant, grants: [] },
  signal: new AbortController().signal,
  stillAllowed: async () => true,
  ...more,
});

const END: ExportEntry = { kind: "end", entries: 0 };

/** So many entries of a kilobyte each, and how many were asked for. */
function entries(count: number) {
  const iteration = { pulls: 0, closed: false };
  async function* made(): AsyncGenerator<ExportEntry> {
    try {
      for (; iteration.pulls < count; iteration.pulls++) yield { kind: "end", entries: iteration.pulls, text: "x".repeat(1_024) } as ExportEntry;
    } finally {
      iteration.closed = true;
    }
  }
  return { iteration, made };
}

async function textOf(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
}

test("an owner has one export at a time, whichever of its keys asks, and all owners together a few", async () => {
  const exports = new Exports({ total: 2 });
  const begin = (tenant: string | undefined, name?: string) => exports.stream(of(tenant, name), entries(1).made);
  const first = await begin("acme", "one");
  await expect(begin("acme", "two")).rejects.toMatchObject({ code: "too_many_requests", details: { retryAfter: 10_000 } });
  const second = await begin(undefined, "operator");
  await expect(begin("third")).rejects.toMatchObject({ code: "too_many_requests" });
  await textOf(first);
  await new Promise(setImmediate);
  await textOf(await begin("third"));
  second.destroy();
});

test("an export that fails at its beginning is thrown and leaves its place", async () => {
  const exports = new Exports();
  const fails = async function* (): AsyncGenerator<ExportEntry> {
    yield* [];
    throw new Error("the store is away");
  };
  await expect(exports.stream(of("acme"), fails)).rejects.toThrow("the store is away");
  expect(exports.running).toBe(0);
  expect(
    await textOf(
      await exports.stream(of("acme"), async function* () {
        yield END;
      }),
    ),
  ).toBe('{"kind":"end","entries":0}\n');
});

test("nothing more is read than its caller takes, and nothing once the caller has gone", async () => {
  const exports = new Exports();
  const { iteration, made } = entries(10_000);
  const disconnect = new AbortController();
  const stream = await exports.stream(of("acme", "key", { signal: disconnect.signal }), made);
  await once(stream, "readable");
  await new Promise(setImmediate);
  expect(iteration.pulls).toBeLessThan(300);
  const closed = once(stream, "close");
  disconnect.abort();
  await closed;
  await new Promise(setImmediate);
  expect(iteration.closed).toBe(true);
  expect(exports.running).toBe(0);
});

test("a caller that takes nothing for too long is cut off, and leaves its place", async () => {
  const exports = new Exports({ grace: 1, minPace: 1_000_000_000 });
  const stream = await exports.stream(of("acme"), entries(10_000).made);
  const closed = once(stream, "close");
  stream.read();
  await closed;
  expect(exports.running).toBe(0);
});

test("an export whose credential is revoked ends without its last line", async () => {
  const exports = new Exports({ recheck: 0 });
  const stream = await exports.stream(of("acme", "key", { stillAllowed: async () => false }), entries(10_000).made);
  await expect(textOf(stream)).rejects.toMatchObject({ code: "unauthenticated" });
  expect(exports.running).toBe(0);
});
