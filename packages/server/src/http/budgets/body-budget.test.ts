import { expect, test } from "vitest";
import { BodyBudget, type Upload } from "./body-budget.js";

interface Watched extends Upload {
  state: "reads" | "paused" | "refused";
}

function upload(caller: string, owner = caller): Watched {
  const one: Watched = {
    caller,
    owner,
    state: "reads",
    pause: () => (one.state = "paused"),
    resume: () => (one.state = "reads"),
    refuse: () => (one.state = "refused"),
  };
  return one;
}

test("the bodies of a caller beside its oldest one pause when they have too many bytes, and go on when it is done", () => {
  const budget = new BodyBudget({ overall: 1_000, perCaller: 10 });
  const [oldest, second, third] = [upload("a"), upload("a"), upload("a")];
  budget.add(oldest, 500);
  budget.add(second, 10);
  expect([oldest.state, second.state]).toEqual(["reads", "reads"]);
  budget.add(third, 1);
  expect(third.state).toBe("paused");
  budget.add(oldest, 1);
  expect(oldest.state).toBe("reads");
  budget.remove(oldest);
  expect(third.state).toBe("reads");
});

test("nobody pauses for the bytes of another caller", () => {
  const budget = new BodyBudget({ overall: 1_000, perCaller: 10 });
  for (let n = 0; n < 5; n++) budget.add(upload("a"), 10);
  const other = upload("b");
  budget.add(other, 100);
  expect(other.state).toBe("reads");
});

test("when there is too much in all, the youngest body of the owner that has most is refused, however many callers it has", () => {
  const budget = new BodyBudget({ overall: 100, perCaller: 100 });
  const greedy = ["a1", "a2", "a3", "a4"].map((caller) => upload(caller, "a"));
  for (const one of greedy) budget.add(one, 24);
  const modest = upload("b");
  budget.add(modest, 30);
  expect(modest.state).toBe("reads");
  expect(greedy.filter(({ state }) => state === "refused")).toHaveLength(2);
  expect(budget.bytes).toBe(24 * 2 + 30);
});

test("an owner that asks for more while it has as much as any loses a body of its own", () => {
  const budget = new BodyBudget({ overall: 100, perCaller: 100 });
  const [first, other, youngest] = [upload("a"), upload("b"), upload("a")];
  budget.add(first, 40);
  budget.add(other, 50);
  budget.add(youngest, 11);
  expect([first, other, youngest].map(({ state }) => state)).toEqual(["reads", "reads", "refused"]);
  expect(budget.bytes).toBe(90);
});

test("however many owners send, none that has no more than its share of the whole is refused", () => {
  const budget = new BodyBudget({ overall: 1_000, perCaller: 1_000 });
  const modest = Array.from({ length: 9 }, (_, n) => upload(`modest ${n}`));
  for (let round = 0; round < 100; round++) {
    budget.add(upload("greedy"), 37);
    for (const one of modest) budget.add(one, 1);
  }
  expect(modest.filter(({ state }) => state !== "reads")).toEqual([]);
  expect(budget.bytes).toBeLessThanOrEqual(1_000);
});

test("what is removed twice, or was never counted, changes nothing", () => {
  const budget = new BodyBudget({ overall: 10, perCaller: 10 });
  const one = upload("a");
  budget.remove(one);
  budget.add(one, 5);
  budget.remove(one);
  budget.remove(one);
  expect(budget.bytes).toBe(0);
});
