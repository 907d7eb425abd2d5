import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { type BodyLimits, BodyReader } from "./body.js";

/** A request as Node hands it over, whose body is sent by the test. */
function request(length?: number) {
  const stream = new PassThrough();
  return Object.assign(stream as unknown as IncomingMessage & PassThrough, {
    headers: length === undefined ? {} : { "content-length": String(length) },
    send: (text: string) => stream.end(text),
  });
}

const text = (body: Buffer) => body.toString();
const of = (caller: string, limit = 100) => ({ caller, owner: caller, limit });
/** Nothing here may depend on how fast the test is. */
const PATIENT: BodyLimits = { small: 0, second: 1_000_000 };

describe("bodies", () => {
  test("one that says it is too large is refused before any of it is read, and takes nothing", async () => {
    const bodies = new BodyReader();
    await expect(bodies.read(request(11), of("a", 10), text)).rejects.toMatchObject({ code: "body_too_large" });
    expect(bodies.bytes).toBe(0);
  });

  test("one that does not say how large it is, is charged as it arrives, and cut at the limit", async () => {
    const bodies = new BodyReader(PATIENT);
    const endless = request();
    const refused = expect(bodies.read(endless, of("a", 10), text)).rejects.toMatchObject({ code: "body_too_large", details: { limit: 10 } });
    expect(bodies.bytes).toBe(0);
    endless.write("x".repeat(4));
    await new Promise(setImmediate);
    expect(bodies.bytes).toBe(4);
    endless.write("x".repeat(7));
    await refused;
    expect(bodies.bytes).toBe(0);
  });

  test("what a large one took is given back when it has been used, or refused, and not when the collector looks", async () => {
    const bodies = new BodyReader(PATIENT);
    const piece = () => Buffer.alloc(100_000, "x");
    const sent = [piece(), piece()];
    const upload = request();
    const read = bodies.read(upload, of("a", 200_000), (body) => [body, text(body).length] as const);
    for (const part of sent) upload.write(part);
    upload.end();
    const [body, length] = await read;
    expect(length).toBe(200_000);
    const refused = request();
    const over = piece();
    const reading = expect(bodies.read(refused, of("a", 100_000), text)).rejects.toMatchObject({ code: "body_too_large" });
    refused.write(over);
    refused.end("and more");
    await reading;
    expect([body, ...sent, over].map(({ buffer }) => buffer.byteLength)).toEqual([0, 0, 0, 0]);
    expect(bodies.bytes).toBe(0);
  });

  test("of a caller with too many bytes the oldest body is read first; small ones are read at once", async () => {
    const bodies = new BodyReader({ ...PATIENT, perCaller: 4, small: 2 });
    const [first, second, small] = [request(8), request(8), request(2)];
    const reads = [bodies.read(first, of("a"), text), bodies.read(second, of("a"), text)];
    first.write("1234");
    await new Promise(setImmediate);
    second.write("12345");
    await new Promise(setImmediate);
    second.end("678");
    const read = bodies.read(small, of("a"), text);
    small.send("ab");
    expect(await read).toBe("ab");
    expect(bodies.bytes).toBe(9);
    first.end("5678");
    expect(await Promise.all(reads)).toEqual(["12345678", "12345678"]);
    expect(bodies.bytes).toBe(0);
  });

  test("one that hangs up makes room", async () => {
    const bodies = new BodyReader({ ...PATIENT, perCaller: 4 });
    const [closing, paused] = [request(), request()];
    const reading = bodies.read(closing, of("a"), text);
    closing.write("1");
    await new Promise(setImmediate);
    const waits = bodies.read(paused, of("a"), text);
    paused.write("12345");
    await new Promise(setImmediate);
    closing.destroy();
    await expect(reading).rejects.toMatchObject({ code: "request_malformed" });
    paused.end();
    expect(await waits).toBe("12345");
    expect(bodies.bytes).toBe(0);
  });

  test("one that is paused for too long is told to come again", async () => {
    const bodies = new BodyReader({ small: 0, perCaller: 4, second: 1, wait: 3, grace: 1_000_000 });
    const [slow, paused] = [request(), request()];
    const reading = bodies.read(slow, of("a"), text);
    slow.write("1");
    await new Promise(setImmediate);
    const refused = expect(bodies.read(paused, of("a"), text)).rejects.toMatchObject({ code: "too_many_requests", details: { retryAfter: 3 } });
    paused.write("12345");
    await refused;
    expect(bodies.bytes).toBe(1);
    slow.end();
    expect(await reading).toBe("1");
  });

  test("one that keeps the pace is read, however long it takes; one that does not is refused, and the time it was paused does not count", async () => {
    const bodies = new BodyReader({ small: 0, perCaller: 4, second: 5, grace: 2, minPace: 1, wait: 1_000_000 });
    const [steady, paused, silent] = [request(), request(), request()];
    const read = bodies.read(steady, of("a"), text);
    steady.write("1");
    await new Promise(setImmediate);
    const waits = bodies.read(paused, of("a"), text);
    paused.write("12345");
    await new Promise(setImmediate);
    const drip = setInterval(() => steady.write("x"), 1);
    await expect(bodies.read(silent, of("b"), text)).rejects.toMatchObject({ code: "request_timeout" });
    clearInterval(drip);
    steady.end();
    await read;
    paused.end();
    expect(await waits).toBe("12345");
  });
});
