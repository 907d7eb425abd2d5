import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BufferedLines } from "./buffered-lines.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("lines are written many at a time, within a tenth of a second", () => {
  const writes: string[] = [];
  const lines = new BufferedLines((text) => writes.push(text));
  for (let n = 0; n < 1_000; n++) lines.buffer(`${n}\n`);
  expect(writes).toEqual([]);
  vi.advanceTimersByTime(100);
  expect(writes.map((text) => text.split("\n").length - 1)).toEqual([1_000]);
});

test("a line that may not wait comes after those that were held", () => {
  const writes: string[] = [];
  const lines = new BufferedLines((text) => writes.push(text));
  lines.buffer("one\n");
  lines.write("two\n");
  expect(writes).toEqual(["one\ntwo\n"]);
  vi.advanceTimersByTime(1_000);
  expect(writes).toHaveLength(1);
});

test("no more is held than 64 KB", () => {
  const writes: string[] = [];
  const lines = new BufferedLines((text) => writes.push(text));
  for (let n = 0; n < 200; n++) lines.buffer(`${"x".repeat(1_000)}\n`);
  expect(writes.length).toBe(3);
});
