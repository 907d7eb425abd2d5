import { expect, test } from "vitest";
import type { CheckThreads, ThreadVerdict } from "./check-threads.js";
import { schemaCompiler } from "./input-schema.js";

/** Answers as a thread would, and notes who asked. */
function notingThreads(verdict: ThreadVerdict = { steps: 1_000_000 }) {
  const callers: string[] = [];
  const check: CheckThreads["check"] = async (caller) => {
    callers.push(caller);
    return verdict;
  };
  return { callers, check };
}

const union = { items: { anyOf: [...Array.from({ length: 1_000 }, (_, at) => ({ const: `${at}` })), { type: "integer" }] } };
const costly = Array.from({ length: 100 }, () => 1);
const asCaller = (caller: string) => ({ libraryOptions: { caller } });
const turned = () => new Promise<void>((resolve) => setImmediate(resolve));

test("cheap inputs are checked at once, and no thread is asked", () => {
  const threads = notingThreads();
  const { validate } = schemaCompiler(threads)(union, "t")["~standard"];
  expect(validate([1])).toEqual({ value: [1] });
  expect(validate("no array")).toEqual({ value: "no array" });
  expect(validate([true])).toMatchObject({ issues: expect.any(Array) });
  expect(threads.callers).toEqual([]);
});

test("a costly input goes to a thread, and so do those of the same caller until one was cheap, but not those of others", async () => {
  const threads = notingThreads();
  const { validate } = schemaCompiler(threads)(union, "t")["~standard"];
  expect(await validate(costly, asCaller("a"))).toEqual({ value: costly });
  await turned();
  await validate([1], asCaller("a"));
  expect(validate([1], asCaller("b"))).toEqual({ value: [1] });
  expect(threads.callers).toEqual(["a", "a"]);
});

test("once a thread finds an input cheap, the next one is checked at once", async () => {
  const threads = notingThreads({ steps: 10 });
  const { validate } = schemaCompiler(threads)(union, "t")["~standard"];
  await validate(costly, asCaller("a"));
  await turned();
  expect(validate([1], asCaller("a"))).toEqual({ value: [1] });
});

test("a batch is checked at once up to a bound, and leaves something of the turn to others", async () => {
  const threads = notingThreads({ steps: 10 });
  const { validate } = schemaCompiler(threads)(union, "t")["~standard"];
  const batch = Array.from({ length: 100 }, () => validate([1, 1, 1], asCaller("a")));
  expect(validate([1], asCaller("b"))).toEqual({ value: [1] });
  await Promise.all(batch);
  expect(threads.callers.length).toBeGreaterThan(50);
  expect(threads.callers.length).toBeLessThan(100);
  await turned();
  expect(validate([1], asCaller("a"))).toEqual({ value: [1] });
});
