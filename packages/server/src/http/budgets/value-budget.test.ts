import { expect, test } from "vitest";
import { ValueBudget } from "./value-budget.js";

const never = new AbortController().signal;
/** Nothing here may depend on how fast the test is. */
const PATIENT = { free: 0, wait: 1_000_000 };
const turned = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));

/** Asks for room, and notes who got it. */
function budgetClient(budget: ValueBudget) {
  const entered: string[] = [];
  const enter = (owner: string, bytes: number, signal: AbortSignal = never) =>
    budget.enter(owner, bytes, signal).then((leave) => {
      entered.push(owner);
      return leave;
    });
  return { entered, enter };
}

test("owners take turns, one body in a turn of the event loop", async () => {
  const budget = new ValueBudget({ ...PATIENT, total: 1_000 });
  const { entered, enter } = budgetClient(budget);
  const order: number[] = [];
  const all = ["a", "a", "a", "b", "c"].map((owner) => enter(owner, 10).then(() => order.push(entered.length)));
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
  const budget = new ValueBudget({ ...PATIENT, total: 400 });
  const { entered, enter } = budgetClient(budget);
  const first = await enter("a", 300);
  void enter("a", 10);
  const other = enter("b", 50);
  await other;
  await turned();
  expect(entered).toEqual(["a", "b"]);
  first();
  await turned();
  expect(entered).toEqual(["a", "b", "a"]);
  expect(budget.bytes).toBe(60);
});

test("what is more than all of it is let in alone", async () => {
  const budget = new ValueBudget({ ...PATIENT, total: 100 });
  const { entered, enter } = budgetClient(budget);
  const leave = await enter("a", 1_000);
  void enter("b", 1);
  await turned();
  expect(entered).toEqual(["a"]);
  leave();
  await turned();
  expect(entered).toEqual(["a", "b"]);
});

test("one that has waited too long is told to come again", async () => {
  const budget = new ValueBudget({ free: 0, wait: 0, total: 100 });
  const leave = await budget.enter("a", 100, never);
  await expect(budget.enter("a", 10, never)).rejects.toMatchObject({ code: "too_many_requests" });
  leave();
  await budget.enter("a", 10, never);
  expect(budget.bytes).toBe(10);
});

test("one that is gone is forgotten", async () => {
  const budget = new ValueBudget({ ...PATIENT, total: 100 });
  const leave = await budget.enter("a", 100, never);
  const disconnect = new AbortController();
  const waiting = budget.enter("a", 50, disconnect.signal);
  disconnect.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  leave();
  await turned();
  expect(budget.bytes).toBe(0);
});

test("small ones are not counted", async () => {
  const budget = new ValueBudget({ ...PATIENT, free: 5, total: 1 });
  await Promise.all(["a", "a", "a"].map((owner) => budget.enter(owner, 5, never)));
  expect(budget.bytes).toBe(0);
});
