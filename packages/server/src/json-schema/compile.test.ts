import { describe, expect, test } from "vitest";
import { z } from "zod";
import { CheckStopped } from "./check-run.js";
import { CompiledSchema } from "./compile.js";
import type { RawSchema } from "./keyword.js";
import { Pattern } from "./pattern.js";
import { patternSize } from "./pattern-size.js";

const PLENTY = 100_000_000;

function check(schema: RawSchema, value: unknown) {
  const budget = { left: PLENTY };
  const { issues } = new CompiledSchema(schema).check(value, budget);
  return { issues, steps: PLENTY - budget.left };
}

/** A tree of `and` and `or`, as people write filters. */
const leaf = z.object({ field: z.string(), equals: z.string() });
const tree: z.ZodType = z.lazy(() =>
  z.union([leaf, z.object({ args: z.array(tree), op: z.literal("and") }), z.object({ args: z.array(tree), op: z.literal("or") })]),
);
const treeSchema = z.toJSONSchema(tree, { target: "draft-2020-12" }) as RawSchema;
function nested(depth: number, innermost: unknown): unknown {
  return depth === 0 ? innermost : { args: [nested(depth - 1, innermost)], op: "or" };
}

/** Each leads to the next one twice. */
function doubled(links: number): RawSchema {
  const defs = Array.from({ length: links }, (_, at) => [`d${at + 1}`, { anyOf: [{ $ref: `#/$defs/d${at}` }, { $ref: `#/$defs/d${at}` }] }] as const);
  return { $defs: { d0: { type: "integer" }, ...Object.fromEntries(defs) }, $ref: `#/$defs/d${links}` };
}

describe("what a check costs", () => {
  test("grows with the depth of a value, not with a power of it, where a schema leads to itself in several ways", () => {
    const shallow = check(treeSchema, nested(12, { field: 1 }));
    const deep = check(treeSchema, nested(24, { field: 1 }));
    expect(deep.issues).toHaveLength(5);
    expect(deep.steps).toBeLessThan(5 * shallow.steps);
    expect(deep.steps).toBeLessThan(50_000);
    expect(check(treeSchema, nested(24, { field: "a", equals: "b" })).issues).toBeUndefined();
  });

  test("grows with the length of a chain of schemas that lead to the next one twice, not with a power of it", () => {
    const { issues, steps } = check(doubled(10), "no");
    expect(issues?.[0]).toEqual({ message: "must be integer", path: [] });
    expect(steps).toBeLessThan(1_000);
  });

  test("grows with the number of unique items, not with its square", () => {
    const items = Array.from({ length: 60_000 }, (_, at) => ({ a: at }));
    const unique = check({ uniqueItems: true }, items);
    expect(unique.issues).toBeUndefined();
    expect(unique.steps).toBeLessThan(2_000_000);
    expect(check({ uniqueItems: true }, [...items, { a: 59_999 }]).issues).toEqual([{ message: "must NOT have duplicate items", path: [] }]);
  });

  test("grows with the number of items, not with that of the objects they may be, too", () => {
    const allowed = Array.from({ length: 4_000 }, (_, at) => ({ a: at, b: [at] }));
    const items = Array.from({ length: 50_000 }, () => ({ b: [3_999], a: 3_999 }));
    const { issues, steps } = check({ items: { enum: allowed } }, items);
    expect(issues).toBeUndefined();
    expect(steps).toBeLessThan(5_000_000);
    expect(check({ items: { enum: allowed } }, [{ a: 1, b: [2] }]).issues?.[0]?.path).toEqual(["0"]);
  });

  test("is no power of the depth of a schema in which one of two must hold, again and again", () => {
    let schema: RawSchema = { type: "integer" };
    for (let at = 0; at < 60; at++) schema = { oneOf: [schema, { type: "string" }] };
    expect(check(schema, 1).steps).toBeLessThan(2_000);
    expect(check({ ...schema, unevaluatedProperties: false }, 1).steps).toBeLessThan(2_000);
  });

  test("is bounded by the steps it is given, by the depth of its stack, and by what it may keep", () => {
    const schema = new CompiledSchema({ items: { $ref: "#" } });
    const deep = JSON.parse("[".repeat(5_000) + "]".repeat(5_000)) as unknown;
    expect(() => schema.check(deep, { left: PLENTY })).toThrow(expect.objectContaining({ reason: "depth" }));
    expect(() => new CompiledSchema({ uniqueItems: true }).check([deep], { left: PLENTY })).toThrow(CheckStopped);
    expect(() => schema.check([[[[]]]], { left: 5 })).toThrow(expect.objectContaining({ reason: "steps" }));
    const pairs = Array.from({ length: 300_000 }, (_, at) => [at]);
    expect(() => new CompiledSchema({ uniqueItems: true }).check(pairs, { left: PLENTY })).toThrow(expect.objectContaining({ reason: "memory" }));
    expect(() => new CompiledSchema({ pattern: "(a|b)*c" }).check("ab".repeat(1_000_000), { left: 1_000_000 })).toThrow(CheckStopped);
    expect(() => new CompiledSchema({ format: "url" }).check(`http://${"a".repeat(100_000)}`, { left: 1_000_000 })).toThrow(CheckStopped);
  });
});

describe("a schema that would cost too much is refused", () => {
  const alternatives = (count: number) => ({ anyOf: Array.from({ length: count }, () => ({ type: "string" })) });
  const chain = (length: number) => Object.fromEntries(Array.from({ length }, (_, at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]));
  const around = { a: { not: { $ref: "#/$defs/b" } }, b: { if: { $ref: "#/$defs/a" } } };
  test.each<[string, RawSchema, string]>([
    ["in which each leads to the next one twice", doubled(30), "applied to one value"],
    ["that leads to itself", { $ref: "#" }, "leads to itself"],
    ["that leads to itself around a corner", { $defs: around, items: { $ref: "#/$defs/a" } }, "leads to itself"],
    ["that is a long chain", { $defs: { ...chain(150), d150: true }, $ref: "#/$defs/d0" }, "one inside the other"],
    ["of too many schemas", alternatives(5_001), "more than 5000 schemas"],
    ["with a pattern that is written out", { pattern: "(a[b-z]{100}){100}" }, "its patterns come to"],
    ["with too many patterns", { anyOf: Array.from({ length: 20 }, (_, at) => ({ pattern: `^${at}[a-z]{700}$` })) }, "its patterns come to"],
    ["with ranges of which each sign is looked up", { pattern: `(?i)${"[a-\u{fffff}]".repeat(100)}` }, "its patterns come to"],
    ["with such ranges by number", { pattern: `(?s-U:a)(?si:${"[--\\x{1e000}]".repeat(100)})` }, "its patterns come to"],
    ["with such ranges after others", { pattern: `(?i)${"[a-b--\u{fffff}]".repeat(100)}` }, "its patterns come to"],
    ["with classes of Unicode without end", { pattern: `[${"\\p{L}".repeat(1_000)}]` }, "its patterns come to"],
  ])("%s", (_, schema, reason) => {
    expect(() => new CompiledSchema(schema)).toThrow(expect.objectContaining({ name: "SchemaTooCostly", message: expect.stringContaining(reason) }));
  });

  test.each<[string, RawSchema]>([
    ["a tree of a recursive union", treeSchema],
    ["a union of many", alternatives(4_000)],
    ["a chain of some", { $defs: { ...chain(50), d50: true }, $ref: "#/$defs/d0" }],
    ["patterns as they are", { anyOf: Array.from({ length: 50 }, (_, at) => ({ pattern: `^k${at}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$` })) }],
    ["ranges of letters of either case", { pattern: `(?i)${"[a-z0-9_.-][à-þ]".repeat(300)}` }],
    ["a pattern whose brackets and braces mean nothing", { pattern: "[]{9999}[(]\\{9999\\}\\Q({9999}\\E[[:alpha:]{999}]x{a}" }],
  ])("but not %s", (_, schema) => {
    expect(() => new CompiledSchema(schema)).not.toThrow();
  });
});

describe("the size of a pattern, before it is compiled", () => {
  const patterns = ["abc", "a{3}", "(ab|c){2,50}", "((a{10}){10}){10}", "[a-z]{1000}", "a{5,}b*c+?", "(?:x|(?P<n>y)z?){7}", "[^]a]{9}"];
  const more = ["\\pL{100}", "\\Qa{5}\\E{3}", "(a?){100}", "[[:digit:]x]{30}", "(a|b|c){40}", "^(ab*){99}$", "\\x{41}{20}", "(?i)k{10}"];
  test.each([...patterns, ...more])("of %s is no less than what it becomes", (source) => {
    const { size } = new Pattern(source);
    expect(patternSize(source)).toBeGreaterThanOrEqual(size - 3);
    expect(patternSize(source)).toBeLessThan(60 * size);
  });
});

describe("what is wrong is said", () => {
  test.each<[string, RawSchema, unknown, string, string]>([
    ["a type", { properties: { a: { type: ["integer", "null"] } } }, { a: 1.5 }, "a", "must be integer,null"],
    ["a bound", { items: { minimum: 3 } }, [3, 2], "1", "must be >= 3"],
    ["a length, in characters", { maxLength: 1 }, "𝒳𝒳", "", "must NOT have more than 1 characters"],
    ["a pattern", { pattern: "^a" }, "b", "", 'must match pattern "^a"'],
    ["a format", { format: "date-time" }, "soon", "", 'must match format "date-time"'],
    ["a constant", { const: { a: [1] } }, { a: [2] }, "", "must be equal to constant"],
    ["a field that is missing", { required: ["a", "b"] }, { a: 1 }, "b", "is missing"],
    ["a field that another one needs", { dependentRequired: { a: ["b"] } }, { a: 1 }, "b", "is missing"],
    ["a field that nobody knows", { properties: { a: true }, additionalProperties: false }, { a: 1, z: 1 }, "z", "is not known"],
    ["a name", { propertyNames: { maxLength: 1 } }, { ab: 1 }, "", "must NOT have more than 1 characters"],
    ["an item too many", { prefixItems: [true], items: false }, [1, 2], "", "must NOT have more than 1 items"],
    ["what none of several schemas takes", { anyOf: [{ properties: { a: { type: "string" } } }, false] }, { a: 1 }, "a", "must be string"],
    ["what several schemas take", { oneOf: [true, { type: "integer" }] }, 1, "", "must match exactly one schema in oneOf"],
    [
      "what follows from something",
      JSON.parse('{ "if": { "required": ["a"] }, "then": { "required": ["b"] } }') as RawSchema,
      { a: 1 },
      "b",
      "is missing",
    ],
    ["what must not be", { not: { const: 1 } }, 1, "", "must NOT be valid"],
    ["what must be contained", { contains: { const: 1 }, minContains: 2 }, [1], "", "must contain at least 2 valid item(s)"],
    [
      "what no schema has looked at",
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      { z: 1 },
      "",
      "must NOT have unevaluated properties",
    ],
  ])("%s", (_, schema, value, path, message) => {
    const [first] = check(schema, value).issues ?? [];
    expect(first).toEqual({ message, path: path === "" ? [] : path.split("/") });
  });

  test("in a few words, however long the names of an input are", () => {
    const { issues } = check(
      { additionalProperties: { additionalProperties: { type: "string" } } },
      { ["x".repeat(100_000)]: { ["y".repeat(100_000)]: 1 } },
    );
    expect(JSON.stringify(issues).length).toBeLessThan(400);
  });
});

describe("a reference", () => {
  test.each<[string, RawSchema]>([
    ["by a pointer with names to escape", { $defs: { "a/b~c%": { type: "integer" } }, items: { $ref: "#/$defs/a~1b~0c%25" } }],
    ["by an anchor", { $defs: { a: { $anchor: "n", type: "integer" } }, items: { $ref: "#n" } }],
    ["by a dynamic anchor", { $defs: { a: { $dynamicAnchor: "n", type: "integer" } }, items: { $dynamicRef: "#n" } }],
    ["by a name", { $id: "https://one.example/root", $defs: { a: { $id: "whole", type: "integer" } }, items: { $ref: "whole" } }],
    ["inside what has a name of its own", { $defs: { a: { $id: "b", $defs: { c: { type: "integer" } }, items: { $ref: "#/$defs/c" } } }, $ref: "b" }],
    ["beside other keywords", { $defs: { a: true }, items: { $ref: "#/$defs/a", type: "integer" } }],
  ])("%s", (_, schema) => {
    expect(check(schema, [1]).issues).toBeUndefined();
    expect(check(schema, ["x"]).issues).toMatchObject([{ path: ["0"] }]);
  });

  test.each<[string, RawSchema]>([
    ["elsewhere", { $ref: "https://elsewhere.example/schema" }],
    ["to what is not there", { $ref: "#/$defs/a" }],
    ["to what is no schema", { $ref: "#/required", required: ["a"] }],
    ["to one of several", { $defs: { a: { $id: "a", $dynamicAnchor: "n" }, b: { $id: "b", $dynamicAnchor: "n" } }, $dynamicRef: "a#n" }],
    ["to two schemas of one name", { $defs: { a: { $id: "a" }, b: { $id: "a" } }, $ref: "a" }],
  ])("%s is refused", (_, schema) => {
    expect(() => new CompiledSchema(schema)).toThrow();
  });
});
