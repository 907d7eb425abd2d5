import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Output } from "./output.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function spoken(isTTY: boolean, json = false) {
  const written: string[] = [];
  const sink = { write: (text: string) => written.push(text), isTTY, columns: 40 };
  return { written, out: new Output({ stdin: Readable.from([]), stdout: sink, stderr: sink, env: {} }, json) };
}

test("who waits at a terminal for more than a second is told for what, and the line is gone when it is over", async () => {
  const { written, out } = spoken(true);
  let open = (_: string) => {};
  const waiting = out.during("opening the store", new Promise<string>((resolve) => (open = resolve)));
  await vi.advanceTimersByTimeAsync(999);
  expect(written).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(written).toEqual(["\r\u001b[Kopening the store …"]);
  open("opened");
  expect(await waiting).toBe("opened");
  expect(written.at(-1)).toBe("\r\u001b[K");
});

test.each([
  ["a pipe", false, false],
  ["a script that reads JSON", true, true],
])("%s is told nothing of it", async (_, isTTY, json) => {
  const { written, out } = spoken(isTTY, json);
  const waiting = out.during("opening the store", new Promise<void>((resolve) => void setTimeout(resolve, 5_000)));
  await vi.advanceTimersByTimeAsync(5_000);
  await waiting;
  expect(written).toEqual([]);
});

describe("what may be longer than memory", () => {
  /** A reader that has no room, and those who wait for it. */
  function fullReader() {
    const waiting = new Set<() => void>();
    const written: string[] = [];
    const stdout = {
      write: (text: string) => {
        written.push(text);
        return false;
      },
      once: (_: "drain", listener: () => void) => waiting.add(listener),
      off: (_: "drain", listener: () => void) => waiting.delete(listener),
    };
    return { written, waiting, out: new Output({ stdin: Readable.from([]), stdout, stderr: stdout, env: {} }, true) };
  }
  const never = new AbortController().signal;

  test("waits until its reader has room", async () => {
    const { written, waiting, out } = fullReader();
    let went = false;
    const first = out.streamEntry({ n: 1 }, never).then(() => {
      went = true;
    });
    await Promise.resolve();
    expect([written, went, waiting.size]).toEqual([['{"n":1}\n'], false, 1]);
    for (const drained of waiting) drained();
    await first;
    expect(waiting.size).toBe(0);
  });

  test("does not wait for a reader that has gone: its command is told to stop, and does", async () => {
    const { written, waiting, out } = fullReader();
    const stop = new AbortController();
    const first = out.streamEntry({ n: 1 }, stop.signal);
    stop.abort();
    await first;
    await out.streamEntry({ n: 2 }, stop.signal);
    expect([written.length, waiting.size]).toEqual([2, 0]);
  });
});
