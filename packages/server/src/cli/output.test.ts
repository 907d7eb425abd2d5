import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Output } from "./output.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function spoken(isTTY: boolean, json = false) {
  const said: string[] = [];
  const sink = { write: (text: string) => said.push(text), isTTY, columns: 40 };
  return { said, out: new Output({ stdin: Readable.from([]), stdout: sink, stderr: sink, env: {} }, json) };
}

test("who waits at a terminal for more than a second is told for what, and the line is gone when it is over", async () => {
  const { said, out } = spoken(true);
  let open = (_: string) => {};
  const waiting = out.during("opening the store", new Promise<string>((resolve) => (open = resolve)));
  await vi.advanceTimersByTimeAsync(999);
  expect(said).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(said).toEqual(["\r\u001b[Kopening the store …"]);
  open("opened");
  expect(await waiting).toBe("opened");
  expect(said.at(-1)).toBe("\r\u001b[K");
});

test.each([
  ["a pipe", false, false],
  ["a script that reads JSON", true, true],
])("%s is told nothing of it", async (_, isTTY, json) => {
  const { said, out } = spoken(isTTY, json);
  const waiting = out.during("opening the store", new Promise<void>((resolve) => void setTimeout(resolve, 5_000)));
  await vi.advanceTimersByTimeAsync(5_000);
  await waiting;
  expect(said).toEqual([]);
});

test("what may be longer than memory waits until its reader has room", async () => {
  let drain = () => {};
  let full = true;
  const said: string[] = [];
  const stdout = {
    write: (text: string) => {
      said.push(text);
      return !full;
    },
    once: (_: "drain", listener: () => void) => {
      drain = listener;
    },
  };
  const out = new Output({ stdin: Readable.from([]), stdout, stderr: stdout, env: {} }, true);
  const { signal } = new AbortController();
  let went = false;
  const first = out.flowing({ n: 1 }, signal).then(() => {
    went = true;
  });
  await Promise.resolve();
  expect([said, went]).toEqual([['{"n":1}\n'], false]);
  drain();
  await first;
  full = false;
  await out.flowing({ n: 2 }, signal);
  expect(said).toHaveLength(2);
});

test("what waits for its reader ends when the command is stopped, since a reader that has gone never has room again", async () => {
  const stdout = { write: () => false, once: () => {} };
  const out = new Output({ stdin: Readable.from([]), stdout, stderr: stdout, env: {} }, true);
  const stop = new AbortController();
  const waiting = out.flowing({ n: 1 }, stop.signal);
  stop.abort();
  await waiting;
  await out.flowing({ n: 2 }, stop.signal);
});
