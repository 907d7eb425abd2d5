import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { Bodies } from "./bodies.js";

/** A request as Node tells of it, whose body is sent by the test. */
function request(length?: number) {
  const stream = new PassThrough();
  return Object.assign(stream as unknown as IncomingMessage, {
    headers: length === undefined ? {} : { "content-length": String(length) },
    send: (text: string) => stream.end(text),
  });
}

const text = (body: Buffer) => body.toString();

describe("bodies", () => {
  test("one that says it is too large is refused before any of it is read, and takes nothing", async () => {
    const bodies = new Bodies();
    await expect(bodies.read(request(11), 10, text)).rejects.toMatchObject({ code: "body_too_large" });
    expect(bodies.taken).toBe(0);
  });

  test("one that does not say how large it is, is cut at the limit, and gives back what it took", async () => {
    const bodies = new Bodies({ small: 0 });
    const endless = request();
    const refused = expect(bodies.read(endless, 10, text)).rejects.toMatchObject({ code: "body_too_large", details: { limit: 10 } });
    expect(bodies.taken).toBe(10);
    endless.send("x".repeat(11));
    await refused;
    expect(bodies.taken).toBe(0);
  });

  test("what a large one took is given back when it has been used, or refused, and not when the collector looks", async () => {
    const bodies = new Bodies({ small: 0 });
    const piece = () => Buffer.alloc(100_000, "x");
    const sent = [piece(), piece()];
    const taken = request();
    const read = bodies.read(taken, 200_000, (body) => [body, text(body).length] as const);
    for (const part of sent) (taken as unknown as PassThrough).write(part);
    (taken as unknown as PassThrough).end();
    const [body, length] = await read;
    expect(length).toBe(200_000);
    const refused = request();
    const over = piece();
    const reading = expect(bodies.read(refused, 100_000, text)).rejects.toMatchObject({ code: "body_too_large" });
    (refused as unknown as PassThrough).write(over);
    (refused as unknown as PassThrough).end("and more");
    await reading;
    expect([body, ...sent, over].map(({ buffer }) => buffer.byteLength)).toEqual([0, 0, 0, 0]);
  });

  test("large ones are read so many bytes at a time, in the order they came; small ones at once", async () => {
    const bodies = new Bodies({ atATime: 10, small: 2 });
    const [first, second, third, small] = [request(8), request(8), request(2 + 1), request(2)];
    const read = [first, second, third].map((one) => bodies.read(one, 100, text));
    expect(bodies.taken).toBe(8);
    const at = bodies.read(small, 100, text);
    small.send("ab");
    expect(await at).toBe("ab");
    for (const [place, one] of [first, second, third].entries()) one.send(String(place));
    expect(await read[0]).toBe("0");
    expect(await Promise.all(read)).toEqual(["0", "1", "2"]);
    expect(bodies.taken).toBe(0);
  });

  test("one that is larger than what is read at a time is read alone", async () => {
    const bodies = new Bodies({ atATime: 4, small: 0 });
    const large = request(9);
    const read = bodies.read(large, 100, text);
    large.send("x".repeat(9));
    expect(await read).toHaveLength(9);
  });

  test("one that waits too long for its turn is told to come again, and one that hangs up makes room", async () => {
    const bodies = new Bodies({ atATime: 10, small: 0, patience: 1 });
    const slow = request(10);
    const held = bodies.read(slow, 100, text);
    await expect(bodies.read(request(10), 100, text)).rejects.toMatchObject({ code: "too_many_requests", details: { retryAfter: 1 } });
    slow.destroy();
    await expect(held).rejects.toMatchObject({ code: "request_malformed" });
    expect(bodies.taken).toBe(0);
  });
});
