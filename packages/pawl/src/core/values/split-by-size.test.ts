import { expect, test } from "vitest";
import { splitBySize } from "./split-by-size.js";

test("portions keep the order, hold as much as fits, and what is too large goes alone", () => {
  expect([...splitBySize([3, 4, 5, 20, 1, 1], (size) => size, 8)]).toEqual([[3, 4], [5], [20], [1, 1]]);
  expect([...splitBySize([], () => 1, 8)]).toEqual([]);
});
