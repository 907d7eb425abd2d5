import { expect, test } from "vitest";
import { ValueBudget } from "./value-budget.js";

const never = new AbortController().signal;
/** Nothing here may depend on how fast the test is. */
const PATIENT = { free: 0, wait: 1_000_000 };
const turned = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));

/** Asks for room, and notes who got it. */
function asking(budget: ValueBudget) {
  const entered: string[] = [];
  const ask = (owner: string, bytes: number, signal: AbortSignal = never) =>
    budget.enter(owner, bytes, signal).then((leave) => {
      entered.push(owner);
      return leave;
    });
  return { entered, ask };
}

test("owners take turns, one body in a turn of the event loop", async () => {
  const budget = new ValueBudget({ ...PATIENT, most: 1_000 });
  const { entered, ask } = asking(budget);
  const turns: number[] = [];
  const all = ["a", "a", "a", "b", "c"].map((owner) => ask(owner, 10).then(() => turns.push(entered.length)));
  let passed = 0;
  while (entered.length < 5) {
    const before = entered.length;
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(entered.length - before).toBeLessThan(2);
    passed++;
  }
  await Promise.all(all);
  expect(entered).toEqual(["a", "b", "c", "a", "a"]);
  expect(passed).toBeGreaterThan(3);
});

test("an owner with several waits for its own to be done with, and nobody else does", async () => {
  const budget = new ValueBudget({ ...PATIENT, most: 400 });
  const { entered, ask } = asking(budget);
  const first = await ask("a", 300);
  void ask("a", 10);
  const other = ask("b", 50);
  await other;
  await turned();
  expect(entered).toEqual(["a", "b"]);
  first();
  await turned();
  expect(entered).toEqual(["a", "b", "a"]);
  expect(budget.held).toBe(60);
});

test("what is more than all of it is let in alone", async () => {
  const budget = new ValueBudget({ ...PATIENT, most: 100 });
  const { entered, ask } = asking(budget);
  const leave = await ask("a", 1_000);
  void ask("b", 1);
  await turned();
  expect(entered).toEqual(["a"]);
  leave();
  await turned();
  expect(entered).toEqual(["a", "b"]);
});

test("one that has waited too long is told to come again", async () => {
  const budget = new ValueBudget({ free: 0, wait: 0, most: 100 });
  const leave = await budget.enter("a", 100, never);
  await expect(budget.enter("a", 10, never)).rejects.toMatchObject({ code: "too_many_requests" });
  leave();
  await budget.enter("a", 10, never);
  expect(budget.held).toBe(10);
});

test("one that is gone is forgotten", async () => {
  const budget = new ValueBudget({ ...PATIENT, most: 100 });
  const leave = await budget.enter("a", 100, never);
  const gone = new AbortController();
  const waiting = budget.enter("a", 50, gone.signal);
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  leave();
  await turned();
  expect(budget.held).toBe(0);
});

test("small ones are not counted", async () => {
  const budget = new ValueBudget({ ...PATIENT, free: 5, most: 1 });
  await Promise.all(["a", "a", "a"].map((owner) => budget.enter(owner, 5, never)));
  expect(budget.held).toBe(0);
});
