import { describe, expect, it } from "vitest";
import { camelCase, parseSql } from "./parse-sql.js";

const parse = (text: string, without?: string) => parseSql(text, { "state.ready": "2" }, without);

describe("a statement", () => {
  it("has numbers for the names of its parameters, in the order of their first use, and slices stay", () => {
    expect(parse("select :ids::uuid[], (:ids::uuid[])[1 : 2], :now::float8")).toEqual({
      text: "select $1::uuid[], ($1::uuid[])[1 : 2], $2::float8",
      parameters: [
        { name: "ids", type: "uuid[]" },
        { name: "now", type: "float8" },
      ],
      block: undefined,
    });
  });

  it("has the columns of a record set as parameters of their own", () => {
    const { text, parameters } = parse("select * from unnest(:job.id::uuid[], :job.run_at::float8[]) with ordinality as j(id, run_at, no)");
    expect(text).toBe("select * from unnest($1::uuid[], $2::float8[]) with ordinality as j(id, run_at, no)");
    expect(parameters.map(({ name }) => name)).toEqual(["job.id", "job.run_at"]);
  });

  it("has values for constants", () => {
    expect(parse("select {{state.ready}}").text).toBe("select 2");
  });

  it("is sent without its comments, and with its labels", () => {
    expect(parse("-- What it does.\n--\nselect 1\n  -- why\n  for update  -- guard: row-locked\n  -- stop: locked").text).toBe(
      "select 1\n  for update  -- guard: row-locked\n  -- stop: locked",
    );
  });

  it("has a variant without its block", () => {
    const text = "select 1\n--+ limited\n, 2\n--- limited\n, 3";
    expect(parse(text)).toMatchObject({ text: "select 1\n, 2\n, 3", block: "limited" });
    expect(parse(text, "limited").text).toBe("select 1\n, 3");
  });
});

describe("an error at once is", () => {
  it.each([
    ["a parameter without a type", "select :now", "the parameter :now has no type"],
    ["one of two types", "select :a::int, :a::text", "the parameter :a has two types, int and text"],
    ["a constant that there is not", "select {{state.lost}}", "there is no constant {{state.lost}}"],
    [
      "a record set read in another order",
      "from unnest(:a.x::int[], :a.y::int[]) as r(y, x)",
      "the record set a is sent as (x, y) and read as (y, x)",
    ],
    ["a comment behind code", "select 1 -- why", "a comment has lines of its own"],
    ["a block without an end", "--+ limited\nselect 1", "one block at most"],
    ["a second block", "--+ a\n--- a\n--+ b\n--- b", "one block at most"],
    ["a block that ends as another", "--+ a\n--- b", "one block at most"],
  ])("%s", (_, text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  it("a block that is to be left out and is not there", () => {
    expect(() => parse("select 1", "limited")).toThrow('there is no block "limited"');
  });
});

it("names of values are written as in TypeScript", () => {
  expect(["now", "limits_checked", "last_home"].map(camelCase)).toEqual(["now", "limitsChecked", "lastHome"]);
});
