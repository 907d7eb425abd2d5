import { describe, expect, test } from "vitest";
import type { RawSchema } from "./keyword.js";
import { checkIsSchema } from "./metaschema.js";

describe("what is no JSON Schema", () => {
  test.each<[RawSchema, string]>([
    [{ type: "nonsense" }, "type must be equal to one of the allowed values"],
    [{ properties: { a: { items: 1 } } }, "properties.a.items must be object,boolean"],
    [{ $defs: { a: { anyOf: [] } } }, "$defs.a.anyOf must NOT have fewer than 1 items"],
    [{ items: { required: "a" } }, "items.required must be array"],
    [{ minLength: -1 }, "minLength must be >= 0"],
    [{ $schema: "http://json-schema.org/draft-07/schema#" }, "its $schema is not https://json-schema.org/draft/2020-12/schema"],
  ])("%j is refused with the place", (schema, reason) => {
    expect(() => checkIsSchema(schema)).toThrow(expect.objectContaining({ message: reason }));
  });

  test.each<[RawSchema]>([
    [{}],
    [{ $schema: "https://json-schema.org/draft/2020-12/schema", type: ["string", "null"], unknown: { type: 1 } }],
    [{ $defs: { a: { $anchor: "x" } }, $ref: "#x", dependencies: { a: ["b"], c: true }, pattern: "(?i)a" }],
  ])("%j is taken", (schema) => {
    expect(() => checkIsSchema(schema)).not.toThrow();
  });

  test("is found in a time that grows with it, though it has a list that must be unique", () => {
    const type = Array.from({ length: 7_000 }, (_, at) => `t${at}`);
    expect(() => checkIsSchema({ type })).toThrow("type must be equal to one of the allowed values");
  });
});
