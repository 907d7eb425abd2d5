import { expect, it } from "vitest";
import { statement } from "./db.js";
import { withNames } from "./named-statement.js";

const make = (text: string) => statement("test", text);

it("names become numbers in the order they are given, and casts and slices stay", () => {
  const one = withNames(["now", "ids"], "select :ids::uuid[], (:ids::uuid[])[1 : 2], $1::float8", make);
  expect(one.statement.text).toBe("select $2::uuid[], ($2::uuid[])[1 : 2], $1::float8");
  expect(one.values({ ids: "{}", now: null })).toEqual([null, "{}"]);
});

it("a name that nobody gives, and one that is not used, are errors at once", () => {
  expect(() => withNames(["now"], "select :now::int, :other::int", make)).toThrow("uses the parameter other");
  expect(() => withNames(["now", "other"], "select :now::int", make)).toThrow("does not use: other");
});
